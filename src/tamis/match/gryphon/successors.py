"""Successor nodes: where a search continues after a dead end in an equality-only tree.

The search takes labelled edges only. At a leaf, or at a node without an edge for the event's value,
it continues with the successors of the node: nodes on the same level whose path is the node's path
with stars in place of some values. The successors are known before any event. Nodes that the search
would only pass through are skipped.

If a value edge leads to a node, its successors are the star child of its parent, and the nodes that
the same value leads to from the parent's own successors. (Only the path after its last star
matters; at a star, nothing is left.) An edge that skips levels ends the run of values like a star.

The aggressive form drops successors that the dead end rules out: a node that tests the same
attribute, with no edge for a value that the blocked node has no edge for. Its star child and its
own successors take its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.match.gryphon.match_tree import FREE, KINDS, LEAF, MatchTreeArrays, child, walk_order


class Successors(NamedTuple):
    """The successors of node v are `nodes[starts[v] : starts[v + 1]]`.

    ~u instead of u means that the search arrives on the edge to u, past the value of its label. The
    search must then not follow the successors of u.
    """

    starts: Int64s
    nodes: Int32s


@kernel
def skips(tree: MatchTreeArrays, v: int) -> bool:
    """Whether the edge to v skips levels."""
    p = tree.nodes[v].parent
    return bool(p >= 0 and tree.nodes[v].level > tree.nodes[p].level + 1)


@kernel
def successors(tree: MatchTreeArrays, top: int) -> Successors:
    """Annotate every node. The cost is proportional to the size of the annotations."""
    order = _by_depth(tree, top)
    start = np.zeros(top, np.int64)
    size = np.zeros(top, np.int64)
    out = np.empty(max(16, top), np.int64)
    n = 0
    stack = np.empty(64, np.int64)
    for v in order:
        p = tree.nodes[v].parent
        if p < 0 or tree.nodes[p].star == v:
            continue
        start[v] = n
        if tree.nodes[p].star >= 0:
            out = ensure_capacity(out, n, 1)
            out[n] = tree.nodes[p].star
            n += 1
        if not skips(tree, p):
            level, value = tree.nodes[p].level, tree.label[v]
            stack = ensure_capacity(stack, 0, size[p])
            left = 0
            for at in range(start[p], start[p] + size[p]):
                stack[left] = out[at]
                left += 1
            while left:
                left -= 1
                x = stack[left]
                r = x if x >= 0 else ~x
                out = ensure_capacity(out, n, 1)
                if tree.nodes[r].level > level:
                    out[n] = ~r
                    n += 1
                else:
                    below = child(tree, r, value)
                    if below >= 0:
                        out[n] = below
                        n += 1
                        continue
                    if tree.nodes[r].star >= 0:
                        out[n] = tree.nodes[r].star
                        n += 1
                if x >= 0:
                    stack = ensure_capacity(stack, left, size[r])
                    for at in range(start[r], start[r] + size[r]):
                        stack[left] = out[at]
                        left += 1
        size[v] = n - start[v]
    starts = np.zeros(top + 1, np.int64)
    nodes = np.empty(n, np.int32)
    for v in range(top):
        starts[v + 1] = starts[v] + size[v]
        nodes[starts[v] : starts[v + 1]] = out[start[v] : start[v] + size[v]]
    return Successors(starts, nodes)


@kernel
def refined(tree: MatchTreeArrays, top: int, plain: Successors) -> Successors:
    """The aggressive form of successors."""
    labelled, _ = walk_order(tree, top)
    starts = np.zeros(top + 1, np.int64)
    out = np.empty(max(16, len(plain.nodes)), np.int64)
    stack = np.empty(64, np.int64)
    n = 0
    for v in range(top):
        left = plain.starts[v + 1] - plain.starts[v]
        stack = ensure_capacity(stack, 0, left)
        stack[:left] = plain.nodes[plain.starts[v] : plain.starts[v + 1]]
        # Behind an edge that skips levels, the search goes on with them without a dead end.
        sure = tree.nodes[v].test >= 0 and not skips(tree, v)
        while left:
            left -= 1
            x = stack[left]
            r = x if x >= 0 else ~x
            if not sure or not _blocked_too(tree, labelled, v, r):
                out = ensure_capacity(out, n, 1)
                out[n] = x
                n += 1
                continue
            more = plain.starts[r + 1] - plain.starts[r] if x >= 0 else 0
            stack = ensure_capacity(stack, left, more + 1)
            start = plain.starts[r]
            stack[left : left + more] = plain.nodes[start : start + more]
            left += more
            if tree.nodes[r].star >= 0:
                stack[left] = tree.nodes[r].star
                left += 1
        starts[v + 1] = n
    nodes = np.empty(n, np.int32)
    nodes[:] = out[:n]
    return Successors(starts, nodes)


@kernel
def _blocked_too(tree: MatchTreeArrays, labelled: tuple[Int64s, Int64s], v: int, r: int) -> bool:
    """Whether a search that is blocked at v would be blocked at r."""
    starts, nodes = labelled
    if tree.nodes[r].test != tree.nodes[v].test:
        return False
    if starts[r + 1] - starts[r] > starts[v + 1] - starts[v]:
        return False
    at, end = starts[r], starts[r + 1]
    while at < end and child(tree, v, tree.label[nodes[at]]) >= 0:
        at += 1
    return bool(at == end)


@kernel
def _by_depth(tree: MatchTreeArrays, top: int) -> Int64s:
    """The nodes by the level where their edge begins: parents and their peers come first."""
    deepest = 0
    depth = np.full(top, -1, np.int64)
    for v in range(top):
        if tree.nodes[v].test == FREE:
            continue
        p = tree.nodes[v].parent
        depth[v] = tree.nodes[p].level + 1 if p >= 0 else 0
        deepest = max(deepest, depth[v])
    starts = np.zeros(deepest + 2, np.int64)
    for v in range(top):
        if depth[v] >= 0:
            starts[depth[v] + 1] += 1
    for d in range(deepest + 1):
        starts[d + 1] += starts[d]
    order = np.empty(starts[deepest + 1], np.int64)
    for v in range(top):
        if depth[v] >= 0:
            order[starts[depth[v]]] = v
            starts[depth[v]] += 1
    return order


@kernel
def leap(
    tree: MatchTreeArrays,
    follow: Successors,
    root: int,
    first: Int64s,
    last: Int64s,
    code: Int64s,
    stack: Int64s,
    lists: Int64s,
    found: int,
) -> tuple[Int64s, Int64s, int, int]:
    """Append the lists of the leaves that an event reaches from a root to `lists[:found]`.

    The event has at most one value per attribute. Returns the stack and the lists, which may have
    grown, the number of lists, and the number of nodes visited.
    """
    visited = 0
    left = 0
    if tree.roots[root] >= 0:
        stack[0] = tree.roots[root]
        left = 1
    while left:
        left -= 1
        v = stack[left]
        owed = v >= 0  # the successors of v still have to be pushed
        if not owed:
            v = ~v
        above = -1  # the level of the previous node, if the search came down an edge
        while True:
            visited += 1
            node = tree.nodes[v]
            below = -1
            if node.test == LEAF:
                if found == len(lists):
                    lists = ensure_capacity(lists, found, 1)
                lists[found] = node.first
                found += 1
            else:
                a = node.test // KINDS
                if first[a] < last[a]:
                    below = child(tree, v, code[first[a]])
            if owed and below >= 0:
                owed = node.level > above + 1 if above >= 0 else skips(tree, v)
            if owed:
                start, end = follow.starts[v], follow.starts[v + 1]
                if left + end - start >= len(stack):
                    stack = ensure_capacity(stack, left, end - start + 1)
                for at in range(start, end):
                    stack[left] = follow.nodes[at]
                    left += 1
            if below < 0:
                if node.star >= 0:
                    if left == len(stack):
                        stack = ensure_capacity(stack, left, 1)
                    stack[left] = node.star
                    left += 1
                break
            v, above = below, node.level
            owed = True
    return stack, lists, found, visited
