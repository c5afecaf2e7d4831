"""General matching trees by the values of index attributes.

There is a tree for each combination of the values of a few attributes, as for equality-only trees
(see `factoring`). A clause is in the trees whose values agree with it. There, its predicates on
index attributes hold and take no node. In the trees for other values, they are tests as usual.
"""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Bools, Int8s, Int64s, offsets, runs
from tamis.index.blocks import Blocks
from tamis.index.clauses import SOME, ClauseArrays
from tamis.index.elementary_predicates import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    UNEQUAL,
    ElementaryPredicates,
    elementary_predicates,
    is_complement,
)
from tamis.index.growth import HoldsArrays, ensure_capacity
from tamis.index.kernel import kernel
from tamis.match.gryphon.attribute_order import AttributeOrder
from tamis.match.gryphon.factoring import Factored, Factoring, factor_of, labels_of, rank_of
from tamis.match.gryphon.match_tree import MatchTree, MatchTreeArrays, Placed
from tamis.match.gryphon.predicate_tests import root_of_path
from tamis.match.gryphon.related_tests import (
    KnownBounds,
    learn,
    place_tests,
    room_for_tests,
    sort_tests,
)

_ROOM = 1 << 18  # at most this many nodes are created between two reservations
Trees = tuple[Int64s, Int64s, Bools, Int64s]
"""Starts and roots of the copies of clauses, and by clause and index attribute: whether one term
alone constrains it, and the rank of the value that an equality asks for (-1 without one)."""


class FactoredTests(HoldsArrays):
    """General matching trees for the values of index attributes, and the lists of each slot."""

    spliced = True  # nodes with only a star edge are always removed

    def __init__(self, factor: int, replication: float) -> None:
        self._factor, self._replication = factor, replication
        self.tree = MatchTree()
        self.factoring = Factoring()
        self._order = AttributeOrder()
        self._lists = Blocks(np.int64)  # by slot
        self._unseen = Blocks(np.int8)  # by slot: one item if it asks for a value without a tree

    def add(self, clauses: ClauseArrays, slots: Int64s) -> Placed:
        """Create paths for clauses, in random order, as in a single tree.

        The first clauses decide which attributes are factored out.
        """
        if len(self.tree) == 0:
            labels = labels_of(clauses, slots)
            self.factoring.choose(labels, self._factor, self._replication, True)
            self.tree = MatchTree(self.factoring.roots)
        order = np.arange(len(slots))
        np.random.default_rng(len(slots)).shuffle(order)
        mine = slots[order]
        found = elementary_predicates(clauses, mine)
        self._order.admit(found.attribute)
        trees = _trees_of(clauses, mine, found, self.factoring.view)
        copies = np.diff(trees[0])
        lists = np.empty(int(copies.sum()), np.int64)
        known = KnownBounds(
            *(np.full(len(self._order.place), -1, np.int64) for _ in KnownBounds._fields)
        )
        nodes = offsets(copies * (np.diff(found.starts) + 1))
        start = 0
        while start < len(slots):
            stop = int(np.searchsorted(nodes, nodes[start] + _ROOM))
            stop = min(max(start + 1, stop), len(slots))
            self.tree.reserve(int(nodes[stop] - nodes[start]), int(copies[start:stop].sum()))
            view = self.tree.view
            span = (start, stop)
            _place_copies(
                view, found, trees, self.factoring.view, self._order.place, known, span, lists
            )
            self.tree.settle()
            start = stop
        self._lists.append(np.repeat(mine, copies), lists)
        unseen = mine[(trees[3] == 0).any(axis=1)]
        self._unseen.append(unseen, np.ones(len(unseen), np.int8))
        exact = np.empty(len(slots), np.int8)
        exact[order] = found.exact
        return self._placed(slots, exact)

    def leave(self, clauses: ClauseArrays, slots: Int64s) -> Placed:
        """The positions of clauses that are about to be removed."""
        placed = self._placed(slots, np.zeros(len(slots), np.int8))
        for part in (self._lists, self._unseen):
            part.number(int(slots.max(initial=-1)) + 1)
            gone = int(part.size[slots].sum())
            part.size[slots] = 0
            part.removed(gone)
        return placed

    def pack(self, placed: Placed) -> Placed:
        """Pack the trees for searching, while the lists are still empty."""
        lists = self.tree.pack()
        pool = self._lists.pools[0]
        _, places = runs(self._lists.start, self._lists.size)
        pool[places] = lists[pool[places]]
        return placed._replace(lists=lists[placed.lists])

    def prune(self, empty: Int64s) -> None:
        """Cut off the leaves of empty lists."""
        self.tree.prune(empty, splice=True)

    def crowded(self, live: int) -> bool:
        """Whether the trees should be rebuilt for `live` clauses."""
        copies = self._lists.total
        return self._unseen.total > live // 4 + 16 or copies > 2 * self._replication * live + 16

    def check(self, clauses: ClauseArrays, live: Int64s) -> Placed:
        """Raise if a tree is inconsistent or a path does not fit its clause."""
        self.tree.check(spliced=True)
        self._order.check()
        self._lists.check()
        found = elementary_predicates(clauses, live)
        trees = _trees_of(clauses, live, found, self.factoring.view)
        placed = self._placed(live, found.exact)
        self._lists.number(int(live.max(initial=-1)) + 1)
        assert (self._lists.size[live] == np.diff(trees[0])).all(), "a list for each tree"
        wrong = _misfit_copy(self.tree.view, found, trees, self.factoring.view, placed.lists)
        assert wrong < 0, f"a path of slot {live[wrong]} does not fit its clause"
        return placed

    def _placed(self, slots: Int64s, exact: Int8s) -> Placed:
        self._lists.number(int(slots.max(initial=-1)) + 1)
        sizes = self._lists.size[slots]
        _, places = runs(self._lists.start[slots], sizes)
        return Placed(
            self._lists.pools[0][places], np.repeat(slots, sizes), slots[sizes == 0], exact
        )


