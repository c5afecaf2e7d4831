"""Interval binary search trees: find the intervals that contain a value; insert and delete.

The keys of a tree are the end points of its intervals. A node has three sets of marks: for values
below its key, equal to its key and above its key. A descent to a value meets every interval that
contains the value in exactly one set. A mark below means that the interval contains everything
between the key and the nearest smaller key among the ancestors. Marks are placed as high as
possible. (Hanson, Chaabouni, Kim, Wang: A predicate matching algorithm for database rule systems,
SIGMOD 1990.)

All trees share the same arrays. They are balanced as treaps: node priorities are random, and no
child has a higher priority than its parent. Nodes are inserted and deleted as leaves; rotations
restore the order of priorities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s, UInt8s
from tamis.index.blocks import Lists
from tamis.index.growth import HoldsArrays, ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.postings import Postings

BELOW, AT, ABOVE = 0, 1, 2
"""Node n has the mark lists `3 * n + BELOW`, `3 * n + AT` and `3 * n + ABOVE`."""


class IbsTreeNodes(NamedTuple):
    """View of the trees for kernels; -1 means no node."""

    root: Int32s  # by tree
    key: Int64s
    child: Int32s  # by node and side: 0 for smaller keys, 1 for larger ones
    parent: Int32s
    priority: Int64s
    ends: Int32s  # number of interval ends at this key


class IbsTrees(HoldsArrays):
    """Trees of closed intervals, numbered from 0; each interval has an owner.

    The intervals of one owner in one tree must be disjoint. To look up a value, start at the root
    and follow `descend`. Lookup O(log n + found), add and remove O(log² n) on average, space
    O(n log n). `build` makes trees of minimum height from many intervals at once.
    """

    def clear(self) -> None:
        self.nodes = _nodes(0, 0)
        self._marks = Postings()
        self._free: list[int] = []
        self._used = 0  # nodes in use are below this, or free
        self._flags = np.zeros(0, np.uint8)  # by owner, zero between calls
        self._random = np.random.default_rng(0)

    def __len__(self) -> int:
        """The number of nodes, which are the distinct interval ends."""
        return self._used - len(self._free)

    @property
    def lists(self) -> Lists:
        """The position of each set of marks in `owners`."""
        return self._marks.lists

    @property
    def owners(self) -> Int32s:
        """The marks: owners of intervals."""
        return self._marks.slots

    @property
    def marks(self) -> int:
        """The total number of marks."""
        return self._marks.total

    def build(self, trees: Int64s, low: Int64s, high: Int64s, owners: Int64s) -> None:
        """Replace the contents: interval i, `low[i]` to `high[i]`, goes into tree `trees[i]`."""
        self.clear()
        if not len(trees):
            return
        tree, key = np.concatenate([trees, trees]), np.concatenate([low, high])
        order = np.lexsort((key, tree))
        tree, key = tree[order], key[order]
        first = np.ones(len(key), np.bool_)
        first[1:] = (tree[1:] != tree[:-1]) | (key[1:] != key[:-1])
        at = np.flatnonzero(first)
        self.nodes = _nodes(int(tree[-1]) + 1, len(at))
        self.nodes.key[:] = key[at]
        self.nodes.ends[:] = np.diff(at, append=len(key))
        # Priorities descend with the level, so the balanced tree is a valid treap as it stands.
        priorities = np.sort(self._random.integers(2**62, size=len(at)))[::-1]
        _balance(self.nodes, tree[at], priorities)
        self._used = len(at)
        self._marks.append(*_marks(self.nodes, trees, low, high, owners))
        self._marks.number(3 * self._used)
        self._flag(owners)

    def add(self, tree: int, low: int, high: int, owner: int) -> None:
        """Add one interval."""
        for key in (low, high):
            node = self._node(tree, key)
            self.nodes.ends[node] += 1
        self._flag(np.array([owner]))
        self._marks.append(*self._marks_of(tree, low, high, owner))

    def remove(self, tree: int, low: int, high: int, owner: int) -> None:
        """Remove one interval, which must exist."""
        self._marks.remove(*self._marks_of(tree, low, high, owner))
        for key in (low, high):
            node, _ = _find(self.nodes, tree, key)
            self.nodes.ends[node] -= 1
            if self.nodes.ends[node] == 0:
                self._drop(tree, node)

    def check(self, trees: Int64s, low: Int64s, high: Int64s, owners: Int64s) -> None:
        """Raise unless the trees hold exactly these intervals, with every mark in place."""
        self._marks.check()
        assert not self._flags.any()
        key, parent = self.nodes.key, self.nodes.parent
        counted = 0
        for tree, root in enumerate(self.nodes.root.tolist()):
            stack = [(root, -1, -(2**63), 2**63 - 1)]
            while stack:
                node, above, least, most = stack.pop()
                if node < 0:
                    continue
                counted += 1
                at = int(key[node])
                assert parent[node] == above, "parents agree with children"
                assert above < 0 or self.nodes.priority[node] <= self.nodes.priority[above]
                assert least <= at <= most, "keys are in order"
                here = trees == tree
                ends = (low[here] == at).sum() + (high[here] == at).sum()
                assert 0 < ends == self.nodes.ends[node], "a key is an end of intervals"
                left, right = self.nodes.child[node].tolist()
                stack += [(left, node, least, at - 1), (right, node, at + 1, most)]
        assert counted == len(self)
        lists, marked = _marks(self.nodes, trees, low, high, owners)
        assert len(lists) == self._marks.total, "the number of marks fits the intervals"
        expected = np.stack([lists, marked])
        found = np.stack(self._marks.flat())
        for marks in (expected, found):
            marks[:] = marks[:, np.lexsort(marks[::-1])]
        assert (expected == found).all(), "marks stand where a walk puts them"

    def _marks_of(self, tree: int, low: int, high: int, owner: int) -> tuple[Int64s, Int64s]:
        one = np.array([[tree], [low], [high], [owner]], np.int64)
        return _marks(self.nodes, one[0], one[1], one[2], one[3])

    def _node(self, tree: int, key: int) -> int:
        """The node of a key; a new node starts as a leaf without marks and is rotated up."""
        if tree >= len(self.nodes.root):
            self._grow(max(tree + 1, 2 * len(self.nodes.root)), len(self.nodes.key))
        node, above = _find(self.nodes, tree, key)
        if node >= 0:
            return node
        if not self._free and self._used == len(self.nodes.key):
            self._grow(len(self.nodes.root), max(8, 3 * self._used // 2))
        if self._free:
            node = self._free.pop()
        else:
            node = self._used
            self._used += 1
            self._marks.number(3 * self._used)
        nodes = self.nodes
        nodes.key[node], nodes.parent[node], nodes.ends[node] = key, above, 0
        nodes.child[node] = -1
        nodes.priority[node] = self._random.integers(2**62)
        if above < 0:
            nodes.root[tree] = node
        else:
            nodes.child[above, int(key > nodes.key[above])] = node
        while (above := int(nodes.parent[node])) >= 0:
            if nodes.priority[node] <= nodes.priority[above]:
                break
            self._rotate(tree, above, int(nodes.child[above, 1] == node))
        return node

    def _drop(self, tree: int, node: int) -> None:
        """Rotate a node without ends down until it is a leaf without marks, then cut it off."""
        nodes = self.nodes
        while nodes.child[node].max() >= 0:
            left, right = nodes.child[node].tolist()
            rises = left < 0 or (right >= 0 and nodes.priority[right] > nodes.priority[left])
            self._rotate(tree, node, int(rises))
        above = nodes.parent[node]
        if above < 0:
            nodes.root[tree] = -1
        else:
            nodes.child[above, int(nodes.child[above, 1] == node)] = -1
        assert not self.lists.size[3 * node : 3 * node + 3].any(), "a leaf keeps no marks"
        self._free.append(node)

    def _rotate(self, tree: int, node: int, side: int) -> None:
        lists, owners, gone = _rotate(
            self.nodes, self._marks.lists, self._marks.slots, self._flags, tree, node, side
        )
        self._marks.removed(gone)
        self._marks.append(lists, owners)

    def _grow(self, trees: int, nodes: int) -> None:
        old, self.nodes = self.nodes, _nodes(trees, nodes)
        for field in IbsTreeNodes._fields:
            before = getattr(old, field)
            getattr(self.nodes, field)[: len(before)] = before

    def _flag(self, owners: Int64s) -> None:
        self._flags = grown(self._flags, int(owners.max()) + 1)


def _nodes(trees: int, size: int) -> IbsTreeNodes:
    return IbsTreeNodes(
        np.full(trees, -1, np.int32),
        np.zeros(size, np.int64),
        np.full((size, 2), -1, np.int32),
        np.full(size, -1, np.int32),
        np.zeros(size, np.int64),
        np.zeros(size, np.int32),
    )


@kernel
def descend(nodes: IbsTreeNodes, node: int, value: int) -> tuple[int, int]:
    """The list of marks to read at a node on the way to a value, and the next node or -1."""
    if value == nodes.key[node]:
        return 3 * node + AT, -1
    side = 1 if value > nodes.key[node] else 0
    return 3 * node + 2 * side, nodes.child[node, side]


@kernel
def _find(nodes: IbsTreeNodes, tree: int, key: int) -> tuple[int, int]:
    """The node of a key or -1, and its actual or prospective parent."""
    node, above = nodes.root[tree], -1
    while node >= 0 and nodes.key[node] != key:
        above = node
        node = nodes.child[node, 1 if key > nodes.key[node] else 0]
    return node, above if node < 0 else nodes.parent[node]


@kernel
def _balance(nodes: IbsTreeNodes, tree: Int64s, priorities: Int64s) -> None:
    """Build trees of minimum height from nodes sorted by tree and key.

    Works level by level over runs of nodes, so that it can assign the descending `priorities` in
    the order in which it meets the nodes.
    """
    size = len(tree)
    run = np.empty((size, 3), np.int64)  # begin, end, parent; each run yields one node
    runs = 0
    begin = 0
    for i in range(1, size + 1):
        if i == size or tree[i] != tree[begin]:
            run[runs] = begin, i, -1
            runs += 1
            begin = i
    for i in range(size):  # one run per node; later iterations reach the runs added here
        begin, end, above = run[i]
        node = (begin + end) // 2
        nodes.priority[node] = priorities[i]
        nodes.parent[node] = above
        if above < 0:
            nodes.root[tree[node]] = node
        else:
            nodes.child[above, 1 if node > above else 0] = node
        if begin < node:
            run[runs] = begin, node, node
            runs += 1
        if node + 1 < end:
            run[runs] = node + 1, end, node
            runs += 1


@kernel
def _marks(
    nodes: IbsTreeNodes, trees: Int64s, low: Int64s, high: Int64s, owners: Int64s
) -> tuple[Int64s, Int64s]:
    """The marks of some intervals whose ends are keys, as pairs (list, owner)."""
    lists = np.empty(1024, np.int64)
    marked = np.empty(1024, np.int64)
    n = 0
    for i in range(len(trees)):
        start = n
        # The highest node inside the interval: above it, both ends lie on the same side.
        top = nodes.root[trees[i]]
        while not low[i] <= nodes.key[top] <= high[i]:
            top = nodes.child[top, 1 if low[i] > nodes.key[top] else 0]
        lists = ensure_capacity(lists, n, 1)
        lists[n] = 3 * top + AT
        n += 1
        # From there to each end: a node inside the interval is marked at its key and inner side.
        for side in range(2):
            end = low[i] if side == 0 else high[i]
            node = top
            while nodes.key[node] != end:
                node = nodes.child[node, 1 if end > nodes.key[node] else 0]
                if low[i] <= nodes.key[node] <= high[i]:
                    lists = ensure_capacity(lists, n, 2)
                    lists[n] = 3 * node + AT
                    lists[n + 1] = 3 * node + (ABOVE if side == 0 else BELOW)
                    n += 2
        marked = ensure_capacity(marked, start, n - start)
        marked[start:n] = owners[i]
    return lists[:n], marked[:n]


@kernel
def _rotate(
    nodes: IbsTreeNodes,
    lists: Lists,
    pool: Int32s,
    flags: UInt8s,
    tree: int,
    node: int,
    side: int,
) -> tuple[Int64s, Int64s, int]:
    """Rotate a child above its parent; returns the marks to add and the number of marks removed.

    The cost is proportional to the sizes of both nodes' sets.
    """
    rising = nodes.child[node, side]
    inner = nodes.child[rising, 1 - side]
    above = nodes.parent[node]
    nodes.child[node, side] = inner
    nodes.child[rising, 1 - side] = node
    nodes.parent[node] = rising
    nodes.parent[rising] = above
    if inner >= 0:
        nodes.parent[inner] = node
    if above < 0:
        nodes.root[tree] = rising
    else:
        nodes.child[above, 1 if nodes.child[above, 1] == node else 0] = rising
    # "Near" is the side of the child before the rotation. An interval marked on the near side of
    # the node stays there. It is now also marked at the child's key and on the child's near side.
    near, far = 2 * side, 2 - 2 * side
    node_near, node_at, node_far = 3 * node + near, 3 * node + AT, 3 * node + far
    rising_near, rising_at, rising_far = 3 * rising + near, 3 * rising + AT, 3 * rising + far
    most = 2 * lists.size[node_near] + lists.size[rising_far]
    add_to = np.empty(most, np.int64)
    add = np.empty(most, np.int64)
    n = 0
    for i in range(lists.start[node_near], lists.start[node_near] + lists.size[node_near]):
        add_to[n], add[n] = rising_near, pool[i]
        add_to[n + 1], add[n + 1] = rising_at, pool[i]
        n += 2
    # An interval that contains the far side of both nodes and the key between them is now marked
    # at the child alone. The flags count how many of the three sets hold an owner.
    for which in (rising_far, node_far, node_at):
        for i in range(lists.start[which], lists.start[which] + lists.size[which]):
            flags[pool[i]] += 1
    gone = 0
    kept = lists.start[rising_far]
    for i in range(kept, kept + lists.size[rising_far]):
        owner = pool[i]
        if flags[owner] == 3:
            pool[kept] = owner
            kept += 1
        else:
            add_to[n], add[n] = node_near, owner
            n += 1
            flags[owner] = 0
    gone += lists.start[rising_far] + lists.size[rising_far] - kept
    lists.size[rising_far] = kept - lists.start[rising_far]
    for which in (node_far, node_at):
        kept = lists.start[which]
        for i in range(kept, kept + lists.size[which]):
            owner = pool[i]
            if flags[owner] == 3:
                gone += 1
            else:
                pool[kept] = owner
                kept += 1
                flags[owner] = 0
        lists.size[which] = kept - lists.start[which]
    for i in range(lists.start[rising_far], lists.start[rising_far] + lists.size[rising_far]):
        flags[pool[i]] = 0
    return add_to[:n], add[:n], gone
