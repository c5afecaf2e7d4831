"""A hash map from pairs of integers to integers, usable in kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int64s, zeros
from tamis.index.growth import HoldsArrays
from tamis.index.kernel import inlined, kernel


class PairCells(NamedTuple):
    """The map as kernels see it: open addressing; `value` is -1 in a free cell."""

    first: Int64s
    second: Int64s
    value: Int64s


class PairMap(HoldsArrays):
    """Maps (first, second) to a value of 0 or more. Linear probing; at most half full."""

    def clear(self) -> None:
        self.cells = _cells(8)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def find(self, first: Int64s, second: Int64s) -> Int64s:
        """The value of each pair, or -1 if the pair is missing."""
        return _find_all(self.cells, first, second)

    def put(self, first: Int64s, second: Int64s, values: Int64s) -> None:
        """Set the value of each pair. If a pair occurs twice, the later value wins."""
        self._resize(self._used + len(first))
        self._used += _put_all(self.cells, first, second, values)

    def pop(self, first: Int64s, second: Int64s) -> None:
        """Remove pairs, which must be in the map."""
        missing = _pop_all(self.cells, first, second)
        assert missing < 0, f"({first[missing]}, {second[missing]}) is not in the map"
        self._used -= len(first)
        self._resize(self._used)

    def reserve(self, more: int) -> None:
        """Reserve capacity for `more` pairs that a kernel will add."""
        self._resize(self._used + more)

    def changed(self, by: int) -> None:
        """Record that kernels changed the number of pairs by `by`."""
        self._used += by
        self._resize(self._used)

    def check(self) -> None:
        """Raise if a pair cannot be found or the count is wrong."""
        cells = self.cells
        used = np.flatnonzero(cells.value >= 0)
        assert len(used) == self._used
        assert 2 * self._used <= len(cells.value), "at most half full"
        assert (self.find(cells.first[used], cells.second[used]) == cells.value[used]).all()

    def _resize(self, wanted: int) -> None:
        size = len(self.cells.value)
        if 2 * wanted > size or (size > 64 and 16 * wanted < size):
            old = self.cells
            self.cells = _cells(max(8, 1 << (2 * wanted).bit_length()))
            used = old.value >= 0
            _put_all(self.cells, old.first[used], old.second[used], old.value[used])


def _cells(size: int) -> PairCells:
    return zeros(PairCells, size)._replace(value=np.full(size, -1, np.int64))


@kernel
def _home(first: int, second: int, size: int) -> int:
    """The home cell of a pair: both words mixed (SplitMix64), modulo `size`, a power of two."""
    x = np.uint64(first) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(second)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return int(np.int64(x & np.uint64(size - 1)))


@inlined
def _cell(cells: PairCells, first: int, second: int) -> int:
    """The cell of a pair, or the free cell where it would go."""
    mask = len(cells.value) - 1
    at = _home(first, second, mask + 1)
    while cells.value[at] >= 0 and (cells.first[at] != first or cells.second[at] != second):
        at = (at + 1) & mask
    return at


@kernel
def find(cells: PairCells, first: int, second: int) -> int:
    """The value of a pair, or -1, which is also the value of a free cell."""
    return int(cells.value[_cell(cells, first, second)])


@kernel
def _find_all(cells: PairCells, first: Int64s, second: Int64s) -> Int64s:
    found = np.empty(len(first), np.int64)
    for i in range(len(first)):
        found[i] = find(cells, first[i], second[i])
    return found


@kernel
def put(cells: PairCells, first: int, second: int, value: int) -> bool:
    """Set the value of a pair. There must be capacity. Returns whether the pair is new."""
    at = _cell(cells, first, second)
    fresh = bool(cells.value[at] < 0)
    cells.first[at] = first
    cells.second[at] = second
    cells.value[at] = value
    return fresh


@kernel
def pop(cells: PairCells, first: int, second: int) -> bool:
    """Remove a pair. Returns whether it was in the map."""
    mask = len(cells.value) - 1
    gap = _cell(cells, first, second)
    if cells.value[gap] < 0:
        return False
    # Close the gap: move back every later pair of the run that may go here.
    at = (gap + 1) & mask
    while cells.value[at] >= 0:
        home = _home(cells.first[at], cells.second[at], mask + 1)
        if ((at - home) & mask) >= ((at - gap) & mask):
            cells.first[gap] = cells.first[at]
            cells.second[gap] = cells.second[at]
            cells.value[gap] = cells.value[at]
            gap = at
        at = (at + 1) & mask
    cells.value[gap] = -1
    return True


@kernel
def _put_all(cells: PairCells, first: Int64s, second: Int64s, values: Int64s) -> int:
    fresh = 0
    for i in range(len(first)):
        fresh += put(cells, first[i], second[i], values[i])
    return fresh


@kernel
def _pop_all(cells: PairCells, first: Int64s, second: Int64s) -> int:
    for i in range(len(first)):
        if not pop(cells, first[i], second[i]):
            return i
    return -1
