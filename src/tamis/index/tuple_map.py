"""A hash map from tuples of integers to small ids, usable in kernels.

Equal tuples share one id with a reference count. Tuples are compared in full, so hash collisions
are harmless. Ids are recycled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Int32s, Int64s, zeros
from tamis.index.growth import HoldsArrays, grown
from tamis.index.kernel import kernel

_USED, _TOP, _FILLED, _FREE = range(4)  # positions in `counts`
_LOW32 = (1 << 32) - 1


class Tuples(NamedTuple):
    """The map as kernels see it.

    A free cell is -1. A used cell has 31 bits of hash above 32 bits of id, so looking up a missing
    tuple almost never compares tuples. The tuple of an id is `values[start:start + size]`. A free
    id has the size -1, and its start is the next free id.
    """

    cells: Int64s
    start: Int64s
    size: Int32s
    uses: Int32s
    values: Int64s


class TupleMap(HoldsArrays):
    """Interned tuples of int64. Linear probing; at most half full."""

    def clear(self) -> None:
        self.view = zeros(Tuples)._replace(cells=np.full(8, -1, np.int64))
        self._counts = np.array([0, 0, 0, -1], np.int64)  # used, top, filled, first free id
        self._live = 0  # values of tuples in use; less than filled if some were abandoned

    def __len__(self) -> int:
        """The number of distinct tuples."""
        return int(self._counts[_USED])

    @property
    def top(self) -> int:
        """One more than the highest id used since the map was last empty."""
        return int(self._counts[_TOP])

    def add(self, starts: Int64s, values: Int64s) -> tuple[Int64s, Int64s]:
        """Intern the tuples `values[starts[i]:starts[i + 1]]` and count a use of each.

        Returns the id of each tuple, and the new ids.
        """
        ids = np.empty(len(starts) - 1, np.int64)
        fresh = np.zeros(len(ids), np.bool_)
        done = 0
        while True:
            done = _add(self.view, self._counts, starts, values, done, ids, fresh)
            if done == len(ids):
                break
            self._grow(int(starts[done + 1] - starts[done]))
        made = ids[fresh]
        self._live += int(self.view.size[made].sum())
        return ids, made

    def find(self, starts: Int64s, values: Int64s) -> Int64s:
        """The id of each tuple, or -1 if it is missing."""
        return _find_all(self.view, starts, values)

    def remove(self, ids: Int64s) -> Int64s:
        """Release a use of each id. Returns the ids that became free."""
        gone, freed = _remove(self.view, self._counts, ids)
        self._live -= freed
        cells, start, size, uses, values = self.view
        if len(cells) > 64 and 16 * len(self) < len(cells):
            cells = _dealt(cells, 4 * len(self))
        if self._counts[_FILLED] > 1024 and 4 * self._live < self._counts[_FILLED]:
            values = _packed(self.view, self.top, self._live)
            self._counts[_FILLED] = self._live
        self.view = Tuples(cells, start, size, uses, values)
        return gone

    def check(self) -> None:
        """Raise if a tuple cannot be found, or counts do not add up."""
        view = self.view
        used = np.flatnonzero(view.size[: self.top] >= 0)
        assert len(used) == len(self) == int((view.cells >= 0).sum())
        assert 2 * len(self) <= len(view.cells), "at most half full"
        assert (view.uses[used] > 0).all()
        assert int(view.size[used].sum()) == self._live <= self._counts[_FILLED]
        starts = np.concatenate([[0], np.cumsum(view.size[used])])
        tuples = [view.values[view.start[id] : view.start[id] + view.size[id]] for id in used]
        values = np.concatenate([np.zeros(0, np.int64), *tuples])
        assert (self.find(starts, values) == used).all()

    def _grow(self, size: int) -> None:
        """Make space for at least one more tuple of this size."""
        cells, start, length, uses, values = self.view
        if 2 * (len(self) + 1) > len(cells):
            cells = _dealt(cells, 2 * len(cells))
        if self.top == len(start) and self._counts[_FREE] < 0:
            start, uses = grown(start, self.top + 1), grown(uses, self.top + 1)
            length = grown(length, self.top + 1, -1)
        values = grown(values, int(self._counts[_FILLED]) + size)
        self.view = Tuples(cells, start, length, uses, values)


@kernel
def find(tuples: Tuples, values: Int64s, begin: int, size: int) -> int:
    """The id of the tuple `values[begin:begin + size]`, or -1."""
    at = _place(tuples, _hash(values, begin, size), values, begin, size)
    cell = tuples.cells[at]
    return int(cell & _LOW32) if cell >= 0 else -1


@kernel
def find_in(
    cells: Int64s, start: Int64s, sizes: Int32s, tuples: Int64s, values: Int64s, size: int
) -> int:
    """The id of the tuple `values[:size]`, or -1. A version of `find` for inner loops.

    It takes the arrays of `Tuples` one by one, because passing them as one tuple costs time on each
    call (340 ns per look-up against 90).
    """
    hashed = _hash(values, 0, size)
    mask = len(cells) - 1
    at = hashed & mask
    while cells[at] >= 0:
        if cells[at] >> 32 == hashed:
            id = cells[at] & _LOW32
            if sizes[id] == size:
                same = 0
                while same < size and tuples[start[id] + same] == values[same]:
                    same += 1
                if same == size:
                    return int(id)
        at = (at + 1) & mask
    return -1


@kernel
def _hash(values: Int64s, begin: int, size: int) -> int:
    """A hash of 31 bits: each word is mixed into the previous ones; the high bits are kept."""
    x = np.uint64(size)
    for i in range(begin, begin + size):
        x = (x ^ np.uint64(values[i])) * np.uint64(0x9E3779B97F4A7C15)
        x = x ^ (x >> np.uint64(32))
    x = x * np.uint64(0xBF58476D1CE4E5B9)
    return int(np.int64(x >> np.uint64(33)))


@kernel
def _place(tuples: Tuples, hashed: int, values: Int64s, begin: int, size: int) -> int:
    """The cell of a tuple, or the free cell where it would go."""
    mask = len(tuples.cells) - 1
    at = hashed & mask
    while tuples.cells[at] >= 0:
        if tuples.cells[at] >> 32 == hashed:
            id = tuples.cells[at] & _LOW32
            if tuples.size[id] == size:
                start = tuples.start[id]
                same = 0
                while same < size and tuples.values[start + same] == values[begin + same]:
                    same += 1
                if same == size:
                    break
        at = (at + 1) & mask
    return at


@kernel
def _find_all(tuples: Tuples, starts: Int64s, values: Int64s) -> Int64s:
    ids = np.empty(len(starts) - 1, np.int64)
    for i in range(len(ids)):
        ids[i] = find(tuples, values, starts[i], starts[i + 1] - starts[i])
    return ids


@kernel
def _add(
    tuples: Tuples,
    counts: Int64s,
    starts: Int64s,
    values: Int64s,
    done: int,
    ids: Int64s,
    fresh: Bools,
) -> int:
    """Add tuples, starting with number `done`. Returns the number added when space runs out."""
    for i in range(done, len(ids)):
        begin, size = starts[i], starts[i + 1] - starts[i]
        hashed = _hash(values, begin, size)
        at = _place(tuples, hashed, values, begin, size)
        if tuples.cells[at] >= 0:
            id = tuples.cells[at] & _LOW32
            tuples.uses[id] += 1
            ids[i] = id
            continue
        if 2 * (counts[_USED] + 1) > len(tuples.cells):
            return i
        if counts[_FILLED] + size > len(tuples.values):
            return i
        id = counts[_FREE]
        if id >= 0:
            counts[_FREE] = tuples.start[id]
        elif counts[_TOP] < len(tuples.start):
            id = counts[_TOP]
            counts[_TOP] += 1
        else:
            return i
        start = counts[_FILLED]
        for k in range(size):
            tuples.values[start + k] = values[begin + k]
        tuples.start[id] = start
        tuples.size[id] = size
        tuples.uses[id] = 1
        tuples.cells[at] = hashed << 32 | id
        counts[_FILLED] += size
        counts[_USED] += 1
        ids[i] = id
        fresh[i] = True
    return len(ids)


@kernel
def _remove(tuples: Tuples, counts: Int64s, ids: Int64s) -> tuple[Int64s, int]:
    gone = np.empty(len(ids), np.int64)
    n = 0
    freed = 0
    mask = len(tuples.cells) - 1
    for id in ids:
        tuples.uses[id] -= 1
        if tuples.uses[id] > 0:
            continue
        size = tuples.size[id]
        hashed = _hash(tuples.values, tuples.start[id], size)
        gap = _place(tuples, hashed, tuples.values, tuples.start[id], size)
        # Close the gap: move back every later cell of the run that may go here.
        at = (gap + 1) & mask
        while tuples.cells[at] >= 0:
            home = (tuples.cells[at] >> 32) & mask
            if ((at - home) & mask) >= ((at - gap) & mask):
                tuples.cells[gap] = tuples.cells[at]
                gap = at
            at = (at + 1) & mask
        tuples.cells[gap] = -1
        tuples.size[id] = -1
        tuples.start[id] = counts[_FREE]
        counts[_FREE] = id
        counts[_USED] -= 1
        freed += size
        gone[n] = id
        n += 1
    return gone[:n], freed


def _dealt(cells: Int64s, wanted: int) -> Int64s:
    """The same cells in a table of at least the wanted size, a power of two."""
    table = np.full(max(8, 1 << (wanted - 1).bit_length()), -1, np.int64)
    _deal(cells, table)
    return table


@kernel
def _deal(cells: Int64s, table: Int64s) -> None:
    mask = len(table) - 1
    for cell in cells:
        if cell >= 0:
            at = (cell >> 32) & mask
            while table[at] >= 0:
                at = (at + 1) & mask
            table[at] = cell


@kernel
def _packed(tuples: Tuples, top: int, live: int) -> Int64s:
    """The values of the tuples in use, without holes. Updates their starts."""
    values = np.empty(live, np.int64)
    n = 0
    for id in range(top):
        start = tuples.start[id]
        if tuples.size[id] >= 0:
            tuples.start[id] = n
        for k in range(tuples.size[id]):
            values[n + k] = tuples.values[start + k]
        n += max(tuples.size[id], 0)
    return values
