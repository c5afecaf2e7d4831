"""Which predicates of an event one call answers."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tamis.index.array_types import Int32s, Int64s


class SharedCalls:
    """The predicates of an event, grouped by call.

    Grouped lazily: an event that makes no call does not pay for it.
    """

    def __init__(self, predicates: Int64s, calls: Int64s) -> None:
        self._predicates = predicates
        self.calls = calls  # from `ClauseGraph.calls`

    @cached_property
    def local(self) -> Int32s:
        """For each predicate the number of its call, from 0 on."""
        return np.unique(self.calls, return_inverse=True)[1].astype(np.int32)

    @cached_property
    def _sorted(self) -> Int64s:
        return self._predicates[np.argsort(self.local, kind="stable")]

    @cached_property
    def _first(self) -> Int64s:
        return np.append(0, np.cumsum(np.bincount(self.local)))

    def answered_with(self, predicate: int) -> Int64s:
        """The predicates that the call for this one (a local number) answers, itself included."""
        call = self.local[predicate]
        return self._sorted[self._first[call] : self._first[call + 1]]
