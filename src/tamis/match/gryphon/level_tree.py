"""The equality-only matching tree: one level per attribute; edges are values or the star.

A clause is the path of its equalities, one per attribute. All its other predicates are verified for
the events that reach its leaf. A plain tree goes through all levels. A collapsed tree has no nodes
with only a star edge: an edge leads directly to the next level where paths part.

Some attributes can be factored out as *index attributes*. Each combination of their values then has
its own tree, and one more tree holds the values that had no tree when the trees were built. A
clause that does not constrain an index attribute is in the trees of all its values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Int8s, Int64s, offsets
from tamis.index.clauses import ClauseArrays
from tamis.index.elementary_predicates import EXACT, VERIFY
from tamis.index.growth import HoldsArrays
from tamis.index.kernel import kernel
from tamis.match.gryphon.attribute_order import AttributeOrder
from tamis.match.gryphon.factoring import (
    EdgeLabels,
    Factored,
    Factoring,
    factor_of,
    labels_of,
    rank_of,
    root_of,
)
from tamis.match.gryphon.match_tree import (
    BOTTOM,
    EXAMINE,
    KINDS,
    LEAF,
    MatchTree,
    MatchTreeArrays,
    Placed,
    child,
    hang,
    hang_root,
    hang_star,
    new_leaf,
    new_node,
    replace,
)

_ROOM = 1 << 18  # at most this many nodes are created between two reservations
_LEVELS = 64  # limit for a plain tree, in which every clause costs one node per level
_ROOT, _STAR, _VALUE = 0, 1, 2  # how a node is attached


class Paths(NamedTuple):
    """The labels of clause i below its roots, by ascending level, and the roots themselves."""

    starts: Int64s
    level: Int64s
    value: Int64s
    rank: Int64s  # by clause and index attribute: rank of the value, -1 for all values
    copies: Int64s  # number of roots; 0 for a clause without a path
    unseen: Bools  # whether the value of an index attribute has no tree
    exact: Int8s


class Levels(NamedTuple):
    """The attribute of each level, and the depth of leaves (-1 in a collapsed tree)."""

    attribute: Int64s
    depth: int


class LevelTree(HoldsArrays):
    """Equality-only trees over the same levels."""

    def __init__(self, collapse: bool, factor: int, replication: float) -> None:
        self.spliced = collapse
        self._factor, self._replication = factor, replication
        self._order = AttributeOrder(None if collapse else _LEVELS)
        self.factoring = Factoring()
        self.tree = MatchTree()
        self.copies = 0  # entries in lists
        self.unseen = 0  # clauses in the tree for other values

    @property
    def levels(self) -> Levels:
        """The attribute that each level examines."""
        return Levels(self._order.attributes, -1 if self.spliced else len(self._order))

    def crowded(self, live: int) -> bool:
        """Whether the trees should be rebuilt for `live` clauses."""
        return self.unseen > live // 4 + 16 or self.copies > 2 * self._replication * live + 16

    def add(self, clauses: ClauseArrays, slots: Int64s) -> Placed:
        """Create paths for clauses. The first clauses decide which attributes are factored out."""
        labels = labels_of(clauses, slots)
        if self._factor and len(self.tree) == 0:
            self.factoring.choose(labels, self._factor, self._replication, False)
            self.tree = MatchTree(self.factoring.roots)
        ordinary = ~np.isin(labels.attribute, self.factoring.view.attribute)
        self._order.admit(labels.attribute[ordinary])
        paths = paths_of(labels, self._order.place, self.factoring.view)
        lists = np.empty(int(paths.copies.sum()), np.int64)
        depth = np.diff(paths.starts) if self.spliced else np.full(len(slots), len(self._order))
        nodes = offsets(paths.copies * (depth + 1))
        start = done = 0
        while start < len(slots):
            stop = int(np.searchsorted(nodes, nodes[start] + _ROOM))
            stop = min(max(start + 1, stop), len(slots))
            leaves = int(paths.copies[start:stop].sum())
            self.tree.reserve(int(nodes[stop] - nodes[start]), leaves)
            _insert_all(
                self.tree.view,
                paths,
                self.levels,
                self.factoring.view,
                start,
                lists[done : done + leaves],
            )
            self.tree.settle()
            start, done = stop, done + leaves
        self.copies += len(lists)
        self.unseen += int(paths.unseen.sum())
        return _placed(slots, paths, lists)

    def leave(self, clauses: ClauseArrays, slots: Int64s) -> Placed:
        """The positions of clauses that are about to be removed."""
        paths, lists = self._find(clauses, slots)
        self.copies -= len(lists)
        self.unseen -= int(paths.unseen.sum())
        return _placed(slots, paths, lists)

    def pack(self, placed: Placed) -> Placed:
        """Pack the trees for searching, while the lists are still empty."""
        return placed._replace(lists=self.tree.pack()[placed.lists])

    def prune(self, empty: Int64s) -> None:
        """Cut off the leaves of empty lists."""
        self.tree.prune(empty, self.spliced)

    def check(self, clauses: ClauseArrays, live: Int64s) -> Placed:
        """Raise if a tree is inconsistent; returns the positions of the clauses."""
        self.tree.check(self.spliced)
        self._order.check()
        nodes = self.tree.view.nodes[: self.tree.top]
        below = nodes[(nodes["test"] >= LEAF) & (nodes["parent"] >= 0)]
        assert (below["level"] > nodes["level"][below["parent"]]).all(), "levels ascend"
        paths, lists = self._find(clauses, live)
        assert len(lists) == self.copies
        assert int(paths.unseen.sum()) == self.unseen
        return _placed(live, paths, lists)

    def _find(self, clauses: ClauseArrays, slots: Int64s) -> tuple[Paths, Int64s]:
        paths = paths_of(labels_of(clauses, slots), self._order.place, self.factoring.view)
        lists = np.empty(int(paths.copies.sum()), np.int64)
        _find_all(self.tree.view, paths, self.factoring.view, lists)
        assert (lists >= 0).all(), "a path leads nowhere"
        return paths, lists


def _placed(slots: Int64s, paths: Paths, lists: Int64s) -> Placed:
    return Placed(lists, np.repeat(slots, paths.copies), slots[paths.copies == 0], paths.exact)


@kernel
def paths_of(labels: EdgeLabels, place: Int64s, factored: Factored) -> Paths:
    """The paths of clauses for given levels and factoring."""
    n = len(labels.whole)
    starts = np.zeros(n + 1, np.int64)
    level = np.empty(len(labels.value), np.int64)
    value = np.empty(len(labels.value), np.int64)
    rank = np.full((n, len(factored.attribute)), -1, np.int64)
    copies = np.ones(n, np.int64)
    unseen = np.zeros(n, np.bool_)
    exact = np.empty(n, np.int8)
    end = 0
    for i in range(n):
        exact[i] = EXACT if labels.whole[i] else VERIFY
        indexed = False
        for at in range(labels.starts[i], labels.starts[i + 1]):
            a = labels.attribute[at]
            f = factor_of(factored, a)
            if f >= 0:
                rank[i, f] = rank_of(factored, f, labels.value[at])
                if rank[i, f] > 0:
                    indexed = True
                else:
                    unseen[i] = True
                    exact[i] = VERIFY
            elif a >= len(place) or place[a] < 0:
                exact[i] = VERIFY
            else:
                k = end
                while k > starts[i] and level[k - 1] > place[a]:
                    level[k] = level[k - 1]
                    value[k] = value[k - 1]
                    k -= 1
                level[k] = place[a]
                value[k] = labels.value[at]
                end += 1
        starts[i + 1] = end
        if end == starts[i] and not indexed:
            copies[i] = 0
        for f in range(len(factored.attribute)):
            if rank[i, f] < 0:
                copies[i] *= factored.size[f]
    return Paths(starts, level[:end], value[:end], rank, copies, unseen, exact)


@kernel
def _insert_all(
    tree: MatchTreeArrays, paths: Paths, levels: Levels, factored: Factored, i: int, lists: Int64s
) -> None:
    """Insert clauses from i on, until `lists` is full."""
    n = 0
    while n < len(lists):
        for copy in range(paths.copies[i]):
            root = root_of(factored, paths.rank[i], copy)
            lists[n] = tree.nodes[_insert(tree, root, paths, i, levels)].first
            n += 1
        i += 1


@kernel
def _insert(tree: MatchTreeArrays, root: int, paths: Paths, clause: int, levels: Levels) -> int:
    """The leaf of a clause below a root; creates it if needed."""
    at, end = paths.starts[clause], paths.starts[clause + 1]
    v = int(tree.roots[root])
    if v < 0:
        return _extend(tree, _ROOT, root, paths, at, end, 0, levels)
    depth = 0
    while True:
        level = int(tree.nodes[v].level)
        if at < end:
            # A level that this edge skips, or that was added after the leaf.
            due = paths.level[at] if levels.depth < 0 else depth
            if due < level:
                u = new_node(tree, levels.attribute[due] * KINDS + EXAMINE, 0, due)
                replace(tree, v, u)
                hang_star(tree, u, v)
                v, level = u, due
        elif level == BOTTOM:
            return v
        if at < end and paths.level[at] == level:
            below = child(tree, v, paths.value[at])
            how = _VALUE
        else:
            below = int(tree.nodes[v].star)
            how = _STAR
        if below < 0:
            return _extend(tree, how, v, paths, at, end, level + 1, levels)
        at += how == _VALUE
        v = below
        depth = level + 1


@kernel
def _extend(
    tree: MatchTreeArrays,
    how: int,
    v: int,
    paths: Paths,
    at: int,
    end: int,
    depth: int,
    levels: Levels,
) -> int:
    """Attach a new path for the labels from `at` on below v."""
    while True:
        value = paths.value[at] if how == _VALUE else 0
        at += how == _VALUE
        if levels.depth < 0:
            level = paths.level[at] if at < end else BOTTOM
        else:
            level = depth if depth < levels.depth else BOTTOM
        if level == BOTTOM:
            u = new_leaf(tree)
        else:
            u = new_node(tree, levels.attribute[level] * KINDS + EXAMINE, 0, level)
        if how == _ROOT:
            hang_root(tree, v, u)
        elif how == _STAR:
            hang_star(tree, v, u)
        else:
            hang(tree, v, value, u)
        if level == BOTTOM:
            return u
        how = _VALUE if at < end and paths.level[at] == level else _STAR
        v = u
        depth = level + 1


@kernel
def _find_all(tree: MatchTreeArrays, paths: Paths, factored: Factored, lists: Int64s) -> None:
    """The list of every copy of every clause; -1 if its path ends early."""
    n = 0
    for i in range(len(paths.copies)):
        for copy in range(paths.copies[i]):
            at, end = paths.starts[i], paths.starts[i + 1]
            v = tree.roots[root_of(factored, paths.rank[i], copy)]
            while v >= 0 and tree.nodes[v].test != LEAF:
                if at < end and paths.level[at] == tree.nodes[v].level:
                    v = child(tree, v, paths.value[at])
                    at += 1
                else:
                    v = tree.nodes[v].star
            lists[n] = tree.nodes[v].first if v >= 0 and at == end else -1
            n += 1
