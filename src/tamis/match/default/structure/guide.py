"""A guide to cells: where among the cuts of an attribute to look for a value.

A binary search over two thousand cuts is eleven guesses, and each is a coin toss to the processor:
50 ns a value, more than all else that is done for it where subscriptions are few. So the range of
the cuts is divided into equal slots, two to four times as many as cuts, and for each it is noted
between which two cuts its values lie. That leaves a cut or two to compare with: 7 ns, where many
values of an attribute are looked up one after the other. Where cuts crowd together in few slots the
search there is the binary one, and no worse than it was.

The slots span the middle of the cuts: one that lies far out, as a 0 among doubles does, would make
all of them too wide. Values beyond are in the first slot or the last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import inlined

Int64s = NDArray[np.int64]
_SLOTS = 4  # for each cut, or half as many: a power of two is wide
_LAST = 2  # cuts that are compared with in any case
_OUTER = 64  # one cut in so many lies outside, at each end


class Guide(NamedTuple):
    """Slots by attribute: a value v is in slot `(v - base[a]) >> shift[a]`, or the last.

    Of the cuts of attribute a, `below[start[a] + slot]` are not above any value of the slot, and
    `below[start[a] + slot + 1]` not above some.
    """

    start: Int64s
    base: Int64s
    shift: Int64s
    below: NDArray[np.int32]


def make_guide(starts: Int64s, cuts: Int64s) -> Guide:
    """For the cuts `cuts[starts[a]:starts[a + 1]]` of each attribute, ascending. O(cuts)."""
    width = len(starts) - 1
    start, base, shift = (np.zeros(width + each, np.int64) for each in (1, 0, 0))
    below: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    for a in range(width):
        mine = cuts[starts[a] : starts[a + 1]]
        edges = np.zeros(0, np.int64)
        if len(mine):
            outer = len(mine) // _OUTER
            first, last = int(mine[outer]), int(mine[-1 - outer])
            # Numbers of Python: between the ends of 64 bits there may be more than 64 bits hold.
            shift[a] = max(0, ((last - first) // (_SLOTS * len(mine))).bit_length())
            base[a] = first
            steps = np.arange(1, ((last - first) >> int(shift[a])) + 1, dtype=np.uint64)
            edges = (np.uint64(first % 2**64) + (steps << np.uint64(shift[a]))).view(np.int64)
        inner = np.searchsorted(mine, edges, side="right")
        below.append(np.concatenate([[0], inner, [len(mine)]]).astype(np.int32))
        start[a + 1] = start[a] + len(below[-1])
    return Guide(start, base, shift, np.concatenate(below))


class GuideSlots(NamedTuple):
    """The slots of one attribute, for a loop over its values, and its cuts."""

    base: int
    shift: np.uint64
    last: np.uint64
    below: NDArray[np.int32]
    cuts: Int64s  # and those of attributes after it


@inlined
def slots_of(guide: Guide, start: Int64s, cuts: Int64s, attribute: int) -> GuideSlots:
    """The slots of an attribute, which has cuts."""
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
    # The difference may need all 64 bits; a value below the base is in slot 0, as the base is.
    far = np.uint64(max(value, slots.base)) - np.uint64(slots.base)
    return min(far >> slots.shift, slots.last)


@inlined
def cell_in(slots: GuideSlots, slot: np.uint64, value: int) -> int:
    """What `cell_of` says of a value of a slot: how many cuts are not above it."""
    below, cuts = slots.below, slots.cuts
    low, high = np.int64(below[slot]), np.int64(below[slot + np.uint64(1)])
    while high - low > _LAST:
        middle = (low + high) >> 1
        if cuts[middle] <= value:
            low = middle + 1
        else:
            high = middle
    # A comparison costs little, a wrong guess of how many are left costs ten times as much: so the
    # last ones are made whether they are needed or not.
    more = 0
    for i in range(_LAST):
        at = np.uint64(min(int(low + i), len(cuts) - 1))
        more += (low + i < high) & (cuts[at] <= value)
    return int(low + more)
