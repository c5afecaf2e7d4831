"""Postings: a list of slots for each key, in no particular order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int32s, Int64s
from tamis.index.blocks import Blocks
from tamis.index.kernel import kernel

_FEW = 64  # up to this many slots are searched for one by one


class Postings(Blocks):
    """Lists of slots. Adding appends; removing fills the gap with the last slot.

    add O(1), remove O(length of the list). Removing many slots at once sweeps each list once.
    """

    def __init__(self, step: int | None = None) -> None:
        super().__init__(np.int32, step=step)

    @property
    def slots(self) -> Int32s:
        """The array that holds all lists."""
        return self.pools[0]

    def remove(self, lists: Int64s, slots: NDArray[Any]) -> None:
        """Remove one occurrence of `slots[i]` from list `lists[i]`."""
        if len(lists) <= _FEW:
            missing = _remove(self.start, self.size, self.slots, lists, slots)
        else:
            order = np.lexsort((slots, lists))
            lists, slots = lists[order], slots[order]
            missing = _sweep(self.start, self.size, self.slots, lists, slots)
        assert missing < 0, f"slot {slots[missing]} is not in list {lists[missing]}"
        self.removed(len(lists))


@kernel
def _remove(start: Int64s, size: Int64s, pool: Int32s, lists: Int64s, slots: NDArray[Any]) -> int:
    for i in range(len(lists)):
        at = lists[i]
        last = start[at] + size[at] - 1
        place = start[at]
        while place <= last and pool[place] != slots[i]:
            place += 1
        if place > last:
            return i
        pool[place] = pool[last]
        size[at] -= 1
    return -1


@kernel
def _sweep(start: Int64s, size: Int64s, pool: Int32s, lists: Int64s, slots: NDArray[Any]) -> int:
    """Remove sorted (list, slot) pairs in one pass over each list."""
    taken = np.zeros(len(lists), np.bool_)
    first = 0
    while first < len(lists):
        at = lists[first]
        last = first
        while last < len(lists) and lists[last] == at:
            last += 1
        kept = start[at]
        for place in range(start[at], start[at] + size[at]):
            low, high = first, last  # bisect for the slot among those to remove
            while low < high:
                middle = (low + high) // 2
                if slots[middle] < pool[place]:
                    low = middle + 1
                else:
                    high = middle
            while low < last and slots[low] == pool[place] and taken[low]:
                low += 1  # a slot that is in the list twice may be removed twice
            if low < last and slots[low] == pool[place]:
                taken[low] = True
            else:
                pool[kept] = pool[place]
                kept += 1
        size[at] = kept - start[at]
        first = last
    for i in range(len(taken)):
        if not taken[i]:
            return i
    return -1
