"""The last word on candidates: what an index let through is looked at in the table of clauses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.index.clauses import ClauseArrays, bind, holds, unbind
from tamis.index.elementary_predicates import EXACT, VERIFY, has_several
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel

Int64s = NDArray[np.int64]
Events = tuple[Int64s, NDArray[np.int32], Int64s]
"""Starts, attribute and code of pairs: event i has the pairs `starts[i]:starts[i + 1]`."""


@kernel
def verified(
    events: Events,
    candidates: tuple[Int64s, Int64s],
    clauses: ClauseArrays,
    width: int,
    exact: NDArray[np.int8],
    always: Int64s,
) -> tuple[Int64s, Int64s, int]:
    """Starts and slots of the candidates that hold, and how many terms were looked at.

    `candidates` are starts and slots too. Only those that the index does not tell whole are looked
    at (`exact` says, by slot); the slots in `always` are candidates of every event.
    """
    pair_starts, attribute, code = events
    old, slots = candidates
    n = len(pair_starts) - 1
    starts = np.zeros(n + 1, np.int64)
    out = np.empty(len(slots) + len(always), np.int64)
    first = np.zeros(width, np.int64)
    last = np.zeros(width, np.int64)
    found = 0
    looked = 0
    for event in range(n):
        begin, end = pair_starts[event], pair_starts[event + 1]
        several = has_several(attribute, begin, end)
        bind(attribute, begin, end, first, last)
        out = ensure_capacity(out, found, old[event + 1] - old[event] + len(always))
        for at in range(old[event], old[event + 1]):
            slot = slots[at]
            ok = exact[slot] == EXACT or (exact[slot] < VERIFY and not several)
            if not ok:
                ok, terms = holds(clauses, slot, first, last, code)
                looked += terms
            if ok:
                out[found] = slot
                found += 1
        for slot in always:
            ok, terms = holds(clauses, slot, first, last, code)
            looked += terms
            if ok:
                out[found] = slot
                found += 1
        unbind(attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, out[:found], looked


@kernel
def any_several(starts: Int64s, attribute: NDArray[np.int32]) -> bool:
    """Whether one of the events has several values of some attribute."""
    for event in range(len(starts) - 1):
        if has_several(attribute, starts[event], starts[event + 1]):
            return True
    return False
