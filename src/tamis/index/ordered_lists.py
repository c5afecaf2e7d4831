"""Lists of int32 values with int64 keys, in any order or sorted by key."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Bools, Int32s, Int64s
from tamis.index.blocks import Blocks, Lists
from tamis.index.kernel import kernel


class KeyedLists(Blocks):
    """Lists of (key, value), in no particular order. add O(1), remove O(length of the list)."""

    def __init__(self) -> None:
        super().__init__(np.int64, np.int32)

    @property
    def keys(self) -> Int64s:
        """The keys."""
        return self.pools[0]

    @property
    def values(self) -> Int32s:
        """The values, parallel to the keys."""
        return self.pools[1]

    def add(self, lists: Int64s, keys: Int64s, values: NDArray[Any]) -> None:
        """Put (key i, value i) into list `lists[i]`."""
        self.append(lists, keys, values)

    def remove(self, lists: Int64s, keys: Int64s, values: NDArray[Any]) -> None:
        """Remove (key i, value i) from list `lists[i]`. The last item fills the gap."""
        self._removed(
            lists, keys, _take_out(self.lists, self.keys, self.values, lists, keys, values)
        )

    def sweep(self, lists: Int64s, gone: Bools) -> None:
        """Remove the items whose value is marked in `gone`, in one pass over these lists."""
        self.removed(_sweep(self.lists, self.keys, self.values, lists, gone))

    def _removed(self, lists: Int64s, keys: Int64s, missing: int) -> None:
        assert missing < 0, f"key {keys[missing]} is not in list {lists[missing]}"
        self.removed(len(lists))


class OrderedLists(KeyedLists):
    """Lists of (key, value), sorted by key and searched by bisection.

    add and remove O(length of the list), at the speed of a memory move. Many items at once are
    sorted in together.
    """

    def add(self, lists: Int64s, keys: Int64s, values: NDArray[Any]) -> None:
        which = np.unique(lists)
        self.number(int(which.max(initial=-1)) + 1)
        before = self.size[which]
        self.append(lists, keys, values)
        _sort(self.lists, which, before, self.keys, self.values)

    def remove(self, lists: Int64s, keys: Int64s, values: NDArray[Any]) -> None:
        self._removed(lists, keys, _remove(self.lists, self.keys, self.values, lists, keys, values))

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


@kernel
def _take_out(
    lists: Lists,
    keys: Int64s,
    values: Int32s,
    which: Int64s,
    gone: Int64s,
    gone_values: NDArray[Any],
) -> int:
    """Remove items in any order. Returns the position of a missing one, or -1."""
    for i in range(len(which)):
        place = lists.start[which[i]]
        last = place + lists.size[which[i]] - 1
        wanted = np.int32(gone_values[i])
        while place <= last and (values[place] != wanted or keys[place] != gone[i]):
            place += 1
            while place + 256 <= last:  # 256 values at a time, compiled to SIMD
                some = values[place : place + 256]
                there = 0
                for k in range(256):
                    there += some[k] == wanted
                if there:
                    break
                place += 256
        if place > last:
            return i
        keys[place] = keys[last]
        values[place] = values[last]
        lists.size[which[i]] -= 1
    return -1


@kernel
def _sweep(
    lists: Lists,
    keys: Int64s,
    values: Int32s,
    which: Int64s,
    gone: Bools,
) -> int:
    """Remove marked values from some lists. Returns their number."""
    removed = 0
    for at in which:
        first, end = lists.start[at], lists.start[at] + lists.size[at]
        kept = first
        for place in range(first, end):
            keys[kept] = keys[place]
            values[kept] = values[place]
            kept += not gone[values[kept]]
        lists.size[at] = kept - first
        removed += end - kept
    return removed
