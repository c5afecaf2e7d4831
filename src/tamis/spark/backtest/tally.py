"""The tally of a back-test: the events that each subscription matched, by time, and samples.

A task writes the tally of its share to a file, and the driver adds the files up. A pair of an event
and a subscription is never an object, only a place in arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.validation import Refused
from tamis.errors import StoreError
from tamis.files.os_errors import os_errors_as
from tamis.replay.parts import SEQUENCE
from tamis.spark.events.time_axis import Times

Int64s = NDArray[np.int64]
Ranks = NDArray[np.uint64]
_LAST = np.iinfo(np.uint64).max
_WAITING = 1 << 16  # pairs that wait to be sorted
OTHER = "other reasons"
_AT_ONCE = 1 << 22  # cells of the grid that pairs are counted in at once
_REASONS = 1_000  # distinct reasons that are counted apart


class PairGrid:
    """The number of pairs by subscription and bucket.

    Events that are read together mostly lie in a few buckets, so only those are counted in: with a
    million subscriptions, that takes a fifth of the time of sorting the pairs.
    """

    def __init__(self, subscriptions: int, buckets: int, kind: Any = np.int64) -> None:
        self.grid = np.zeros((subscriptions, buckets), kind)

    def add(self, subscriptions: Int64s, buckets: Int64s) -> None:
        if not len(buckets):
            return
        rows, low, high = len(self.grid), int(buckets.min()), int(buckets.max())
        wide = high - low + 1
        if rows * wide <= _AT_ONCE:
            keys = subscriptions * wide + (buckets - low)
            counted = np.bincount(keys, minlength=rows * wide).reshape(rows, wide)
            self.grid[:, low : high + 1] += counted.astype(self.grid.dtype, copy=False)
        else:
            keys, counts = np.unique(
                subscriptions * self.grid.shape[1] + buckets, return_counts=True
            )
            self.merge(keys, counts)

    def merge(self, keys: Int64s, counts: Int64s) -> None:
        """Add counts to cells of the grid, each named once."""
        flat = self.grid.reshape(-1)
        flat[keys] += counts.astype(flat.dtype, copy=False)

    def found(self) -> tuple[Int64s, NDArray[Any]]:
        """The cells that have pairs, in order, and how many."""
        flat = self.grid.reshape(-1)
        keys = np.flatnonzero(flat)
        return keys, flat[keys]


def ranks(numbers: Int64s) -> Ranks:
    """The ranks of events: the numbers, mixed by splitmix64; no two are alike."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Ranks = mixed ^ (mixed >> np.uint64(31))
    return found


