"""Events of a log: columns, or lines of JSON; their numbers are those of the log's sequence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.model.schema import Schema
from tamis.replay.event_source import READ, EventChunk, Int64s, RowLayout
from tamis.store.log import Log
from tamis.store.pack import EVENTS, moments
from tamis.store.published import without_reserved
from tamis.store.schema_records import SchemaRange

_FEW = 512  # events: a share of its own is worth it from here on


class LogEvents(NamedTuple):
    """Events of a log, in shares."""

    log: str
    shares: tuple[tuple[int, int], ...]  # sequence numbers: the first, and the one after the last

    def rows(self, share: int) -> int:
        return Log.open(self.log).counts(*self.shares[share])[0]

    def chunks(self, share: int) -> Iterator[EventChunk]:
        """The events of a share, in order. Those that were appended one by one go together.

        Those of another schema are in another chunk: columns as they are, or lines to parse.
        """
        log = Log.open(self.log)
        for part in event_ranges(log, *self.shares[share]):
            yield from self._chunks(log, part)

    def _chunks(self, log: Log, part: SchemaRange) -> Iterator[EventChunk]:
        layout = row_layout(part.schema)
        waiting: list[pa.Table] = []
        numbers: list[Int64s] = []
        times: list[Int64s] = []

        def chunk() -> EventChunk:
            rows = pa.concat_tables(waiting)
            return EventChunk(np.concatenate(numbers), rows, layout, np.concatenate(times))

        for first, table in log.events(part.start, part.end):
            plain = without_reserved(table.replace_schema_metadata(None))
            full = sum(map(len, numbers)) + table.num_rows > READ
            if waiting and (full or not waiting[0].schema.equals(plain.schema)):
                yield chunk()
                waiting, numbers, times = [], [], []
            waiting.append(plain)
            numbers.append(np.arange(first, first + table.num_rows, dtype=np.int64))
            times.append(moments(table))
        if waiting:
            yield chunk()


def event_ranges(log: Log, start: int, end: int) -> list[SchemaRange]:
    """The schemas by which the events of a range are read, each with its part of the range."""
    return log.schemas(min(end, start or log.begin), end)


def row_layout(schema: Schema) -> RowLayout:
    """The layout of events of a log: columns as they are, or lines of JSON, of one schema."""
    return RowLayout(document=schema.text)


def log_shares(log: Log, start: int, end: int, most: int) -> list[tuple[int, int]]:
    """A range of a log in shares with about as many events each."""
    events = log.counts(start, end)[0]
    wanted = max(1, min(most, -(-events // _FEW)))
    if not events:
        return []
    cuts = [after_events(log, start, end, events * at // wanted) for at in range(1, wanted)]
    return [(low, high) for low, high in pairwise([start, *cuts, end]) if low < high]


def after_events(log: Log, start: int, end: int, events: int) -> int:
    """The number after so many events from `start` on, at most `end`; after one at least."""
    left = max(1, events)
    for segment in log.boundaries(start, end):
        if segment.kind == EVENTS:
            first = max(start, segment.first)
            if segment.end - first >= left:
                return min(end, first + left)
            left -= segment.end - first
    return end


def next_event(log: Log, start: int = 0, end: int | None = None) -> int | None:
    """The sequence number of the first event of a range; None where it has no events."""
    events = (each for each in log.boundaries(start, end) if each.kind == EVENTS)
    return next((max(start, each.first) for each in events), None)
