"""Scratch arrays that counting matchers keep between calls, so that no event clears all of them.

Counters are zero between events: a kernel lists the slots whose counter it raises, and clears only
those. Marks are never cleared: they are compared with a stamp that is new for every event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.growth import HoldsArrays


class CounterScratch(NamedTuple):
    """The scratch arrays, as kernels see them."""

    hits: Int32s  # per slot: satisfied predicates; all zero between events
    touched: Int64s  # slots whose counter was raised
    seen: Int64s  # per key: stamp of the last event that met it
    keys: Int64s  # keys that the event met (predicates, cells, lists)


class Counters(HoldsArrays):
    """Owns the scratch arrays, which grow with the slots and keys of the matcher."""

    def clear(self) -> None:
        self.scratch = _scratch(0, 0)
        self._stamp = 0

    def fit(self, slots: int, keys: int = 0) -> CounterScratch:
        """The scratch arrays, large enough for these numbers of slots and keys."""
        have_slots, have_keys = len(self.scratch.hits), len(self.scratch.seen)
        if slots > have_slots or keys > have_keys:
            self.scratch = _scratch(
                max(have_slots, slots + slots // 2), max(have_keys, keys + keys // 2)
            )
        return self.scratch

    def stamps(self, events: int) -> int:
        """The stamp of the first event of a batch. Later events count up from it."""
        first = self._stamp
        self._stamp += events
        return first


def _scratch(slots: int, keys: int) -> CounterScratch:
    return CounterScratch(
        np.zeros(slots, np.int32),
        np.zeros(slots, np.int64),
        np.full(keys, -1, np.int64),
        np.zeros(keys, np.int64),
    )
