"""Ordered lists: each holds values sorted by an int64 key and found by bisection."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int32s, Int64s
from tamis.index.blocks import Blocks, Lists
from tamis.index.kernel import kernel


class OrderedLists(Blocks):
    """Sorted lists of (key, value).

    add and remove O(length of the list), at the speed of a memory move. Many items at once are
    sorted in together.
    """

    def __init__(self) -> None:
        super().__init__(np.int64, np.int32)

    @property
    def keys(self) -> Int64s:
        """The keys, ascending within each list."""
        return self.pools[0]

    @property
    def values(self) -> Int32s:
        """The values, parallel to the keys."""
        return self.pools[1]

    def add(self, lists: Int64s, keys: Int64s, values: NDArray[Any]) -> None:
        """Put (key i, value i) into list `lists[i]`."""
        which = np.unique(lists)
        self.number(int(which.max(initial=-1)) + 1)
        before = self.size[which]
        self.append(lists, keys, values)
        _sort(self.lists, which, before, self.keys, self.values)

    def remove(self, lists: Int64s, keys: Int64s, values: NDArray[Any]) -> None:
        """Remove (key i, value i) from list `lists[i]`."""
        missing = _remove(self.lists, self.keys, self.values, lists, keys, values)
        assert missing < 0, f"key {keys[missing]} is not in list {lists[missing]}"
        self.removed(len(lists))

    def check(self) -> None:
        super().check()
        for number in range(len(self)):
            keys, _ = self.items(number)
            assert (keys[1:] >= keys[:-1]).all(), "keys ascend"


@kernel
def bisect_left(keys: Int64s, start: int, end: int, key: int) -> int:
    """The first position in `keys[start:end]` with a key at or above `key`."""
    while start < end:
        middle = (start + end) // 2
        if keys[middle] < key:
            start = middle + 1
        else:
            end = middle
    return start


@kernel
def bisect_right(keys: Int64s, start: int, end: int, key: int) -> int:
    """The first position in `keys[start:end]` with a key above `key`."""
    while start < end:
        middle = (start + end) // 2
        if keys[middle] <= key:
            start = middle + 1
        else:
            end = middle
    return start


@kernel
def _sort(lists: Lists, which: Int64s, before: Int64s, keys: Int64s, values: Int32s) -> None:
    """Sort the appended items (those after the first `before`) into place."""
    for i in range(len(which)):
        at = which[i]
        first, end = lists.start[at], lists.start[at] + lists.size[at]
        if lists.size[at] - before[i] <= 4:  # few: insertion sort
            for new in range(first + before[i], end):
                key, value = keys[new], values[new]
                place = bisect_right(keys, first, new, key)
                for k in range(new, place, -1):
                    keys[k] = keys[k - 1]
                    values[k] = values[k - 1]
                keys[place] = key
                values[place] = value
        else:
            order = np.argsort(keys[first:end])
            keys[first:end] = keys[first:end][order]
            values[first:end] = values[first:end][order]


@kernel
def _remove(
    lists: Lists,
    keys: Int64s,
    values: Int32s,
    which: Int64s,
    gone: Int64s,
    gone_values: NDArray[Any],
) -> int:
    for i in range(len(which)):
        at = which[i]
        first, end = lists.start[at], lists.start[at] + lists.size[at]
        place = bisect_left(keys, first, end, gone[i])
        while place < end and keys[place] == gone[i] and values[place] != gone_values[i]:
            place += 1
        if place == end or keys[place] != gone[i]:
            return i
        for k in range(place, end - 1):
            keys[k] = keys[k + 1]
            values[k] = values[k + 1]
        lists.size[at] -= 1
    return -1
