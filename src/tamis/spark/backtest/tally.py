"""The tally of a back-test: the events that each subscription matched, by time, and samples.

A task writes the tally of its share to a file, and the driver adds the files up. A pair of an event
and a subscription is never an object, only a place in arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.validation import Refused
from tamis.errors import StoreError
from tamis.files.os_errors import os_errors_as
from tamis.spark.backtest.event_samples import EventSamples
from tamis.spark.events.time_axis import Times

Int64s = NDArray[np.int64]
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
