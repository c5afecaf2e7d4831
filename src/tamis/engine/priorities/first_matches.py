"""The first match of each event: of those that match, the one with the highest priority.

The matcher finds all candidates: it has no order in which it could stop. A pass over them adds
about a third to that time (100,000 subscriptions, 35 matches of each event). What is saved is the
rest of the work: a candidate with patterns, a residual or calls of operators is verified only if it
comes before all that match without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.files.arrays import Bools, Int64s
from tamis.index.kernel import kernel
from tamis.match.answers import FoundSlots, Matches

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

_NONE_OPEN = np.zeros(0, np.bool_)


def candidates(engine: Engine, found: Matches) -> Matches:
    """Of each event, the first candidate that surely matches, and those before it."""
    parts = [each for each in (engine.patterns, engine.residuals, engine.calls) if len(each)]
    if not parts:
        return found
    is_open = np.zeros(len(found.slots), np.bool_)
    for part in parts:
        is_open |= part.asks(found.slots)
    ranks = engine.slot_table.ranks()
    first = _first(found.starts, found.slots, *ranks, is_open)
    return Matches(*_before(found.starts, found.slots, *ranks, is_open, first))


def first_of(engine: Engine, found: Matches) -> Matches:
    """The first match of each event."""
    first = _first(found.starts, found.slots, *engine.slot_table.ranks(), _NONE_OPEN)
    starts = np.zeros(len(found) + 1, np.int64)
    np.cumsum(first >= 0, out=starts[1:])
    return Matches(starts, found.slots[first[first >= 0]])


@kernel
def _first(
    starts: Int64s, slots: FoundSlots, priority: Int64s, arrival: Int64s, is_open: Bools
) -> Int64s:
    """The place of the first candidate of each event, or -1. Reading the ranks costs most."""
    first = np.full(len(starts) - 1, -1, np.int64)
    for e in range(len(starts) - 1):
        best = -1
        high = late = np.int64(0)
        for i in range(starts[e], starts[e + 1]):
            if len(is_open) and is_open[i]:
                continue
            slot = slots[i]
            p = priority[slot]
            if best >= 0 and p < high:
                continue
            a = arrival[slot]
            if best < 0 or p > high or a < late:
                best, high, late = i, p, a
        first[e] = best
    return first


@kernel
def _before(
    starts: Int64s,
    slots: FoundSlots,
    priority: Int64s,
    arrival: Int64s,
    is_open: Bools,
    first: Int64s,
) -> tuple[Int64s, FoundSlots]:
    """The first candidates, and the open ones before them."""
    left = np.empty(len(starts), np.int64)
    found = np.empty_like(slots)
    to = 0
    for e in range(len(starts) - 1):
        left[e] = to
        best = first[e]
        for i in range(starts[e], starts[e + 1]):
            kept = i == best
            if is_open[i]:
                kept = best < 0
                if not kept:
                    slot, other = slots[i], slots[best]
                    p, q = priority[slot], priority[other]
                    # One subscription may have both: an open clause need not be verified then.
                    kept = p > q or (p == q and arrival[slot] < arrival[other])
            if kept:
                found[to] = slots[i]
                to += 1
    left[len(starts) - 1] = to
    return left, found[:to].copy()
