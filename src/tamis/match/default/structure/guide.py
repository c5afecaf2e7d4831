"""A guide to cells: a look-up table that narrows the search for a value among the cuts.

A binary search over two thousand cuts makes eleven comparisons, and the processor cannot predict
any of them: 50 ns per value, more than all other work if subscriptions are few. So the range of the
cuts is divided into equal slots, two to four times as many as cuts. Each slot records between which
cuts its values lie. That leaves one or two cuts to compare: 7 ns per value if many values of an
attribute are looked up in turn. If cuts crowd into few slots, the search there is binary and no
slower than without the guide.

The slots span only the middle of the cuts, because an outlier, like a 0 among doubles, would
make all slots too wide. Values outside are in the first or last slot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.kernel import inlined

_SLOTS = 4  # slots per cut; may be half as many, because the slot width is a power of two
_LAST = 2  # cuts that are always compared
_OUTER = 64  # one cut in 64 is outside the slots, at each end


class Guide(NamedTuple):
    """Slots by attribute: a value v is in slot `(v - base[a]) >> shift[a]`, or the last.

    `below[start[a] + slot]` is the number of cuts at or below every value in the slot;
    `below[start[a] + slot + 1]` is the number of cuts at or below at least one of its values.
    """

    start: Int64s
    base: Int64s
    shift: Int64s
    below: Int32s


def make_guide(starts: Int64s, cuts: Int64s) -> Guide:
    """Build the guide. The cuts of attribute a are `cuts[starts[a]:starts[a + 1]]`. O(cuts)."""
    width = len(starts) - 1
    start, base, shift = (np.zeros(width + each, np.int64) for each in (1, 0, 0))
    below: list[Int32s] = [np.zeros(0, np.int32)]
    for a in range(width):
        mine = cuts[starts[a] : starts[a + 1]]
        edges = np.zeros(0, np.int64)
        if len(mine):
            outer = len(mine) // _OUTER
            first, last = int(mine[outer]), int(mine[-1 - outer])
            # Python integers: the difference of two int64 values may not fit in an int64.
            shift[a] = max(0, ((last - first) // (_SLOTS * len(mine))).bit_length())
            base[a] = first
            steps = np.arange(1, ((last - first) >> int(shift[a])) + 1, dtype=np.uint64)
            edges = (np.uint64(first % 2**64) + (steps << np.uint64(shift[a]))).view(np.int64)
        inner = np.searchsorted(mine, edges, side="right")
        below.append(np.concatenate([[0], inner, [len(mine)]]).astype(np.int32))
        start[a + 1] = start[a] + len(below[-1])
    return Guide(start, base, shift, np.concatenate(below))


class GuideSlots(NamedTuple):
    """The slots and cuts of one attribute, for a loop over its values."""

    base: int
    shift: np.uint64
    last: np.uint64
    below: Int32s
    cuts: Int64s  # followed by those of later attributes


@inlined
def slots_of(guide: Guide, start: Int64s, cuts: Int64s, attribute: int) -> GuideSlots:
    """The slots of an attribute, which must have cuts."""
    first, end = guide.start[attribute], guide.start[attribute + 1]
    return GuideSlots(
        guide.base[attribute],
        np.uint64(guide.shift[attribute]),
        np.uint64(end - first - 2),
        guide.below[first:end],
        cuts[start[attribute] :],
    )


@inlined
def slot_of(slots: GuideSlots, value: int) -> np.uint64:
    """The slot of a value."""
    # Unsigned, because the difference may need all 64 bits. Values below the base are in slot 0.
    far = np.uint64(max(value, slots.base)) - np.uint64(slots.base)
    return min(far >> slots.shift, slots.last)


@inlined
def cell_in(slots: GuideSlots, slot: np.uint64, value: int) -> int:
    """The cell of a value in a slot, as in `cell_of`: the number of cuts at or below it."""
    below, cuts = slots.below, slots.cuts
    low, high = np.int64(below[slot]), np.int64(below[slot + np.uint64(1)])
    while high - low > _LAST:
        middle = (low + high) >> 1
        if cuts[middle] <= value:
            low = middle + 1
        else:
            high = middle
    # A comparison is cheap; a branch misprediction costs ten times as much. So the last comparisons
    # are always made, needed or not.
    more = 0
    for i in range(_LAST):
        at = np.uint64(min(int(low + i), len(cuts) - 1))
        more += (low + i < high) & (cuts[at] <= value)
    return int(low + more)
