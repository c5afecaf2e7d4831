"""Distinct elementary predicates, each kept once, and which of them an event satisfies.

The first of the two steps of every counting algorithm. Predicates are clustered by attribute and
comparator: equalities in a hash map, the others sorted by their constant, so that the satisfied
ones are a run at one end (or, for `!=`, all but a run). Ids of predicates are recycled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.blocks import Lists
from tamis.index.elementary_predicates import AT_LEAST, AT_MOST, BOUND, COMPARATORS, EQUAL, UNEQUAL
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import OrderedLists, bisect_left, bisect_right
from tamis.index.pair_map import PairCells, PairMap, find

Int64s = NDArray[np.int64]


class Predicates(NamedTuple):
    """As kernels see it. The cluster of (a, comparator) is list `a * COMPARATORS + comparator`."""

    cells: PairCells
    lists: Lists
    keys: Int64s
    values: NDArray[np.int32]


class PredicateIndex:
    """Interned predicates with reference counts."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything, and give the memory back."""
        self._ids = PairMap()
        self._sorted = OrderedLists()
        self._uses = np.zeros(0, np.int64)
        self._cluster = np.zeros(0, np.int64)
        self._constant = np.zeros(0, np.int64)
        self._free: list[int] = []
        self.top = 0  # one more than the highest id in use

    def __len__(self) -> int:
        """How many distinct predicates there are."""
        return len(self._ids)

    @property
    def view(self) -> Predicates:
        """For kernels."""
        return Predicates(
            self._ids.cells, self._sorted.lists, self._sorted.keys, self._sorted.values
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        own = self._uses.nbytes + self._cluster.nbytes + self._constant.nbytes
        return own + self._ids.nbytes + self._sorted.nbytes

    def add(
        self, attribute: NDArray[np.int32], comparator: NDArray[np.int8], constant: Int64s
    ) -> Int64s:
        """The id of each predicate; counts a use of it."""
        cluster = attribute.astype(np.int64) * COMPARATORS + comparator
        ids = self._ids.find(cluster, constant)
        unknown = np.flatnonzero(ids < 0)
        if len(unknown):
            order = unknown[np.lexsort((constant[unknown], cluster[unknown]))]
            sorted_cluster, sorted_constant = cluster[order], constant[order]
            first = np.ones(len(order), np.bool_)
            first[1:] = (sorted_cluster[1:] != sorted_cluster[:-1]) | (
                sorted_constant[1:] != sorted_constant[:-1]
            )
            fresh = np.flatnonzero(first)
            numbers = self._number(len(fresh))
            ids[order] = numbers[np.cumsum(first) - 1]
            new_cluster, new_constant = sorted_cluster[fresh], sorted_constant[fresh]
            self._cluster[numbers], self._constant[numbers] = new_cluster, new_constant
            self._ids.put(new_cluster, new_constant, numbers)
            ranged = new_cluster % COMPARATORS != EQUAL
            self._sorted.add(new_cluster[ranged], new_constant[ranged], numbers[ranged])
        np.add.at(self._uses, ids, 1)
        return ids

    def find(
        self, attribute: NDArray[np.int32], comparator: NDArray[np.int8], constant: Int64s
    ) -> Int64s:
        """The id of each predicate, -1 where it is not there."""
        return self._ids.find(attribute.astype(np.int64) * COMPARATORS + comparator, constant)

    def remove(self, ids: Int64s) -> Int64s:
        """Give back a use of each; gives the ids that nobody uses any more, now free."""
        np.subtract.at(self._uses, ids, 1)
        gone = np.unique(ids[self._uses[ids] == 0])
        if len(gone):
            cluster, constant = self._cluster[gone], self._constant[gone]
            self._ids.pop(cluster, constant)
            ranged = cluster % COMPARATORS != EQUAL
            self._sorted.remove(cluster[ranged], constant[ranged], gone[ranged])
            self._free.extend(gone.tolist())
        return gone

    def check(self) -> None:
        """Raise if the map, the clusters and the counts do not agree."""
        self._ids.check()
        self._sorted.check()
        used = np.flatnonzero(self._uses[: self.top])
        assert len(used) == len(self._ids)
        assert (self._ids.find(self._cluster[used], self._constant[used]) == used).all()
        ranged = self._cluster[used] % COMPARATORS != EQUAL
        assert self._sorted.total == int(ranged.sum())

    def _number(self, count: int) -> Int64s:
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        fresh = np.arange(self.top, self.top + count - len(reused))
        self.top += len(fresh)
        if self.top > len(self._uses):
            grow = np.zeros(max(self.top, 2 * len(self._uses), 64) - len(self._uses), np.int64)
            self._uses = np.concatenate([self._uses, grow])
            self._cluster = np.concatenate([self._cluster, grow])
            self._constant = np.concatenate([self._constant, grow])
        return np.concatenate([np.array(reused, np.int64), fresh])


@kernel
def satisfied(
    index: Predicates, a: int, v: int, seen: Int64s, stamp: int, out: Int64s, n: int
) -> int:
    """Append to `out[:n]` the predicates that value v of attribute a satisfies; gives the new n.

    `seen[id] == stamp` marks predicates that another value of the same event satisfied already.
    """
    base = a * COMPARATORS
    id = find(index.cells, base + EQUAL, v)
    if id >= 0 and seen[id] != stamp:
        seen[id] = stamp
        out[n] = id
        n += 1
    for comparator in (AT_MOST, AT_LEAST, UNEQUAL, BOUND):
        at = base + comparator
        if at >= len(index.lists.size) or index.lists.size[at] == 0:
            continue
        start = index.lists.start[at]
        end = start + index.lists.size[at]
        skip_from = skip_to = end
        if comparator == AT_MOST:  # v <= c: the constants from v on
            start = bisect_left(index.keys, start, end, v)
        elif comparator == AT_LEAST:  # v >= c: the constants up to v
            end = bisect_right(index.keys, start, end, v)
        elif comparator == UNEQUAL:  # all but v
            skip_from = bisect_left(index.keys, start, end, v)
            skip_to = bisect_right(index.keys, start, end, v)
        for place in range(start, end):
            if skip_from <= place < skip_to:
                continue
            id = index.values[place]
            if seen[id] != stamp:
                seen[id] = stamp
                out[n] = id
                n += 1
    return n