class EventSamples:
    """At most `most` of the events that each subscription matched.

    Each event has a rank, a hash of its number, and a subscription keeps its events of the lowest
    rank. So samples are spread over all events, the same events give the same samples, and which
    task saw an event does not matter. Subscriptions that match much the same share samples: few
    events are kept.
    """

    def __init__(self, subscriptions: int, most: int) -> None:
        self._most = most
        self._subscription, self._number = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._waiting: list[tuple[Int64s, Int64s]] = []  # likewise, not sorted yet
        self._waits = 0
        # Ranks from here on are too high for a subscription.
        self._limit = np.full(subscriptions if most else 0, _LAST, np.uint64)
        self._events: list[pa.Table] = []  # tables of the same columns are one

    def offer(self, subscriptions: Int64s, rows: Int64s, events: pa.Table) -> None:
        """Take pairs of a subscription and an event, which is a row of a table with numbers."""
        if not self._most or not len(rows):
            return
        numbers = np.asarray(events[SEQUENCE])
        wanted = np.flatnonzero(ranks(numbers)[rows] < self._limit[subscriptions])
        if not len(wanted):
            return
        rows = rows[wanted]
        self._waiting.append((subscriptions[wanted], numbers[rows]))
        self._waits += len(wanted)
        self._add(events.take(pa.array(np.unique(rows))))
        # Not each time: all that is kept is sorted.
        if self._waits > max(_WAITING, len(self._number) // 2):
            self._settle()

    def _add(self, events: pa.Table) -> None:
        for at, table in enumerate(self._events):
            if table.schema.equals(events.schema):
                self._events[at] = pa.concat_tables([table, events])
                return
        self._events.append(events)

    def _settle(self) -> None:
        """Keep the pairs of the lowest ranks, and their events."""
        subscription, number = (
            np.concatenate([kept, *each])
            for kept, each in zip(
                (self._subscription, self._number), zip(*self._waiting, strict=True), strict=False
            )
        )
        rank = ranks(number)
        order = np.lexsort((rank, subscription))
        subscription, number, rank = subscription[order], number[order], rank[order]
        first = np.flatnonzero(np.diff(subscription, prepend=-1))
        counts = np.diff(np.append(first, len(subscription)))
        place = np.arange(len(subscription)) - np.repeat(first, counts)
        kept = place < self._most
        self._subscription, self._number = subscription[kept], number[kept]
        full = place == self._most - 1
        self._limit[subscription[full]] = rank[full]
        self._waiting, self._waits = [], 0
        self._prune()

    def _prune(self) -> None:
        numbers = np.unique(self._number)
        found = [_only(table, numbers) for table in self._events]
        self._events = [table for table in found if table.num_rows]

    def kept(self) -> tuple[Int64s, Int64s, list[pa.Table]]:
        """Pairs of a subscription and a number, and the events with these numbers."""
        if self._waiting:
            self._settle()
        return self._subscription, self._number, self._events

    def merge(self, subscriptions: Int64s, numbers: Int64s, events: Sequence[pa.Table]) -> None:
        """Add the samples of another task."""
        for table in events:
            there = np.asarray(table[SEQUENCE])
            order = np.argsort(there)
            at = order[np.searchsorted(there, numbers, sorter=order).clip(max=len(there) - 1)]
            mine = np.flatnonzero(there[at] == numbers)
            self.offer(subscriptions[mine], at[mine], table)


def _only(table: pa.Table, numbers: Int64s) -> pa.Table:
    """Events with these numbers, each once; a copy, so that the others are freed."""
    there, rows = np.unique(np.asarray(table[SEQUENCE]), return_index=True)
    return table.take(pa.array(rows[np.isin(there, numbers)])).combine_chunks()


class BacktestTally:
    """All counts of some events. Subscriptions and buckets are numbered from 0 on.

    One more bucket after the last is for events without a time.
    """

    def __init__(
        self, subscriptions: int, buckets: int, samples: int, kind: Any, counts: Any = np.int64
    ) -> None:
        self.buckets = buckets + 1
        self._counts = PairGrid(subscriptions, self.buckets, counts)
        limits = np.iinfo(kind) if np.issubdtype(kind, np.integer) else np.finfo(kind)
        self.first = np.full(subscriptions, limits.max, kind)
        self.last = np.full(subscriptions, limits.min, kind)
        self._totals = np.zeros((3, self.buckets), np.int64)
        self.events, self.matched, self.dead = self._totals  # by bucket
        self.reasons: dict[str, tuple[int, int]] = {}  # how many events, and the first of them
        self.samples = EventSamples(subscriptions, samples)

    def pairs(self, subscriptions: Int64s, places: Int64s, values: Times) -> None:
        """Count pairs: the subscription, and the bucket and the time of its event.

        Values of events without a time are ignored.
        """
        self._counts.add(subscriptions, places)
        known = places < self.buckets - 1
        if not known.all():
            subscriptions, values = subscriptions[known], values[known]
        np.minimum.at(self.first, subscriptions, values)
        np.maximum.at(self.last, subscriptions, values)

    def refused(self, refused: Iterable[Refused], numbers: Int64s) -> None:
        """Count refused rows; `numbers` are those of all rows."""
        for row, reason in refused:
            self._died(reason, 1, int(numbers[row]))

    def _died(self, reason: str, events: int, first: int) -> None:
        if reason not in self.reasons and len(self.reasons) >= _REASONS:
            reason = OTHER
        count, before = self.reasons.get(reason, (0, first))
        self.reasons[reason] = count + events, min(before, first)

    @property
    def grid(self) -> Int64s:
        """Matched events by subscription (rows) and bucket."""
        return self._counts.grid

    def over_time(self) -> tuple[Int64s, Int64s, Int64s]:
        """Subscription, bucket and matched events of the cells that have any, in order."""
        keys, counts = self._counts.found()
        return keys // self.buckets, keys % self.buckets, counts

    # -- on the way to the driver ------------------------------------------------------------------

    def write(self, path: Path) -> None:
        """Write it to a file, one table after the other."""
        keys, counts = self._counts.found()
        seen = np.flatnonzero(self.first <= self.last)
        subscriptions, numbers, events = self.samples.kept()
        tables = [
            pa.table({"key": keys, "count": counts}),
            pa.table({"seen": seen, "first": self.first[seen], "last": self.last[seen]}),
            pa.table({"events": self.events, "matched": self.matched, "dead": self.dead}),
            pa.table(
                {
                    "reason": pa.array(self.reasons, pa.string()),
                    "events": pa.array([count for count, _ in self.reasons.values()], pa.int64()),
                    "first": pa.array([first for _, first in self.reasons.values()], pa.int64()),
                }
            ),
            pa.table({"subscription": subscriptions, "number": numbers}),
            *events,
        ]
        with os_errors_as(StoreError, f"{path}: cannot be written"), path.open("xb") as file:
            for table in tables:
                with pa.ipc.new_stream(file, table.schema) as writer:
                    writer.write_table(table)

    def add(self, path: Path) -> None:
        """Add the tally of another task, from its file."""
        with pa.memory_map(str(path)) as file:
            tables = []
            while file.tell() < file.size():
                tables.append(pa.ipc.open_stream(file).read_all())
        counts, seen, totals, reasons, picked, *events = tables
        self._counts.merge(*_arrays(counts))
        rows, first, last = _arrays(seen)
        self.first[rows] = np.minimum(self.first[rows], first)
        self.last[rows] = np.maximum(self.last[rows], last)
        self._totals += np.stack(_arrays(totals))
        for reason, died, number in zip(*reasons.to_pydict().values(), strict=True):
            self._died(reason, died, number)
        subscriptions, numbers = _arrays(picked)
        self.samples.merge(subscriptions, numbers, events)


def _arrays(table: pa.Table) -> list[NDArray[Any]]:
    return [np.asarray(column) for column in table.columns]
