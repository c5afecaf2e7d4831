"""Predicates as tests of a matching tree, and whether a path of tests fits a clause."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Bools, Int64s
from tamis.index.elementary_predicates import (
    AT_LEAST,
    BOUND,
    EQUAL,
    HIGHEST,
    LOWEST,
    UNEQUAL,
    ElementaryPredicates,
)
from tamis.index.elementary_predicates import AT_MOST as NO_MORE
from tamis.index.kernel import kernel
from tamis.match.gryphon.match_tree import AT_MOST, EQUALS, EXAMINE, KINDS, MatchTreeArrays


@kernel
def as_test(comparator: int, attribute: int, constant: int) -> tuple[int, int, int]:
    """A predicate as a test, a constant and a result."""
    base = attribute * KINDS
    if comparator == EQUAL:
        return base + EXAMINE, constant, constant
    if comparator == UNEQUAL:
        return base + EQUALS, constant, 0
    if comparator == AT_LEAST:
        return base + AT_MOST, constant - 1, 0
    if comparator == BOUND:
        return base + AT_MOST, HIGHEST, 1
    return base + AT_MOST, constant, 1


@kernel
def misfit(tree: MatchTreeArrays, found: ElementaryPredicates, lists: Int64s) -> int:
    """The first clause whose path lacks a predicate or has a result that is not implied, or -1."""
    for i in range(len(lists)):
        begin, end = found.starts[i], found.starts[i + 1]
        if (lists[i] < 0) != (begin == end):
            return i
        if lists[i] >= 0:
            met = np.zeros(end - begin, np.bool_)
            if root_of_path(tree, found, i, lists[i], met) < 0 or not met.all():
                return i
    return -1


@kernel
def root_of_path(
    tree: MatchTreeArrays, found: ElementaryPredicates, clause: int, number: int, met: Bools
) -> int:
    """The root above the leaf of a list, or -1 if a result on the path is not implied.

    `met` receives which predicates of the clause are on the path.
    """
    begin, end = found.starts[clause], found.starts[clause + 1]
    u = tree.leaves[number]
    while tree.nodes[u].parent >= 0:
        v = tree.nodes[u].parent
        if tree.nodes[v].star != u:
            node = tree.nodes[v]
            follows = False
            for at in range(begin, end):
                test, constant, result = as_test(
                    found.comparator[at], found.attribute[at], found.constant[at]
                )
                if test // KINDS != node.test // KINDS:
                    continue
                same = test == node.test and tree.label[u] == result
                if same and (test % KINDS == EXAMINE or constant == node.constant):
                    met[at - begin] = True
                    follows = True
                follows |= _decides(
                    found.comparator[at],
                    found.constant[at],
                    node.test % KINDS,
                    node.constant,
                    tree.label[u],
                )
            if not follows:
                return -1
        u = v
    return int(~tree.nodes[u].parent)


@kernel
def _decides(comparator: int, c: int, kind: int, constant: int, result: int) -> bool:
    """Whether a predicate alone implies the result of a yes-or-no test on the same attribute."""
    low = c if comparator in (EQUAL, AT_LEAST) else LOWEST
    high = c if comparator in (EQUAL, NO_MORE) else HIGHEST
    if kind == AT_MOST:
        return high <= constant if result else low > constant
    return kind == EQUALS and result == 0 and (high < constant or low > constant)
