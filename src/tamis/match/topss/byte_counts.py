"""One-byte counters: the second stage of counting, shared by several matchers."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int64s, UInt8s, offsets
from tamis.index.kernel import kernel

MOST = 255  # the largest count that fits into a byte
_RUN = 64


@kernel
def full(hits: UInt8s, wanted: UInt8s, base: int, out: Int64s, found: int) -> int:
    """Append the slots (from `base` on) with full counters to `out[:found]`; reset the counters.

    A slot with target 0 is not counted. `out` has space for all slots plus one.
    """
    n = len(hits)
    for start in range(0, n, _RUN):
        end = min(start + _RUN, n)
        any_full = 0
        for i in range(start, end):  # compiled to SIMD: a run without a match is almost free
            any_full += (hits[i] == wanted[i]) & (wanted[i] != 0)
        if any_full:
            for i in range(start, end):
                out[found] = base + i
                found += (hits[i] == wanted[i]) & (wanted[i] != 0)
    hits[:] = 0
    return found


def by_event(ends: Int64s, events: int, slots: Int64s) -> tuple[Int64s, Int64s]:
    """Regroup slots that were found tile by tile into starts and slots per event.

    Run k belongs to event `k % events`. It ends at `ends[k]` and begins where the previous run
    ends.
    """
    event = np.repeat(np.arange(len(ends)) % events, np.diff(ends, prepend=0))
    starts = offsets(np.bincount(event, minlength=events))
    return starts, slots[np.argsort(event, kind="stable")]
