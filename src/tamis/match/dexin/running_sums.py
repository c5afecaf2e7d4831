"""Running sums over the slots of DEXIN: how many ends are in the slots up to each."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.kernel import kernel
from tamis.match.dexin.interval_ends import HIGH, LOW, Ends, list_of


@kernel
def running_sums(ends: Ends, lists: int) -> Int64s:
    """For each list, the number of ends in the slots of its side up to its own."""
    upto = np.zeros(lists, np.int64)
    for a in ends.used:
        for side in (LOW, HIGH):
            start = list_of(ends, a, side, 0)
            so_far = 0
            for at in range(start, start + ends.cells[a]):
                so_far += ends.lists.size[at]
                upto[at] = so_far
    return upto


@kernel
def shift_sums(ends: Ends, upto: Int64s, attributes: Int32s, lists: Int64s, change: int) -> None:
    """Update the sums of `running_sums` after ends were added to (1) or removed from (-1) lists."""
    for i in range(len(lists)):
        a = attributes[i]
        for side in (LOW, HIGH):
            start = list_of(ends, a, side, 0)
            if start <= lists[i] < start + ends.cells[a]:
                for at in range(lists[i], start + ends.cells[a]):
                    upto[at] += change
