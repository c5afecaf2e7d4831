"""From when to when events are: by the footers of parquet files, or by reading all events.

The footer of a parquet file may have the least and the greatest value of a column for each row
group. Row groups without them, and logs, are read once before: by tasks, and of files only that
column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from tamis.replay.event_columns import column_at, type_at
from tamis.replay.event_source import EventSource
from tamis.replay.row_groups import ParquetFiles, RowRange
from tamis.spark.events.time_axis import DECIMAL, Clock, is_text
from tamis.spark.runtime.job_runner import Progress, run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READERS = 8  # threads: the last bytes of a file are waited for, not computed
_SPAN = pa.schema(
    [("low", pa.int64()), ("high", pa.int64()), ("least", pa.float64()), ("most", pa.float64())]
)


class Span(NamedTuple):
    """The least and the most of some values. Without any, the least is more than the most."""

    low: Any = math.inf
    high: Any = -math.inf

    def joined(self, *others: Span) -> Span:
        """With the values of others."""
        every = (self, *others)
        return Span(min(each.low for each in every), max(each.high for each in every))


def span_of(
    spark: SparkSession, events: EventSource, clock: Clock, progress: Progress | None = None
) -> Span:
    """The span of events, all of which are read for it."""
    rows = run_tasks(spark, len(events.shares), _SpanTask(events, clock).run, _SPAN, progress)
    ends = ("least", "most") if clock.kind == DECIMAL else ("low", "high")
    found = [Span(row[ends[0]], row[ends[1]]) for row in rows if row[ends[0]] is not None]
    return Span().joined(*found)


class _SpanTask(NamedTuple):
    """What tasks need."""

    events: EventSource
    clock: Clock

    def run(self, share: int) -> Iterator[dict[str, Any]]:
        """The span of a share."""
        found = Span()
        for chunk in self.events.chunks(share):
            column = column_at(chunk.layout.readable(chunk.table), self.clock.path)
            if column is not None:
                found = found.joined(_of(self.clock, column))
        low, high = ("least", "most") if self.clock.kind == DECIMAL else ("low", "high")
        yield {} if found.low > found.high else {low: found.low, high: found.high}


def _of(clock: Clock, column: Any) -> Span:
    values, known = clock.values(column)
    values = values[known]
    return Span(values.min().item(), values.max().item()) if len(values) else Span()


# -- what footers say ------------------------------------------------------------------------------


def stated_span(events: ParquetFiles, clock: Clock) -> tuple[Span, list[RowRange]]:
    """The span that row groups state, and the row groups that state none."""
    groups: dict[int, list[RowRange]] = {}
    for rows in events.groups:
        groups.setdefault(rows.file, []).append(rows)

    def said(file: int) -> list[Span | None]:
        return _said(events.files[file], groups[file], clock)

    told, silent = Span(), []
    with ThreadPoolExecutor(_READERS) as pool:
        for file, spans in zip(groups, pool.map(said, groups), strict=True):
            for rows, span in zip(groups[file], spans, strict=True):
                if span is None:
                    silent.append(rows)
                else:
                    told = told.joined(span)
    return told, silent


def _said(file: str, groups: Sequence[RowRange], clock: Clock) -> list[Span | None]:
    with parquet.ParquetFile(file) as opened:
        facts, kind = opened.metadata, type_at(opened.schema_arrow, clock.path)
        assert kind is not None
        if is_text(kind) or isinstance(kind, pa.DictionaryType):
            return [None] * len(groups)
        some = facts.row_group(groups[0].group)
        names = [some.column(at).path_in_schema for at in range(facts.num_columns)]
        at = names.index(clock.name)
        columns = [facts.row_group(rows.group).column(at) for rows in groups]
        return [_stated(column.statistics, kind, clock) for column in columns]


def _stated(facts: Any, kind: pa.DataType, clock: Clock) -> Span | None:
    """What a row group says of a column, if that is of any use."""
    if facts is None or not facts.has_min_max:
        return None
    try:
        values, known = clock.values(pa.array([facts.min, facts.max], kind))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return Span(*values.tolist()) if known.all() else None
