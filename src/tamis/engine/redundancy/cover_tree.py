"""A tree of clauses in which those around a given clause are found.

A clause B can only contain a clause A if each interval of B reaches around that of A on the same
attribute. So clauses are divided: by whether they mention an attribute at all, by the low ends of
their intervals on an attribute, or by the high ends. Both halves keep the hull of their intervals
on that attribute. A search leaves out a half whose hull does not reach around the interval of A.
The division is the one that a sample of the clauses, taken as searches, would visit least of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encode.terms import Terms
from tamis.engine.redundancy.cover_tests import (
    LEAST,
    MOST,
    clear,
    contains_point,
    hulls,
    lay_out,
    lies_in,
)
from tamis.files.arrays import Int32s, Int64s
from tamis.index.kernel import kernel

_LEAF = 16
_SAMPLE = 40


class CoverTree(NamedTuple):
    """The nodes, and the clauses in the order of their leaves.

    The two children of a node are `child` and the next; a leaf has -1 there, and its clauses are
    those from `start` to `end`. `low` and `high` are the hull of a node on `attribute`, the one on
    which its parent was divided.
    """

    attribute: Int32s
    low: Int64s
    high: Int64s
    child: Int64s
    start: Int64s
    end: Int64s
    order: Int64s


@kernel
def _find(hull: tuple[Int64s, Int32s, Int64s, Int64s], clause: int, attribute: int) -> int:
    """The place of an attribute in the hulls of a clause, or -1."""
    starts, attributes = hull[0], hull[1]
    low, high = starts[clause], starts[clause + 1]
    while low < high:
        at = (low + high) // 2
        if attributes[at] < attribute:
            low = at + 1
        else:
            high = at
    return low if low < starts[clause + 1] and attributes[low] == attribute else -1


@kernel
def _build(
    hull: tuple[Int64s, Int32s, Int64s, Int64s], order: Int64s, width: int
) -> tuple[Int32s, Int64s, Int64s, Int64s, Int64s, Int64s]:
    """Divide the clauses of `order`, which is sorted by the way."""
    starts, attributes, lows, highs = hull
    room = max(16, len(order))
    attribute = np.full(room, -1, np.int32)
    low, high = np.full(room, LEAST, np.int64), np.full(room, MOST, np.int64)
    child, start, end = (
        np.full(room, -1, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64)
    )  # fmt: skip
    seen = np.zeros(width, np.int32)
    sample = np.empty(_SAMPLE, np.int64)
    ends = np.empty((2, _SAMPLE), np.int64)
    spare = np.empty(len(order), np.int64)
    nodes, at = 1, 0
    end[0] = len(order)
    while at < nodes:
        s, e = start[at], end[at]
        size = e - s
        if size <= _LEAF or nodes + 2 > room:
            at += 1
            continue
        many = min(_SAMPLE, size)
        for i in range(many):
            sample[i] = order[s + i * size // many]
        best, chosen, way, limit = float(many), -1, 0, 0
        for i in range(many):
            for row in range(starts[sample[i]], starts[sample[i] + 1]):
                seen[attributes[row]] += 1
        for i in range(many):
            for row in range(starts[sample[i]], starts[sample[i] + 1]):
                a = attributes[row]
                count = seen[a]
                seen[a] = 0  # look at each attribute once
                if count == 0:
                    continue
                if count < many:
                    share = count / many
                    cost = many * (1 - share + share * share)
                    if cost < best:
                        best, chosen, way, limit = cost, a, 0, 0
                    continue
                for j in range(many):
                    place = _find(hull, sample[j], a)
                    ends[0, j], ends[1, j] = lows[place], highs[place]
                for side in range(2):
                    middle = np.sort(ends[side, :many])[many // 2]
                    cost = _cost(ends, many, side, middle)
                    if cost < best:
                        best, chosen, way, limit = cost, a, side + 1, middle
        if chosen < 0 or best > 0.98 * many:
            at += 1
            continue
        left, right = s, 0
        hull_low, hull_high = np.full(2, MOST, np.int64), np.full(2, LEAST, np.int64)
        for i in range(s, e):
            place = _find(hull, order[i], chosen)
            if way == 0:
                half = 0 if place < 0 else 1
            elif way == 1:
                half = 0 if lows[place] < limit else 1
            else:
                half = 0 if highs[place] < limit else 1
            if place < 0:
                hull_low[half], hull_high[half] = LEAST, MOST
            else:
                hull_low[half] = min(hull_low[half], lows[place])
                hull_high[half] = max(hull_high[half], highs[place])
            if half == 0:
                order[left] = order[i]
                left += 1
            else:
                spare[right] = order[i]
                right += 1
        order[left:e] = spare[:right]
        if left in (s, e):
            at += 1
            continue
        child[at] = nodes
        for half in range(2):
            node = nodes + half
            attribute[node] = chosen
            low[node], high[node] = hull_low[half], hull_high[half]
            start[node], end[node] = (s, left) if half == 0 else (left, e)
        nodes += 2
        at += 1
    return attribute[:nodes], low[:nodes], high[:nodes], child[:nodes], start[:nodes], end[:nodes]


@kernel
def _cost(ends: Int64s, many: int, side: int, middle: int) -> float:
    """What a division costs: over the sample as searches, the clauses in the halves they visit."""
    low, high, sizes = np.full(2, MOST, np.int64), np.full(2, LEAST, np.int64), np.zeros(2)
    for i in range(many):
        half = 0 if ends[side, i] < middle else 1
        low[half] = min(low[half], ends[0, i])
        high[half] = max(high[half], ends[1, i])
        sizes[half] += 1
    if sizes[0] == 0 or sizes[1] == 0:
        return float(many)
    visited = 0.0
    for i in range(many):
        for half in range(2):
            if low[half] <= ends[0, i] and ends[1, i] <= high[half]:
                visited += sizes[half]
    return visited / many


@kernel
def _search(
    tree: CoverTree,
    rows: Terms,
    mine: Terms,
    queries: Int64s,
    skipped: Int64s,
    spans: Int64s,
    points: bool,
    most: int,
    budget: int,
    found: Int64s,
    starts: Int64s,
    spent: Int64s,
) -> int:
    """Find clauses around each of the queries; -1 if `found` has no room for them.

    `spent` counts the clauses that were looked at, and is -1 - that number where the search of a
    query ended early because of its budget.
    """
    width = len(spans)
    first, last = np.zeros(width, np.int64), np.zeros(width, np.int64)
    low, high = np.full(width, LEAST, np.int64), np.full(width, MOST, np.int64)
    stack = np.empty(1 << 16, np.int64)  # a division takes a share of a sample, so few are nested
    many = 0
    for i in range(len(queries)):
        query = queries[i]
        starts[i] = many
        lay_out(mine, query, spans, first, last, low, high)
        looked, top, before = 0, 1, many
        stack[0] = 0
        while top > 0 and many - before < most and looked <= budget:
            top -= 1
            node = stack[top]
            if tree.child[node] >= 0:
                for half in range(2):
                    next_ = tree.child[node] + half
                    a = tree.attribute[next_]
                    if points and last[a] - first[a] > 1:
                        inside = False
                        for at in range(first[a], last[a]):
                            if tree.low[next_] <= mine.low[at] <= tree.high[next_]:
                                inside = True
                    else:
                        inside = tree.low[next_] <= low[a] and high[a] <= tree.high[next_]
                    if inside:
                        stack[top] = next_
                        top += 1
                continue
            for place in range(tree.start[node], tree.end[node]):
                clause = tree.order[place]
                looked += 1
                if clause == skipped[i]:
                    continue
                if points:
                    fits = contains_point(mine, first, last, rows, clause)
                else:
                    fits = lies_in(mine, first, last, spans, rows, clause)
                if fits:
                    if many == len(found):
                        clear(mine, query, first, last, low, high)
                        return -1
                    found[many] = clause
                    many += 1
                    if many - before >= most:
                        break
                if looked > budget:
                    break
        spent[i] = -1 - looked if looked > budget else looked
        clear(mine, query, first, last, low, high)
    starts[len(queries)] = many
    return many


class CoverAnswer(NamedTuple):
    """The clauses around query i: `found[starts[i]:starts[i + 1]]`."""

    starts: Int64s
    found: Int64s
    looked: int  # clauses that were looked at
    ended: Int64s  # queries whose search ended early


def build_tree(rows: Terms, clauses: Int64s, spans: Int64s) -> CoverTree:
    """A tree of some clauses. `spans` has the lowest and the highest code of each attribute."""
    order = clauses.astype(np.int64)
    nodes = _build(hulls(rows, spans), order, len(spans))
    return CoverTree(*nodes, order)


def search_around(
    tree: CoverTree,
    rows: Terms,
    mine: Terms,
    queries: Int64s,
    skipped: Int64s,
    spans: Int64s,
    *,
    points: bool = False,
    most: int = 1,
    budget: int = 1 << 20,
) -> CoverAnswer:
    """Clauses of the tree in which each query lies, other than the one to skip, `most` of each."""
    starts, spent = np.zeros(len(queries) + 1, np.int64), np.zeros(len(queries), np.int64)
    room = max(1024, len(queries) * min(most, 4))
    while True:
        found = np.empty(room, np.int64)
        many = _search(
            *(tree, rows, mine, queries, skipped, spans, points, most, budget),
            *(found, starts, spent),
        )
        if many >= 0:
            break
        room *= 4
    looked = int(np.where(spent < 0, -1 - spent, spent).sum())
    return CoverAnswer(starts, found[:many], looked, np.flatnonzero(spent < 0))
