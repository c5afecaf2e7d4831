"""Predicates in ordered lists, one per attribute and comparator (TOPSS, section 3.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.bits import Words, set_bit
from tamis.index.blocks import Lists
from tamis.index.elementary_predicates import AT_LEAST, AT_MOST, BOUND, COMPARATORS, EQUAL, UNEQUAL
from tamis.index.kernel import inlined, kernel
from tamis.index.ordered_lists import OrderedLists, bisect_left, bisect_right
from tamis.match.topss.predicate_vector import PredicateVector


class Runs(NamedTuple):
    """View for kernels: list `cluster` has ascending constants and their ids."""

    lists: Lists
    keys: Int64s
    values: Int32s


class PredicateLists(PredicateVector):
    """Sorted arrays of constants; the satisfied ones are a run at one end, or all but one.

    `linear` scans each list from its head until no later constant can be satisfied, as in the
    paper. Otherwise bisection finds the end of the run, and only satisfied predicates are visited.
    """

    def __init__(self, linear: bool = False) -> None:
        self._linear = linear
        super().__init__()

    def clear(self) -> None:
        super().clear()
        self._sorted = OrderedLists()

    @property
    def view(self) -> Runs:
        """The arrays for kernels."""
        return Runs(self._sorted.lists, self._sorted.keys, self._sorted.values)

    def evaluate(
        self, starts: Int64s, attribute: Int32s, code: Int64s, bits: Words
    ) -> tuple[int, int]:
        return _evaluate(self.view, starts, attribute, code, bits, self._linear)

    def check(self) -> None:
        super().check()
        self._sorted.check()
        assert self._sorted.total == len(self)

    def _find(self, cluster: Int64s, constant: Int64s) -> Int64s:
        return _find_all(self.view, cluster, constant)

    def _insert(self, cluster: Int64s, constant: Int64s, ids: Int64s) -> None:
        self._sorted.add(cluster, constant, ids)

    def _delete(self, cluster: Int64s, constant: Int64s, ids: Int64s) -> None:
        self._sorted.remove(cluster, constant, ids)


@kernel
def _find_all(runs: Runs, cluster: Int64s, constant: Int64s) -> Int64s:
    found = np.full(len(cluster), -1, np.int64)
    for i in range(len(cluster)):
        if cluster[i] < len(runs.lists.size):
            start = runs.lists.start[cluster[i]]
            end = start + runs.lists.size[cluster[i]]
            place = bisect_left(runs.keys, start, end, constant[i])
            if place < end and runs.keys[place] == constant[i]:
                found[i] = runs.values[place]
    return found


@kernel
def _evaluate(
    runs: Runs, starts: Int64s, attribute: Int32s, code: Int64s, bits: Words, linear: bool
) -> tuple[int, int]:
    looked = 0
    lists = 0
    for event in range(len(bits)):
        satisfied = bits[event]
        satisfied[:] = np.uint64(0)
        for at in range(starts[event], starts[event + 1]):
            base = attribute[at] * COMPARATORS
            for cluster in range(base, min(base + COMPARATORS, len(runs.lists.size))):
                if runs.lists.size[cluster] > 0:
                    lists += 1
                    if linear:
                        looked += _walk(runs, cluster, code[at], satisfied)
                    else:
                        looked += _bisect(runs, cluster, code[at], satisfied)
    return looked, lists


@inlined
def _bisect(runs: Runs, cluster: int, v: int, satisfied: Words) -> int:
    """Set the bits of the predicates that value v satisfies; returns their number."""
    comparator = cluster % COMPARATORS
    start = runs.lists.start[cluster]
    end = start + runs.lists.size[cluster]
    skip_from = skip_to = end
    if comparator == AT_MOST:
        start = bisect_left(runs.keys, start, end, v)
    elif comparator == AT_LEAST:
        end = bisect_right(runs.keys, start, end, v)
    elif comparator == EQUAL:
        start = bisect_left(runs.keys, start, end, v)
        end = bisect_right(runs.keys, start, end, v)
    elif comparator == UNEQUAL:
        skip_from = bisect_left(runs.keys, start, end, v)
        skip_to = bisect_right(runs.keys, skip_from, end, v)
    looked = 0
    # One random write per satisfied predicate; after a bulk load, ids ascend with keys.
    for place in range(start, end):
        if not skip_from <= place < skip_to:
            set_bit(satisfied, runs.values[place])
            looked += 1
    return looked


@inlined
def _walk(runs: Runs, cluster: int, v: int, satisfied: Words) -> int:
    """Like `_bisect`, but from the head of the list; returns the number of constants examined."""
    comparator = cluster % COMPARATORS
    start = runs.lists.start[cluster]
    looked = 0
    for place in range(start, start + runs.lists.size[cluster]):
        looked += 1
        c = runs.keys[place]
        # Constants ascend: after one above v, all others are above v too.
        if c > v and comparator in (AT_LEAST, EQUAL):
            break
        if (
            comparator in (BOUND, AT_LEAST)
            or (comparator == AT_MOST and v <= c)
            or (comparator == EQUAL and v == c)
            or (comparator == UNEQUAL and v != c)
        ):
            set_bit(satisfied, runs.values[place])
    return looked
