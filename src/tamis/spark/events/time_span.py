"""From when to when events are: by the footers of parquet files, or by reading all events.

The footer of a parquet file may have the least and the greatest value of a column for each row
group. Row groups without them, and logs, are read once before: by tasks, and of files only that
column.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from tamis.encode.lines.event_columns import column_at, type_at
from tamis.replay.event_source import EventSource
from tamis.replay.parquet_events import ParquetFiles, RowRange
from tamis.spark.events.time_axis import EventClock, is_text
from tamis.spark.runtime.job_runner import Progress, run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READERS = 8  # threads: footers are waited for, not computed
_SPAN = pa.schema([("span", pa.string())])  # as JSON: times are whole numbers or doubles


class TimeSpan(NamedTuple):
    """The least and the greatest of some values. Without values, low is above high."""

    low: Any = math.inf
    high: Any = -math.inf

    def joined(self, *others: TimeSpan) -> TimeSpan:
        every = (self, *others)
        return TimeSpan(min(each.low for each in every), max(each.high for each in every))


def span_of(
    spark: SparkSession, events: EventSource, clock: EventClock, progress: Progress | None = None
) -> TimeSpan:
    """The span of events, all of which are read for it."""
    rows = run_tasks(spark, len(events.shares), _SpanTask(events, clock).run, _SPAN, progress)
    return TimeSpan().joined(*(TimeSpan(*json.loads(row["span"])) for row in rows))


class _SpanTask(NamedTuple):
    """What tasks need."""

    events: EventSource
    clock: EventClock

    def run(self, share: int) -> Iterator[dict[str, Any]]:
        found = TimeSpan()
        for chunk in self.events.chunks(share):
            column = column_at(chunk.readable(), self.clock.path)
            if column is not None:
                found = found.joined(_of(self.clock, column))
        yield {"span": json.dumps(found)}


def _of(clock: EventClock, column: Any) -> TimeSpan:
    values, known = clock.values(column)
    values = values[known]
    return TimeSpan(values.min().item(), values.max().item()) if len(values) else TimeSpan()


# -- what footers say ------------------------------------------------------------------------------


def stated_span(events: ParquetFiles, clock: EventClock) -> tuple[TimeSpan, list[RowRange]]:
    """The span that row groups state, and the row groups that state none."""
    groups: dict[int, list[RowRange]] = {}
    for rows in events.groups:
        groups.setdefault(rows.file, []).append(rows)

    def said(file: int) -> list[TimeSpan | None]:
        return _said(events.files[file], groups[file], clock)

    stated, silent = TimeSpan(), []
    with ThreadPoolExecutor(_READERS) as pool:
        for file, spans in zip(groups, pool.map(said, groups), strict=True):
            for rows, span in zip(groups[file], spans, strict=True):
                if span is None:
                    silent.append(rows)
                else:
                    stated = stated.joined(span)
    return stated, silent


def _said(file: str, groups: Sequence[RowRange], clock: EventClock) -> list[TimeSpan | None]:
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


def _stated(facts: Any, kind: pa.DataType, clock: EventClock) -> TimeSpan | None:
    """The span that a row group states, if it is of use."""
    if facts is None or not facts.has_min_max:
        return None
    try:
        values, known = clock.values(pa.array([facts.min, facts.max], kind))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return TimeSpan(*values.tolist()) if known.all() else None
