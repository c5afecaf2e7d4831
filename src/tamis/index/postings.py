"""Postings: for each key a list of slots, in no particular order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.index.blocks import Blocks, Int64s
from tamis.index.kernel import kernel


class Postings(Blocks):
    """Lists of slots. Adding is appending; removing fills the gap with the last slot.

    add O(1), remove O(length of the list).
    """

    def __init__(self, step: int | None = None) -> None:
        super().__init__(np.int32, step=step)

    @property
    def slots(self) -> NDArray[np.int32]:
        """The array that the lists lie in."""
        return self.pools[0]

    def remove(self, lists: Int64s, slots: NDArray[Any]) -> None:
        """Take `slots[i]` out of list `lists[i]`, once."""
        missing = _remove(self.start, self.size, self.slots, lists, slots)
        assert missing < 0, f"slot {slots[missing]} is not in list {lists[missing]}"
        self.removed(len(lists))


@kernel
def _remove(
    start: Int64s, size: Int64s, pool: NDArray[np.int32], lists: Int64s, slots: NDArray[Any]
) -> int:
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
