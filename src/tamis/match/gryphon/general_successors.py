"""Successor nodes of the general matching tree: where a search goes on after a dead end.

The search takes the edges of results first. At a leaf, or at a node without an edge for the event's
result, it goes on with the successors of the node. These replace the stars that it has passed since
its last star or start. The path to a node says what is known of the event there. So a successor is
not the star child itself, but the first nodes below it whose tests are still open.

Let the successors of a node be given for its parent, and add the star child of the parent. Each of
them is followed as far as the path decides: along the edge of the result, or, where there is no
such edge, to its star child and its own successors. A node that is left as it stands is always
right, so this may stop anywhere.

The aggressive form also uses why the search is blocked: the result of the node's test is not on any
of its edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int64s
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.match.gryphon.match_tree import (
    AT_MOST,
    EQUALS,
    EXAMINE,
    KINDS,
    LEAF,
    MatchTreeArrays,
    child,
    walk_order,
)
from tamis.match.gryphon.successors import Successors

_MOST = 64  # successors of a node that are followed; the sets could grow with every level
_OPEN, _BLOCKED = -1, -2  # in place of the node that a test leads to


class PathFacts(NamedTuple):
    """What is known of an event at a node.

    The path has the nodes that labelled edges lead to, up to the root. If `blocked` is not -1, the
    search is blocked there: the value of its attribute is between `low` and `high`, and on none of
    its edges, or it is missing.
    """

    path: Int64s
    blocked: int
    low: int
    high: int


class Annotations(NamedTuple):
    """The successors found so far: those of node v are `nodes[starts[v]:starts[v] + sizes[v]]`."""

    starts: Int64s
    sizes: Int64s
    nodes: Int64s


@kernel
def general_successors(tree: MatchTreeArrays, top: int, aggressive: bool) -> Successors:
    """Annotate every node with the nodes to go on with, its own star child included."""
    labelled, order = walk_order(tree, top)  # subtrees of stars come before those of results
    starts, sizes = np.zeros(top, np.int64), np.zeros(top, np.int64)
    plain = np.empty(max(16, top), np.int64)
    n = 0
    work = np.empty(64, np.int64)
    path = np.empty(64, np.int64)
    for v in order:
        p = tree.nodes[v].parent
        if p < 0 or tree.nodes[p].star == v:
            continue
        path, depth = _path_to(tree, v, path)
        known = _facts(path[:depth], -1, LOWEST, HIGHEST)
        many = sizes[p]
        work = ensure_capacity(work, 0, many + 1)
        work[:many] = plain[starts[p] : starts[p] + many]
        if tree.nodes[p].star >= 0:
            work[many] = tree.nodes[p].star
            many += 1
        starts[v] = n
        so_far = Annotations(starts, sizes, plain)
        plain, n, work = _follow(tree, labelled, known, so_far, plain, n, work, many)
        sizes[v] = n - starts[v]
    out = np.empty(max(16, n + top), np.int64)
    ends = np.zeros(top + 1, np.int64)
    n = 0
    so_far = Annotations(starts, sizes, plain)
    for v in range(top):
        many = sizes[v]
        work = ensure_capacity(work, 0, many + 1)
        work[:many] = plain[starts[v] : starts[v] + many]
        inner = tree.nodes[v].test >= 0
        if inner and tree.nodes[v].star >= 0:
            work[many] = tree.nodes[v].star
            many += 1
        if aggressive and inner:
            path, depth = _path_to(tree, v, path)
            blocked = _blocked_at(tree, v, path[:depth])
            out, n, work = _follow(tree, labelled, blocked, so_far, out, n, work, many)
        else:
            out = ensure_capacity(out, n, many)
            out[n : n + many] = work[:many]
            n += many
        ends[v + 1] = n
    nodes = np.empty(n, np.int32)
    nodes[:] = out[:n]
    return Successors(ends, nodes)


@kernel
def _facts(path: Int64s, blocked: int, low: int, high: int) -> PathFacts:
    return PathFacts(path, blocked, low, high)


@kernel
def _path_to(tree: MatchTreeArrays, v: int, path: Int64s) -> tuple[Int64s, int]:
    """The nodes of the path to v that labelled edges lead to; the array may be new."""
    n = 0
    u = v
    while tree.nodes[u].parent >= 0:
        p = tree.nodes[u].parent
        if tree.nodes[p].star != u:
            path = ensure_capacity(path, n, 1)
            path[n] = u
            n += 1
        u = p
    return path, n


@kernel
def _blocked_at(tree: MatchTreeArrays, v: int, path: Int64s) -> PathFacts:
    """What is known at v if none of its edges has the result of its test."""
    node = tree.nodes[v]
    kind, constant = node.test % KINDS, node.constant
    low, high = LOWEST, HIGHEST
    if kind != EXAMINE:
        yes, no = node.first >= 0, node.second >= 0
        if (yes and no) or (kind == AT_MOST and yes and constant == HIGHEST):
            low, high = HIGHEST, LOWEST  # it is missing
        elif kind == AT_MOST and yes:
            low = constant + 1
        elif kind == AT_MOST:
            high = constant
        elif no:
            low = high = constant
    return _facts(path, v, low, high)


@kernel
def _follow(
    tree: MatchTreeArrays,
    labelled: tuple[Int64s, Int64s],
    known: PathFacts,
    so_far: Annotations,
    out: Int64s,
    n: int,
    work: Int64s,
    many: int,
) -> tuple[Int64s, int, Int64s]:
    """Follow the nodes `work[:many]` as far as the facts decide, and append the ends to `out[:n]`.

    Returns the arrays, which may be new, and the number of items in `out`.
    """
    most = n + many + _MOST
    while many:
        many -= 1
        x = work[many]
        while True:
            after = _next(tree, labelled, known, x)
            if after < 0:
                break
            x = after
        more = so_far.sizes[x] + 1
        if after == _OPEN or n + many + more > most:
            out = ensure_capacity(out, n, 1)
            out[n] = x
            n += 1
            continue
        work = ensure_capacity(work, many, more)
        start = so_far.starts[x]
        work[many : many + more - 1] = so_far.nodes[start : start + more - 1]
        many += more - 1
        if tree.nodes[x].star >= 0:
            work[many] = tree.nodes[x].star
            many += 1
    return out, n, work


@kernel
def _next(tree: MatchTreeArrays, labelled: tuple[Int64s, Int64s], known: PathFacts, x: int) -> int:
    """The node that the facts lead to from x, or that they leave its test open or block it."""
    node = tree.nodes[x]
    if node.test == LEAF:
        return _OPEN
    kind, constant = node.test % KINDS, node.constant
    bound, low, high, ruled_out = _range(tree, known, node.test // KINDS, constant)
    here = known.blocked >= 0 and tree.nodes[known.blocked].test // KINDS == node.test // KINDS
    if not bound and not here:
        return _OPEN
    if kind == EXAMINE:
        if bound and low == high:
            below = child(tree, x, low)
            return below if below >= 0 else _BLOCKED
        if not here:
            return _OPEN
        starts, nodes = labelled
        for at in range(starts[x], starts[x + 1]):
            value = tree.label[nodes[at]]
            if low <= value <= high and not _is_on_edge(tree, known.blocked, value):
                return _OPEN
        return _BLOCKED
    yes = no = False
    if low <= high:
        if kind == AT_MOST:
            yes, no = low <= constant, high > constant
        else:
            yes = low <= constant <= high and not ruled_out
            no = not (low == high == constant)
    if bound and yes != no:
        below = node.first if yes else node.second
        return int(below) if below >= 0 else _BLOCKED
    if (yes and node.first >= 0) or (no and node.second >= 0):
        return _OPEN
    return _BLOCKED


@kernel
def _range(
    tree: MatchTreeArrays, known: PathFacts, a: int, constant: int
) -> tuple[bool, int, int, bool]:
    """Whether an attribute is surely bound, the range of its value, and if a constant is out."""
    bound = ruled_out = False
    low, high = LOWEST, HIGHEST
    for u in known.path:
        node = tree.nodes[tree.nodes[u].parent]
        if node.test // KINDS != a:
            continue
        bound = True
        kind, result = node.test % KINDS, tree.label[u]
        if kind == EXAMINE:
            low, high = max(low, result), min(high, result)
        elif kind == AT_MOST and result:
            high = min(high, node.constant)
        elif kind == AT_MOST:
            low = max(low, node.constant + 1)
        elif result:
            low, high = max(low, node.constant), min(high, node.constant)
        else:
            ruled_out |= node.constant == constant
    if known.blocked >= 0:
        node = tree.nodes[known.blocked]
        if node.test // KINDS == a:
            low, high = max(low, known.low), min(high, known.high)
            ruled_out |= _is_on_edge(tree, known.blocked, constant)
    return bound, low, high, ruled_out


@kernel
def _is_on_edge(tree: MatchTreeArrays, v: int, value: int) -> bool:
    """Whether a blocked search rules out this very value: v has an edge for it."""
    node = tree.nodes[v]
    if node.test % KINDS == EXAMINE:
        return child(tree, v, value) >= 0
    return bool(node.test % KINDS == EQUALS and node.constant == value and node.first >= 0)


@kernel
def leap_general(
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
                a, kind = node.test // KINDS, node.test % KINDS
                if first[a] < last[a]:
                    value = code[first[a]]
                    if kind == EXAMINE:
                        below = child(tree, v, value)
                    elif value <= node.constant if kind == AT_MOST else value == node.constant:
                        below = node.first
                    else:
                        below = node.second
            if below < 0:
                break
            v = below
        start, end = follow.starts[v], follow.starts[v + 1]
        if left + end - start > len(stack):
            stack = ensure_capacity(stack, left, end - start)
        for at in range(start, end):
            stack[left] = follow.nodes[at]
            left += 1
    return stack, lists, found, visited
