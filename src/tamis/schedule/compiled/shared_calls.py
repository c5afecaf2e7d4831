"""Which predicates of an event one call answers."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tamis.schedule.compiled.graph import Int32s, Int64s


class Together:
    """The predicates of some survivors by call.

    Made for each numbering of survivors, and sorted when it is first looked into: an event for
    which no call is made pays for neither.
    """

    def __init__(self, predicates: Int64s, calls: Int64s) -> None:
        self._predicates = predicates
        self.calls = calls  # as `Graph.calls` has them

    @cached_property
    def dense(self) -> Int32s:
        """For each predicate the number of its call, from 0 on."""
        return np.unique(self.calls, return_inverse=True)[1].astype(np.int32)

    @cached_property
    def _sorted(self) -> Int64s:
        return self._predicates[np.argsort(self.dense, kind="stable")]

    @cached_property
    def _first(self) -> Int64s:
        return np.append(0, np.cumsum(np.bincount(self.dense)))

    def of(self, place: int) -> Int64s:
        """The predicates that are answered with the one in a place, this one included."""
        call = self.dense[place]
        return self._sorted[self._first[call] : self._first[call + 1]]
