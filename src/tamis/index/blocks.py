"""Many growing lists in a few flat arrays.

A list is a block of the arrays with a start, a size and spare capacity. A list that outgrows its
block moves to a larger one at the end. The arrays are packed when most of their space is abandoned.
Kernels read the arrays directly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int64s, runs
from tamis.index.growth import HoldsArrays
from tamis.index.kernel import kernel


class Lists(NamedTuple):
    """Where the lists are, as kernels see it: list i is `start[i] : start[i] + size[i]`."""

    start: Int64s
    size: Int64s


class Blocks(HoldsArrays):
    """Lists numbered from 0, over parallel arrays of the given types.

    With `step=None` a full list doubles. A number grows it by that many items each time, which
    makes adding one by one quadratic (it exists to reproduce a paper that did so).
    """

    def __init__(self, *kinds: Any, step: int | None = None) -> None:
        self._kinds = kinds
        self._step = step
        self.clear()

    def clear(self) -> None:
        """Remove all lists and release the memory."""
        self.start = np.zeros(0, np.int64)
        self.size = np.zeros(0, np.int64)
        self._capacity = np.zeros(0, np.int64)
        self.pools: tuple[NDArray[Any], ...] = tuple(np.zeros(0, kind) for kind in self._kinds)
        self._top = 0  # end of the last block
        self._held = 0  # total capacity of all lists; less than top if blocks were abandoned
        self.total = 0

    def __len__(self) -> int:
        return len(self.size)

    @property
    def lists(self) -> Lists:
        """The positions of the lists, for kernels."""
        return Lists(self.start, self.size)

    def items(self, number: int) -> tuple[NDArray[Any], ...]:
        """The contents of one list, one slice per array."""
        block = slice(self.start[number], self.start[number] + self.size[number])
        return tuple(pool[block] for pool in self.pools)

    def flat(self) -> tuple[NDArray[Any], ...]:
        """The list of each item, and the items, in the order of the lists."""
        _, places = runs(self.start, self.size)
        lists = np.repeat(np.arange(len(self)), self.size)
        return lists, *(pool[places] for pool in self.pools)

    def number(self, lists: int) -> None:
        """Make sure that there are at least this many lists."""
        have = len(self.size)
        if lists > have:
            fresh = np.zeros(max(lists, have + have // 2, 8) - have, np.int64)
            self.start = np.concatenate([self.start, fresh])
            self.size = np.concatenate([self.size, fresh])
            self._capacity = np.concatenate([self._capacity, fresh])

    def reserve(self, lists: Int64s) -> None:
        """Reserve space for one more item per occurrence of a list in `lists`."""
        if len(lists) == 0:
            return
        self.number(int(lists.max()) + 1)
        if len(lists) == 1:
            self._fit(lists, self.size[lists] + 1)
        elif 8 * len(lists) > len(self.size):  # counting over all lists beats sorting `lists`
            self.widen(np.bincount(lists))
        else:
            which, more = np.unique(lists, return_counts=True)
            self._fit(which, self.size[which] + more)

    def widen(self, more: Int64s) -> None:
        """Reserve space for `more[i]` more items in list i, for kernels that write them directly.

        Kernels increase the sizes; the caller then reports the number of items with `written`.
        """
        self.number(len(more))
        which = np.flatnonzero(more)
        self._fit(which, self.size[which] + more[which])

    def written(self, number: int) -> None:
        """Record that items were written to lists. The sizes are already updated."""
        self.total += number

    def _fit(self, which: Int64s, wanted: Int64s) -> None:
        """Move each list with too little capacity for `wanted` items to a larger block."""
        short = wanted > self._capacity[which]
        if not short.any():
            return
        which, wanted = which[short], wanted[short]
        if self._step is None:
            capacity = np.maximum(wanted, 2 * self._capacity[which])
        else:
            capacity = -(-wanted // self._step) * self._step
        self._move(which, capacity)

    def append(self, lists: Int64s, *columns: NDArray[Any]) -> None:
        """Append item i of the columns to list `lists[i]`."""
        self.reserve(lists)
        places = _take(self.start, self.size, lists)
        for pool, column in zip(self.pools, columns, strict=True):
            pool[places] = column
        self.total += len(lists)

    def removed(self, number: int) -> None:
        """Record that items were removed from lists. The sizes are already updated."""
        self.total -= number
        if self._top > 1024 and self.total * 4 < self._top:
            self._move(np.arange(len(self.size)), self.size.copy())

    def check(self) -> None:
        """Raise if blocks overlap or do not add up."""
        assert int(self.size.sum()) == self.total
        assert (self.size <= self._capacity).all()
        assert int(self._capacity.sum()) == self._held <= self._top
        end = 0
        for at in np.lexsort((self._capacity, self.start)).tolist():
            if self._capacity[at]:
                assert self.start[at] >= end, "blocks overlap"
                end = int(self.start[at] + self._capacity[at])
        assert end <= self._top <= len(self.pools[0])

    def _move(self, which: Int64s, capacity: Int64s) -> None:
        """Move some lists to new blocks. Moves all lists if too much space would be abandoned."""
        self._held += int(capacity.sum()) - int(self._capacity[which].sum())
        if self._top + int(capacity.sum()) > 2 * self._held + 1024 or len(which) == len(self.size):
            kept = self._capacity.copy()
            kept[which] = capacity
            which, capacity = np.arange(len(self.size)), kept
            at, old = 0, self.pools
            self.pools = tuple(np.empty(int(capacity.sum()), kind) for kind in self._kinds)
        else:
            at, old = self._top, self.pools
            needed = at + int(capacity.sum())
            if needed > len(self.pools[0]):
                size = max(needed, len(self.pools[0]) * 3 // 2)
                self.pools = tuple(np.empty(size, kind) for kind in self._kinds)
                for pool, source in zip(self.pools, old, strict=True):
                    pool[:at] = source[:at]
        target = at + np.cumsum(capacity) - capacity
        for pool, source in zip(self.pools, old, strict=True):
            _copy(source, pool, self.start[which], target, self.size[which])
        self.start[which] = target
        self._capacity[which] = capacity
        self._top = at + int(capacity.sum())


@kernel
def _take(start: Int64s, size: Int64s, lists: Int64s) -> Int64s:
    """Extend each list by one place. Returns the new places."""
    places = np.empty(len(lists), np.int64)
    for i in range(len(lists)):
        at = lists[i]
        places[i] = start[at] + size[at]
        size[at] += 1
    return places


@kernel
def _copy(
    source: NDArray[Any], target: NDArray[Any], come: Int64s, go: Int64s, size: Int64s
) -> None:
    for i in range(len(come)):
        for k in range(size[i]):
            target[go[i] + k] = source[come[i] + k]
