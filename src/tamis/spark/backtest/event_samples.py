"""A few of the events that each subscription matched, chosen alike however the work is dealt out.

Each event has a rank, a hash of its number, and a subscription keeps its events of the lowest rank.
So samples are spread over all events, the same events give the same samples, and which task saw an
event does not matter. Subscriptions that match much the same share samples: few events are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.replay.parts import SEQUENCE

Int64s = NDArray[np.int64]
Ranks = NDArray[np.uint64]
_LAST = np.iinfo(np.uint64).max
_WAITING = 1 << 16  # pairs that wait to be sorted


def ranks(numbers: Int64s) -> Ranks:
    """The ranks of events: the numbers, mixed by splitmix64; no two are alike."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Ranks = mixed ^ (mixed >> np.uint64(31))
    return found


class EventSamples:
    """The events with the lowest ranks of each subscription, at most `most`."""

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
