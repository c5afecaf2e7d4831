"""The general matching tree: any elementary predicates, with related tests.

A clause is a path: each predicate is a node with its test, left by the edge of the required result.
At a node with another test, a clause takes the edge of the result that its predicates imply
("related tests"), otherwise the star edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Int8s, Int64s
from tamis.index.clauses import ClauseArrays
from tamis.index.elementary_predicates import (
    HIGHEST,
    LOWEST,
    ElementaryPredicates,
    elementary_predicates,
)
from tamis.index.growth import HoldsArrays, grown
from tamis.index.kernel import kernel
from tamis.match.gryphon.attribute_order import AttributeOrder
from tamis.match.gryphon.factoring import Factoring
from tamis.match.gryphon.match_tree import (
    AT_MOST,
    EQUALS,
    EXAMINE,
    KINDS,
    LEAF,
    MatchTree,
    MatchTreeArrays,
    Placed,
    child,
    edge,
    hang,
    hang_root,
    hang_star,
    new_leaf,
    new_node,
    replace,
)
from tamis.match.gryphon.predicate_tests import as_test, misfit

_CHUNK = 8192  # clauses placed between two reservations
_REACH = 1024  # maximum number of star edges that one insertion follows. Unrelated tests (`!=` on
# many constants) form one chain of stars; without a limit, insertion would be quadratic.


class Tests(NamedTuple):
    """The predicates of one clause as tests and results, in attribute order."""

    test: Int64s
    constant: Int64s
    result: Int64s
    done: Bools


class KnownBounds(NamedTuple):
    """By attribute, what one clause implies; `stamp` identifies the clause.

    Some value is at least `low` and some value is at most `high`; if there are several values,
    these may differ. `equal_at` is the number of an equality predicate, or -1.
    """

    stamp: Int64s
    low: Int64s
    high: Int64s
    equal_at: Int64s


class RelatedTests(HoldsArrays):
    """A matching tree of elementary predicates, and the list of each slot."""

    spliced = True  # nodes with only a star edge are always removed

    def __init__(self) -> None:
        self.tree = MatchTree()
        self.factoring = Factoring()  # no index attribute
        self._order = AttributeOrder()
        self._list = np.zeros(0, np.int64)

    def add(self, clauses: ClauseArrays, slots: Int64s) -> Placed:
        """Create paths for clauses.

        The order is random: sorted constants would form one long chain of stars.
        """
        order = np.arange(len(slots))
        if len(slots) > 1:
            np.random.default_rng(len(slots)).shuffle(order)
        found = elementary_predicates(clauses, slots[order])
        counts = np.diff(found.starts)
        self._order.admit(found.attribute)
        lists = np.full(len(slots), -1, np.int64)
        known = KnownBounds(
            *(np.full(len(self._order.place), -1, np.int64) for _ in KnownBounds._fields)
        )
        for start in range(0, len(slots), _CHUNK):
            stop = min(start + _CHUNK, len(slots))
            leaves = stop - start
            self.tree.reserve(int(counts[start:stop].sum()) + leaves, leaves)
            _place_all(self.tree.view, found, start, stop, self._order.place, known, lists)
            self.tree.settle()
        self._list = grown(self._list, int(slots.max(initial=-1)) + 1, -1)
        self._list[slots[order]] = lists
        exact = np.empty(len(slots), np.int8)
        exact[order] = found.exact
        return self._placed(slots, exact)

    def leave(self, clauses: ClauseArrays, slots: Int64s) -> Placed:
        """The positions of clauses that are about to be removed."""
        return self._placed(slots, np.zeros(len(slots), np.int8))

    def pack(self, placed: Placed) -> Placed:
        """Pack the tree for searching, while the lists are still empty."""
        lists = np.append(self.tree.pack(), -1)
        self._list = lists[self._list]
        return placed._replace(lists=lists[placed.lists])

    def prune(self, empty: Int64s) -> None:
        """Cut off the leaves of empty lists."""
        self.tree.prune(empty, splice=True)

    def crowded(self, live: int) -> bool:
        """Whether the tree should be rebuilt; never, as that would not improve its shape."""
        return False

    def check(self, clauses: ClauseArrays, live: Int64s) -> Placed:
        """Raise if the tree is inconsistent or a path does not fit its clause."""
        self.tree.check(spliced=True)
        self._order.check()
        found = elementary_predicates(clauses, live)
        wrong = misfit(self.tree.view, found, self._list[live])
        assert wrong < 0, f"the path of slot {live[wrong]} does not fit its clause"
        return self._placed(live, found.exact)

    def _placed(self, slots: Int64s, exact: Int8s) -> Placed:
        lists = self._list[slots]
        has = lists >= 0
        return Placed(lists[has], slots[has], slots[~has], exact)


@kernel
def room_for_tests(most: int) -> Tests:
    """Arrays for so many tests."""
    numbers = np.empty((3, most), np.int64)
    return Tests(numbers[0], numbers[1], numbers[2], np.empty(most, np.bool_))


@kernel
def _place_all(
    tree: MatchTreeArrays,
    found: ElementaryPredicates,
    start: int,
    stop: int,
    place: Int64s,
    known: KnownBounds,
    lists: Int64s,
) -> None:
    most = 1
    for clause in range(start, stop):
        most = max(most, found.starts[clause + 1] - found.starts[clause])
    tests = room_for_tests(most)
    for clause in range(start, stop):
        n = sort_tests(found, found.starts[clause], found.starts[clause + 1], place, tests)
        if n:
            learn(tests, n, known, clause)
            lists[clause] = tree.nodes[place_tests(tree, 0, tests, n, known, clause)].first


@kernel
def sort_tests(
    found: ElementaryPredicates, start: int, end: int, place: Int64s, tests: Tests
) -> int:
    """Fill `tests` with the distinct predicates, sorted; returns their number."""
    n = 0
    for at in range(start, end):
        test, constant, result = as_test(
            found.comparator[at], found.attribute[at], found.constant[at]
        )
        rank = place[found.attribute[at]] * KINDS + test % KINDS
        k = n
        while k > 0:
            before = place[tests.test[k - 1] // KINDS] * KINDS + tests.test[k - 1] % KINDS
            if before < rank or (before == rank and tests.constant[k - 1] <= constant):
                break
            k -= 1
        if (
            k > 0
            and tests.test[k - 1] == test
            and tests.constant[k - 1] == constant
            and tests.result[k - 1] == result
        ):
            continue
        for j in range(n, k, -1):
            tests.test[j] = tests.test[j - 1]
            tests.constant[j] = tests.constant[j - 1]
            tests.result[j] = tests.result[j - 1]
        tests.test[k] = test
        tests.constant[k] = constant
        tests.result[k] = result
        n += 1
    tests.done[:n] = False
    return n


@kernel
def learn(tests: Tests, n: int, known: KnownBounds, stamp: int) -> None:
    """Record what a clause implies about each attribute."""
    for i in range(n):
        a, kind, constant = tests.test[i] // KINDS, tests.test[i] % KINDS, tests.constant[i]
        if known.stamp[a] != stamp:
            known.stamp[a] = stamp
            known.low[a], known.high[a], known.equal_at[a] = LOWEST, HIGHEST, -1
        if kind == EXAMINE:
            known.equal_at[a] = i
            known.low[a] = max(known.low[a], constant)
            known.high[a] = min(known.high[a], constant)
        elif kind == AT_MOST and tests.result[i] == 1:
            known.high[a] = min(known.high[a], constant)
        elif kind == AT_MOST:
            known.low[a] = max(known.low[a], constant + 1)


@kernel
def _implied(kind: int, constant: int, low: int, high: int) -> int:
    """The result of a yes-or-no test given values of at least `low` and at most `high`, or -1."""
    if kind == AT_MOST and high <= constant:
        return 1
    if low > constant or (kind == EQUALS and high < constant):
        return 0
    return -1


@kernel
def _is_among(tests: Int64s, constants: Int64s, n: int, test: int, constant: int) -> bool:
    """Whether a test is among the first n."""
    found = False
    for i in range(n):
        found |= tests[i] == test and constants[i] == constant
    return found


@kernel
def place_tests(
    tree: MatchTreeArrays, root: int, tests: Tests, n: int, known: KnownBounds, stamp: int
) -> int:
    """The leaf of a clause below a root; creates it if needed. The descent takes most of the time.

    The clause has n tests. Without tests, the leaf is at the end of the stars.
    """
    if tree.roots[root] < 0:
        top = new_node(tree, tests.test[0], tests.constant[0], 0) if n else new_leaf(tree)
        hang_root(tree, root, top)
    v = int(tree.roots[root])
    i = 0  # the first predicate that is not on the path yet
    stars = 0
    while True:
        while i < n and tests.done[i]:
            i += 1
        if i == n:
            break
        node = tree.nodes[v]
        if node.test == LEAF:
            u = new_node(tree, tests.test[i], tests.constant[i], 0)
            replace(tree, v, u)
            hang_star(tree, u, v)
            v = u
            break
        same = node.test == tests.test[i]
        if same and (node.test % KINDS == EXAMINE or node.constant == tests.constant[i]):
            below = edge(tree, v, tests.result[i])
            if below < 0:
                break
            tests.done[i] = True
            v = below
            continue
        a, kind, constant = node.test // KINDS, node.test % KINDS, node.constant
        if known.stamp[a] == stamp:
            below = result = -1
            if kind == EXAMINE:
                if known.equal_at[a] >= 0:
                    constant = result = tests.constant[known.equal_at[a]]
                    below = child(tree, v, result)
            else:
                result = _implied(kind, constant, known.low[a], known.high[a])
                if kind == EQUALS:  # no predicate requires "yes"
                    if result == 0 or _is_among(tests.test, tests.constant, n, node.test, constant):
                        below, result = node.second, 0
                elif result >= 0:
                    below = node.first if result else node.second
            if below >= 0:
                for at in range(n):  # mark the predicate that requires this result, if any
                    if tests.test[at] == node.test and tests.constant[at] == constant:
                        tests.done[at] |= tests.result[at] == result
                v = below
                continue
        if node.star < 0 or stars == _REACH:
            u = new_node(tree, tests.test[i], tests.constant[i], 0)
            if node.star >= 0:
                hang_star(tree, u, node.star)
            hang_star(tree, v, u)
            v = u
            break
        stars += 1
        v = int(node.star)
    if i < n:
        return _extend(tree, v, tests, i, n)
    while tree.nodes[v].test != LEAF:
        if tree.nodes[v].star < 0:
            hang_star(tree, v, new_leaf(tree))
        v = int(tree.nodes[v].star)
    return v


@kernel
def _extend(tree: MatchTreeArrays, v: int, tests: Tests, i: int, n: int) -> int:
    """Create a new path for the remaining predicates, from v, which tests predicate i."""
    while i < n:
        after = i + 1
        while after < n and tests.done[after]:
            after += 1
        u = (
            new_node(tree, tests.test[after], tests.constant[after], 0)
            if after < n
            else new_leaf(tree)
        )
        hang(tree, v, tests.result[i], u)
        v, i = u, after
    return v
