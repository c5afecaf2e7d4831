"""The task of a back-test: matches a share of the events, and counts.

The JVM only hears where the counts are. Pairs are counted as they come; none is ever written.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.lines.event_columns import column_at
from tamis.model.times.moments import NO_MOMENT
from tamis.replay.event_source import EventSource, Int64s
from tamis.replay.parts import SEQUENCE
from tamis.replay.pipeline import BatchPace, ReadEvents, match_with
from tamis.spark.backtest.tally import BacktestTally
from tamis.spark.events.time_axis import TIME, EventClock, TimeAxis, Times
from tamis.spark.runtime.operator_reports import CallCount, report_json
from tamis.spark.runtime.worker_cache import open_shards

if TYPE_CHECKING:
    from tamis.engine import Engine
    from tamis.match.answers import Matches

COUNTED = pa.schema([("task", pa.int32()), ("file", pa.string()), ("operators", pa.string())])


def leading_slots(engine: Engine) -> Int64s:
    """The slot by which an answer names each subscription, ascending."""
    slots = engine.matcher.clauses.live_slots()
    owners = engine.slot_table.owners(slots)
    return slots if owners is None else np.unique(owners).astype(np.int64)


class CountTask(NamedTuple):
    """What all tasks need. A task is a share of the events, with all subscriptions."""

    events: EventSource
    shards: tuple[str, ...]
    firsts: tuple[int, ...]  # by shard, how many subscriptions are before it; and of all
    operators: bytes
    clock: EventClock | None  # None: time is the number of an event
    axis: TimeAxis
    samples: int
    columns: tuple[str, ...] | None  # that samples have; None: all
    folder: str  # for the counts

    def run(self, share: int) -> Iterator[dict[str, Any]]:
        """A row of `COUNTED`: the file with the counts, and the calls of operators."""
        engines = open_shards(self.shards, self.operators)
        calls = CallCount(engines)
        rows = self.events.rows(share)
        tally = self.tally(np.int32)  # a share has a million events, or a few more
        # Of all rows of the share, whether a shard has matched it, and its bucket.
        hit, placed = np.zeros(rows, np.bool_), np.zeros(rows, np.int64)
        # One shard after the other: the others need not be in memory.
        for shard, engine in enumerate(engines):
            count = _ShardCount(self, tally, shard, engine, hit, placed)
            chunks = self.events.chunks(share)
            for events, found in match_with(engine, chunks, BatchPace(), when=self.moments):
                count.take(events, found)
        tally.matched += np.bincount(placed[hit], minlength=tally.buckets)
        name = f"task-{share}-{uuid.uuid4().hex}"  # an attempt has a name of its own
        tally.write(Path(self.folder) / name)
        yield {"task": share, "file": name, "operators": report_json(calls.report())}

    def moments(self, events: ReadEvents) -> Int64s | None:
        """When valid events were: by the clock, if that has times, or else by their log."""
        if self.clock is None or self.clock.kind != TIME:
            return events.moments
        column = column_at(events.table, self.clock.path)
        many = len(events.chunk.numbers)
        values, known = self.clock.values(pa.nulls(many) if column is None else column)
        found: Int64s = np.where(known, values, NO_MOMENT)[events.valid.rows]
        return found

    def tally(self, counts: Any = np.int64) -> BacktestTally:
        """A tally without counts."""
        kind = self.axis.edges.dtype
        return BacktestTally(self.firsts[-1], self.axis.buckets, self.samples, kind, counts)


class _ShardCount:
    """Counts the pairs of a share with one shard. The first shard also counts events."""

    def __init__(
        self,
        task: CountTask,
        tally: BacktestTally,
        shard: int,
        engine: Engine,
        hit: NDArray[np.bool_],
        placed: Int64s,
    ) -> None:
        self._task, self._tally = task, tally
        self._first, self._hit, self._placed = shard == 0, hit, placed
        self._at = 0  # in the share
        slots = leading_slots(engine)
        # The number of a subscription, by its slot.
        self._number = np.zeros(int(slots.max(initial=-1)) + 1, np.int64)
        self._number[slots] = np.arange(len(slots)) + task.firsts[shard]

    def take(self, events: ReadEvents, found: Matches) -> None:
        """Count the pairs of some events."""
        numbers, rows = events.chunk.numbers, events.valid.rows
        values, places = self._times(events)
        if self._first:
            self._count_events(events, places)
        counts = np.diff(found.starts)
        self._hit[self._at + rows[counts > 0]] = True
        self._at += len(places)
        if found.total:
            subscriptions, matched = self._number[found.slots], np.repeat(rows, counts)
            self._tally.pairs(subscriptions, places[matched], values[matched])
            if self._task.samples:
                columns = self._selected(events.table)
                columns = columns.add_column(0, SEQUENCE, pa.array(numbers))
                self._tally.samples.offer(subscriptions, matched, columns)

    def _selected(self, table: pa.Table) -> pa.Table:
        """The columns that samples have, as far as the events have them."""
        if self._task.columns is None:
            return table
        found = {name: column_at(table, name.split(".")) for name in self._task.columns}
        return pa.table({name: column for name, column in found.items() if column is not None})

    def _times(self, events: ReadEvents) -> tuple[Times, Int64s]:
        """When each row was, and in which bucket that is."""
        clock, axis, numbers = self._task.clock, self._task.axis, events.chunk.numbers
        if clock is None:
            return numbers, axis.places(numbers, np.ones(len(numbers), np.bool_))
        column = column_at(events.table, clock.path)
        values, known = clock.values(pa.nulls(len(numbers)) if column is None else column)
        return values, axis.places(values, known)

    def _count_events(self, events: ReadEvents, places: Int64s) -> None:
        tally, refused = self._tally, events.valid.refused
        tally.events += np.bincount(places, minlength=tally.buckets)
        self._placed[self._at : self._at + len(places)] = places
        if refused:
            dead = places[[row for row, _ in refused]]
            tally.dead += np.bincount(dead, minlength=tally.buckets)
            tally.refused(refused, events.chunk.numbers)