@kernel
def _holds(comparator: int, constant: int, value: int) -> bool:
    if comparator == EQUAL:
        return value == constant
    if comparator == AT_MOST:
        return value <= constant
    if comparator == AT_LEAST:
        return value >= constant
    return comparator != UNEQUAL or value != constant


@kernel
def _is_lone(clauses: ClauseArrays, slot: int, a: int) -> bool:
    """Whether a clause has one term on an attribute, and elementary predicates represent it."""
    rows = terms = 0
    first = -1
    for row in range(clauses.start[slot], clauses.start[slot] + clauses.size[slot]):
        if clauses.attribute[row] == a:
            if rows == 0:
                first = row
            if rows == 0 or clauses.term[row] != clauses.term[row - 1]:
                terms += 1
            rows += 1
    if terms != 1 or clauses.kind[first] != SOME:
        return False
    return rows == 1 or (rows == 2 and is_complement(clauses, first))


@kernel
def _trees_of(
    clauses: ClauseArrays, slots: Int64s, found: ElementaryPredicates, factored: Factored
) -> Trees:
    """The trees of clauses. A clause without predicates has none."""
    factors = len(factored.attribute)
    starts = np.zeros(len(slots) + 1, np.int64)
    roots = np.empty(len(slots) + 16, np.int64)
    lone = np.zeros((len(slots), factors), np.bool_)
    rank = np.full((len(slots), factors), -1, np.int64)
    n = 0
    for i in range(len(slots)):
        begin, end = found.starts[i], found.starts[i + 1]
        for f in range(factors):
            lone[i, f] = _is_lone(clauses, slots[i], factored.attribute[f])
        for at in range(begin, end):
            f = factor_of(factored, found.attribute[at])
            if f >= 0 and rank[i, f] < 0 and found.comparator[at] == EQUAL:
                rank[i, f] = rank_of(factored, f, found.constant[at])
        many = 1 if end > begin else 0
        roots = ensure_capacity(roots, n, many)
        if many:
            roots[n] = 0
        for f in range(factors):  # the roots so far, once for each rank that agrees
            if many == 0:
                break
            before = many
            roots = ensure_capacity(roots, n + before, before * factored.size[f])
            base = n + before * factored.size[f]
            roots[base : base + before] = roots[n : n + before]
            many = 0
            for r in range(factored.size[f]):
                if rank[i, f] >= 0 and rank[i, f] != r:
                    continue
                if r > 0 and lone[i, f] and not _agrees(found, begin, end, factored, f, r):
                    continue
                for k in range(before):
                    roots[n + many] = roots[base + k] + r * factored.stride[f]
                    many += 1
        n += many
        starts[i + 1] = n
    return starts, roots[:n], lone, rank


