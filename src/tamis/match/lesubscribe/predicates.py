"""Distinct elementary predicates, and the predicates that an event satisfies.

This is the first of the two steps of every counting algorithm. Predicates are clustered by
attribute and comparator. Equalities are in a hash map; the others are sorted by constant, so that
the satisfied ones form a run at one end (for `!=`, all but a run). Predicate ids are recycled.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.files.arrays import Int32s, Int64s
from tamis.index.blocks import Lists
from tamis.index.elementary_predicates import AT_LEAST, AT_MOST, BOUND, COMPARATORS, EQUAL, UNEQUAL
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import OrderedLists, bisect_left, bisect_right
from tamis.index.pair_map import PairCells, PairMap, find
from tamis.index.predicate_ids import PredicateIds


class Predicates(NamedTuple):
    """View for kernels. List `a * COMPARATORS + comparator` is the cluster of (a, comparator)."""

    cells: PairCells
    lists: Lists
    keys: Int64s
    values: Int32s


class PredicateIndex(PredicateIds):
    """Interned predicates: ids by hash; all except equalities also sorted by constant."""

    def clear(self) -> None:
        super().clear()
        self._ids = PairMap()
        self._sorted = OrderedLists()

    @property
    def view(self) -> Predicates:
        """The arrays for kernels."""
        return Predicates(
            self._ids.cells, self._sorted.lists, self._sorted.keys, self._sorted.values
        )

    def check(self) -> None:
        super().check()
        self._ids.check()
        self._sorted.check()
        ranged = self._cluster[self._used()] % COMPARATORS != EQUAL
        assert self._sorted.total == int(ranged.sum())

    def _find(self, cluster: Int64s, constant: Int64s) -> Int64s:
        return self._ids.find(cluster, constant)

    def _insert(self, cluster: Int64s, constant: Int64s, ids: Int64s) -> None:
        self._ids.put(cluster, constant, ids)
        ranged = cluster % COMPARATORS != EQUAL
        self._sorted.add(cluster[ranged], constant[ranged], ids[ranged])

    def _delete(self, cluster: Int64s, constant: Int64s, ids: Int64s) -> None:
        self._ids.pop(cluster, constant)
        ranged = cluster % COMPARATORS != EQUAL
        self._sorted.remove(cluster[ranged], constant[ranged], ids[ranged])


@kernel
def satisfied(
    index: Predicates, a: int, v: int, seen: Int64s, stamp: int, out: Int64s, n: int
) -> int:
    """Append the predicates that value v of attribute a satisfies to `out[:n]`; returns the new n.

    `seen[id] == stamp` marks predicates that another value of the same event already satisfied.
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
