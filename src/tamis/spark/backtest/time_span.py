"""From when to when events are: what parquet files say of themselves, else a look at them all.

The last bytes of a parquet file have the least and the most of a column, for each row group, if
whoever wrote it has put them there. Row groups without, and logs, are read once before: by tasks,
and of files that one column alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from tamis.replay.event_columns import column_at, type_at
from tamis.replay.event_source import Events, Layout
from tamis.replay.row_groups import Found, Rows, shares
from tamis.spark.backtest.time_axis import DECIMAL, Clock, is_text
from tamis.spark.jobs.parquet_columns import dealt
from tamis.spark.runtime.job_runner import Progress, cores, numbered, watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READERS = 8  # threads: the last bytes of a file are waited for, not computed
_SEEN = "low long, high long, least double, most double"


class Span(NamedTuple):
    """The least and the most of some values. Without any, the least is more than the most."""

    low: Any = math.inf
    high: Any = -math.inf

    def joined(self, *others: Span) -> Span:
        """With the values of others."""
        every = (self, *others)
        return Span(min(each.low for each in every), max(each.high for each in every))


def of_files(
    spark: SparkSession, events: Found, clock: Clock, progress: Progress | None = None
) -> Span:
    """The span of all rows of files."""
    told, silent = _told(events, clock)
    if silent:
        layouts = (Layout((), (), (clock.name,)),) * len(events.schemas)
        rows = dealt(events, layouts, shares(silent, cores(spark)))
        told = told.joined(of_events(spark, rows, clock, progress))
    return told


def of_events(
    spark: SparkSession, events: Events, clock: Clock, progress: Progress | None = None
) -> Span:
    """The span of events that have to be looked at."""
    tasks, look = len(events.shares), _Look(events, clock)
    if not tasks:
        return Span()

    rows = watched(spark, numbered(spark, tasks, look.run, _SEEN).collect, tasks, progress)
    ends = ("least", "most") if clock.kind == DECIMAL else ("low", "high")
    found = [Span(row[ends[0]], row[ends[1]]) for row in rows if row[ends[0]] is not None]
    return Span().joined(*found)


class _Look(NamedTuple):
    """What workers are told."""

    events: Events
    clock: Clock

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes numbers of shares, gives the span of each."""
        for batch in batches:
            for share in batch.column(0).to_pylist():
                found = self._share(share)
                ends = [None, None] if found.low > found.high else [*found]
                decimal = self.clock.kind == DECIMAL
                low, high, least, most = [None, None, *ends] if decimal else [*ends, None, None]
                yield pa.RecordBatch.from_pydict(
                    {
                        "low": pa.array([low], pa.int64()),
                        "high": pa.array([high], pa.int64()),
                        "least": pa.array([least], pa.float64()),
                        "most": pa.array([most], pa.float64()),
                    }
                )

    def _share(self, share: int) -> Span:
        found = Span()
        for piece in self.events.pieces(share):
            column = column_at(piece.layout.readable(piece.table), self.clock.path)
            if column is not None:
                found = found.joined(_of(self.clock, column))
        return found


def _of(clock: Clock, column: Any) -> Span:
    values, known = clock.values(column)
    values = values[known]
    return Span(values.min().item(), values.max().item()) if len(values) else Span()


# -- what files say --------------------------------------------------------------------------------


def _told(events: Found, clock: Clock) -> tuple[Span, list[Rows]]:
    """What row groups say, and those that say nothing."""
    groups: dict[int, list[Rows]] = {}
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


def _said(file: str, groups: Sequence[Rows], clock: Clock) -> list[Span | None]:
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