@kernel
def _agrees(
    found: ElementaryPredicates, begin: int, end: int, factored: Factored, f: int, r: int
) -> bool:
    """Whether all predicates of a clause on an index attribute hold for the value of a rank."""
    value = factored.values[factored.before[f] + r - 1]
    for at in range(begin, end):
        mine = found.attribute[at] == factored.attribute[f]
        if mine and not _holds(found.comparator[at], found.constant[at], value):
            return False
    return True


@kernel
def _is_dropped(
    found: ElementaryPredicates, at: int, lone: Bools, factored: Factored, root: int
) -> bool:
    """Whether a predicate takes no node in a tree, because the tree stands for it."""
    f = factor_of(factored, found.attribute[at])
    if f < 0:
        return False
    r = root // factored.stride[f] % factored.size[f]
    if r == 0:
        return False
    value = factored.values[factored.before[f] + r - 1]
    return bool(lone[f] or (found.comparator[at] == EQUAL and found.constant[at] == value))


@kernel
def _place_copies(
    tree: MatchTreeArrays,
    found: ElementaryPredicates,
    trees: Trees,
    factored: Factored,
    place: Int64s,
    known: KnownBounds,
    span: tuple[int, int],
    lists: Int64s,
) -> None:
    """Create the paths of some clauses in all their trees."""
    starts, roots, lone, _ = trees
    most = 1
    for i in range(span[0], span[1]):
        most = max(most, found.starts[i + 1] - found.starts[i])
    tests = room_for_tests(most)
    attribute = np.empty(most, np.int32)
    comparator = np.empty(most, np.int8)
    constant = np.empty(most, np.int64)
    left = ElementaryPredicates(found.starts, attribute, comparator, constant, found.exact)
    for i in range(span[0], span[1]):
        for copy in range(starts[i], starts[i + 1]):
            n = 0
            for at in range(found.starts[i], found.starts[i + 1]):
                if not _is_dropped(found, at, lone[i], factored, roots[copy]):
                    attribute[n] = found.attribute[at]
                    comparator[n] = found.comparator[at]
                    constant[n] = found.constant[at]
                    n += 1
            n = sort_tests(left, 0, n, place, tests)
            learn(tests, n, known, copy)
            leaf = place_tests(tree, roots[copy], tests, n, known, copy)
            lists[copy] = tree.nodes[leaf].first


@kernel
def _misfit_copy(
    tree: MatchTreeArrays,
    found: ElementaryPredicates,
    trees: Trees,
    factored: Factored,
    lists: Int64s,
) -> int:
    """The first clause of which a copy is in another tree or lacks a predicate, or -1."""
    starts, roots, lone, _ = trees
    for i in range(len(starts) - 1):
        begin, end = found.starts[i], found.starts[i + 1]
        for copy in range(starts[i], starts[i + 1]):
            met = np.zeros(end - begin, np.bool_)
            root = root_of_path(tree, found, i, lists[copy], met)
            if root != roots[copy]:
                return i
            for at in range(begin, end):
                if not met[at - begin] and not _is_dropped(found, at, lone[i], factored, root):
                    return i
    return -1
