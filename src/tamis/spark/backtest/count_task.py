"""What a worker does for a back-test: read a share of the events, match it, and count.

The JVM only hears where the counts are. Pairs are counted as they come, a piece of the events at a
time; none of them is ever written down.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.encode.validation import Refused
from tamis.errors import SparkError
from tamis.replay.event_columns import column_at
from tamis.replay.event_source import Events, Pace, Piece, checked
from tamis.replay.parts import SEQUENCE
from tamis.spark.backtest.tally import Tally
from tamis.spark.backtest.time_axis import Axis, Clock, Times
from tamis.spark.runtime.operator_reports import since, total, written
from tamis.spark.runtime.worker_cache import opened

if TYPE_CHECKING:
    from tamis.engine import Engine
    from tamis.operators.report import Report

Int64s = NDArray[np.int64]
DONE = "task int, file string, operators string"


def leaders(engine: Engine) -> Int64s:
    """The slot by which an answer names each subscription, ascending."""
    slots = engine.matcher.clauses.live_slots()
    owners = engine.slot_table.owners(slots)
    return slots if owners is None else np.unique(owners).astype(np.int64)


class Trial(NamedTuple):
    """All that tasks have to know. A task is a share of the events, against all subscriptions."""

    events: Events
    shards: tuple[str, ...]
    firsts: tuple[int, ...]  # by shard, how many subscriptions are before it; and in all
    operators: bytes
    clock: Clock | None  # None: time is the number of an event
    axis: Axis
    samples: int
    folder: str  # for the counts

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes numbers of tasks, gives the files with what they counted."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                file, asked = self._task(number)
                yield pa.RecordBatch.from_pydict(
                    {
                        "task": pa.array([number], pa.int32()),
                        "file": pa.array([file]),
                        "operators": pa.array([written(asked)]),
                    }
                )

    def _task(self, number: int) -> tuple[str, Report]:
        """Count a share; where the counts are, and what operators were asked."""
        name = f"task-{number}-{uuid.uuid4().hex}"  # one that is tried again has another
        engines = [
            opened(folder, self.operators, shards=len(self.shards)) for folder in self.shards
        ]
        before = total(engine.report() for engine in engines)
        tally = _counted(self, number)
        try:
            tally.write(Path(self.folder) / name)
        except OSError as why:
            raise SparkError(
                f"{self.folder}: a worker cannot write there ({why.strerror}); on a cluster, name "
                "a folder for results that all machines share"
            ) from None
        return name, since(before, total(engine.report() for engine in engines))

    def tally(self, counts: Any = np.int64) -> Tally:
        """Nothing counted yet."""
        kind = self.axis.edges.dtype
        return Tally(self.firsts[-1], self.axis.buckets, self.samples, kind, counts)


def _counted(trial: Trial, share: int) -> Tally:
    """One shard after the other: what is not in use need not be in memory."""
    rows = trial.events.rows(share)
    tally = trial.tally(np.int32)  # a share has a million events, or few more
    # Of all events of the share, whether any shard has matched it.
    hit, placed = np.zeros(rows, np.bool_), np.zeros(rows, np.int64)
    for shard, folder in enumerate(trial.shards):
        task = _Shard(trial, tally, shard, opened(folder, trial.operators), hit, placed)
        pace = Pace()
        for piece in trial.events.pieces(share):
            pace.over(piece, task.take)
    tally.matched += np.bincount(placed[hit], minlength=tally.buckets)
    return tally


class _Shard:
    """One share against one shard. The first shard also counts events, and the dead."""

    def __init__(
        self,
        trial: Trial,
        tally: Tally,
        shard: int,
        engine: Engine,
        hit: NDArray[np.bool_],
        placed: Int64s,
    ) -> None:
        self._trial, self._tally, self._engine = trial, tally, engine
        self._first, self._hit, self._placed = shard == 0, hit, placed
        self._at = 0  # in the share
        slots = leaders(engine)
        # The number of a subscription, by its slot.
        self._number = np.zeros(int(slots.max(initial=-1)) + 1, np.int64)
        self._number[slots] = np.arange(len(slots)) + trial.firsts[shard]

    def take(self, some: Piece) -> int:
        """Match some events, and count; how many pairs there were."""
        read = _read(self._engine, some)
        values, places = self._times(some.numbers, read.table)
        if self._first:
            self._count(some.numbers, read, places)
        found = self._engine.match_batch(read.batch)
        counts = np.diff(found.starts)
        self._hit[self._at + read.rows[counts > 0]] = True
        self._at += len(places)
        if found.total:
            subscriptions, events = self._number[found.slots], np.repeat(read.rows, counts)
            self._tally.pairs(subscriptions, places[events], values[events])
            if self._trial.samples:
                numbers = pa.array(some.numbers)
                columns = some.layout.chosen(read.table).add_column(0, SEQUENCE, numbers)
                self._tally.samples.offer(subscriptions, events, columns)
        return found.total

    def _times(self, numbers: Int64s, table: pa.Table) -> tuple[Times, Int64s]:
        """When each event was, and in which bucket that is."""
        clock, axis, rows = self._trial.clock, self._trial.axis, len(numbers)
        if clock is None:
            return numbers, axis.places(numbers, np.ones(rows, np.bool_))
        column = column_at(table, clock.path)
        values, known = clock.values(pa.nulls(rows) if column is None else column)
        return values, axis.places(values, known)

    def _count(self, numbers: Int64s, read: _Read, places: Int64s) -> None:
        """Events, and those that are dead."""
        tally = self._tally
        tally.events += np.bincount(places, minlength=tally.buckets)
        self._placed[self._at : self._at + len(places)] = places
        if read.refused:
            dead = places[[row for row, _ in read.refused]]
            tally.dead += np.bincount(dead, minlength=tally.buckets)
            tally.refused(read.refused, numbers)


class _Read(NamedTuple):
    """Rows that were read: the events among them in codes, and why the others are none."""

    batch: EventBatch
    rows: Int64s  # which of the rows are events
    refused: list[Refused]
    table: pa.Table


def _read(engine: Engine, some: Piece) -> _Read:
    parted = some.layout.parted(some.table)
    batch, among, refused = checked(engine, parted.events)
    rows = np.arange(len(some.numbers)) if parted.rows is None else parted.rows
    late = [Refused(int(rows[row]), reason) for row, reason in refused]
    good = rows if among is None else rows[among]
    return _Read(batch, good, [*parted.refused, *late], parted.table)
