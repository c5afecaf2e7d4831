"""Counters of one byte: the second stage of counting, whatever says which clauses to count for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import kernel

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]

MOST = 255  # predicates that one byte can count
_RUN = 64


@kernel
def full(hits: Bytes, wanted: Bytes, base: int, out: Int64s, found: int) -> int:
    """Append to `out[:found]` the slots (from `base` on) whose counter is full, clear the counters.

    A slot that wants 0 is not counted. `out` has room for all slots and one more.
    """
    n = len(hits)
    for start in range(0, n, _RUN):
        end = min(start + _RUN, n)
        any_full = 0
        for i in range(start, end):  # compiled to SIMD: a run without a match costs next to nothing
            any_full += (hits[i] == wanted[i]) & (wanted[i] != 0)
        if any_full:
            for i in range(start, end):
                out[found] = base + i
                found += (hits[i] == wanted[i]) & (wanted[i] != 0)
    hits[:] = 0
    return found


@kernel
def by_event(ends: Int64s, events: int, slots: Int64s) -> tuple[Int64s, Int64s]:
    """Starts and slots event by event, from slots found tile by tile.

    Run k, for event `k % events`, ends at `ends[k]` and begins where the run before it ends.
    """
    starts = np.zeros(events + 1, np.int64)
    begin = 0
    for k in range(len(ends)):
        starts[k % events + 1] += ends[k] - begin
        begin = ends[k]
    for event in range(events):
        starts[event + 1] += starts[event]
    free = starts[:-1].copy()
    out = np.empty(len(slots), np.int64)
    begin = 0
    for k in range(len(ends)):
        event = k % events
        for at in range(begin, ends[k]):
            out[free[event]] = slots[at]
            free[event] += 1
        begin = ends[k]
    return starts, out
