"""Subscriptions with equal normal forms, as classes of sets of clauses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encode.terms import Terms
from tamis.engine.redundancy.canonical_clauses import CanonicalClauses
from tamis.engine.redundancy.cover_tests import LEAST, MOST, clear, lay_out, lies_in
from tamis.files.arrays import Bools, Int64s
from tamis.index.kernel import kernel


class SubscriptionClasses(NamedTuple):
    """Class c has the clauses `clauses[starts[c]:starts[c + 1]]`."""

    of: Int64s  # the class of each subscription, or -1 if no clause of it can hold
    first: Int64s  # the first subscription of each class
    starts: Int64s
    clauses: Int64s
    single: Bools  # classes with one clause


@kernel
def _hashes(rows: Terms) -> tuple[Int64s, Int64s]:
    """Two numbers for each clause, equal for equal clauses."""
    many = len(rows.starts) - 1
    left, right = np.empty(many, np.int64), np.empty(many, np.int64)
    for clause in range(many):
        a, b, number, before = np.uint64(17), np.uint64(23), 0, -1
        start = rows.starts[clause]
        for row in range(start, rows.starts[clause + 1]):
            if row > start and (
                rows.attribute[row] != rows.attribute[row - 1] or rows.term[row] != before
            ):
                number += 1
            before = rows.term[row]
            for value in (
                np.int64(rows.attribute[row]),
                np.int64(number * 2 + rows.kind[row]),
                rows.low[row],
                rows.high[row],
            ):
                a = (a ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
                a ^= a >> np.uint64(29)
                b = (b + np.uint64(value)) * np.uint64(0xC2B2AE3D27D4EB4F)
                b ^= b >> np.uint64(31)
        left[clause], right[clause] = np.int64(a), np.int64(b)
    return left, right


@kernel
def _same(rows: Terms, one: int, other: int) -> bool:
    start, begin = rows.starts[one], rows.starts[other]
    size = rows.starts[one + 1] - start
    if rows.starts[other + 1] - begin != size:
        return False
    for i in range(size):
        a, b = start + i, begin + i
        if (
            rows.attribute[a] != rows.attribute[b]
            or rows.kind[a] != rows.kind[b]
            or rows.low[a] != rows.low[b]
            or rows.high[a] != rows.high[b]
        ):
            return False
        if i == 0 or rows.attribute[a] != rows.attribute[a - 1]:
            continue
        if (rows.term[a] == rows.term[a - 1]) != (rows.term[b] == rows.term[b - 1]):
            return False
    return True


@kernel
def _numbered(rows: Terms, order: Int64s, left: Int64s, right: Int64s) -> Int64s:
    """The first clause that equals each. `order` sorts by both hashes, then by place."""
    first = np.empty(len(order), np.int64)
    begin = 0
    for at in range(len(order)):
        clause = order[at]
        lead = order[begin]
        if left[clause] != left[lead] or right[clause] != right[lead]:
            begin = at
        first[clause] = clause
        for before in range(begin, at):  # one step, unless two different clauses have one hash
            if first[order[before]] == order[before] and _same(rows, order[before], clause):
                first[clause] = order[before]
                break
    return first


@kernel
def _absorbed(settled: Terms, own: Terms, starts: Int64s, clauses: Int64s, spans: Int64s) -> Bools:
    """Which clauses of subscriptions lie in another clause of the same subscription."""
    width = len(spans)
    first, last = np.zeros(width, np.int64), np.zeros(width, np.int64)
    low, high = np.full(width, LEAST, np.int64), np.full(width, MOST, np.int64)
    gone = np.zeros(len(clauses), np.bool_)
    for each in range(len(starts) - 1):
        for i in range(starts[each], starts[each + 1]):
            lay_out(settled, clauses[i], spans, first, last, low, high)
            for j in range(starts[each], starts[each + 1]):
                if i != j and not gone[j] and lies_in(settled, first, last, spans, own, clauses[j]):
                    gone[i] = True
                    break
            clear(settled, clauses[i], first, last, low, high)
    return gone


def classes_of(many: int, canonical: CanonicalClauses, spans: Int64s) -> SubscriptionClasses:
    """The classes of subscriptions 0 to `many`."""
    left, right = _hashes(canonical.settled)
    order = np.lexsort((np.arange(len(left)), right, left))
    same = _numbered(canonical.settled, order, left, right)
    # Each subscription's clauses, every different one once.
    total = max(1, len(same))
    owner, clauses = np.divmod(np.unique(canonical.owner * total + same), total)
    starts = np.searchsorted(owner, np.arange(many + 1))
    several = np.flatnonzero(np.diff(starts) > 1)
    if len(several):
        mine = np.isin(owner, several)
        gone = np.zeros(len(owner), np.bool_)
        begins = np.concatenate([[0], np.cumsum(np.diff(starts)[several])])
        gone[mine] = _absorbed(canonical.settled, canonical.own, begins, clauses[mine], spans)
        owner, clauses = owner[~gone], clauses[~gone]
        starts = np.searchsorted(owner, np.arange(many + 1))
    counts = np.diff(starts)
    of = np.full(many, -1, np.int64)
    single = np.flatnonzero(counts == 1)
    leads, index = np.unique(clauses[starts[single]], return_inverse=True)
    of[single] = index
    lists = leads[:, None].tolist()
    known: dict[tuple[int, ...], int] = {}
    for each in np.flatnonzero(counts > 1).tolist():
        key = tuple(clauses[starts[each] : starts[each + 1]].tolist())
        if key not in known:
            known[key] = len(lists)
            lists.append(list(key))
        of[each] = known[key]
    first = np.full(len(lists), many, np.int64)
    live = np.flatnonzero(of >= 0)
    np.minimum.at(first, of[live], live)
    sizes = np.array([len(each) for each in lists], np.int64)
    return SubscriptionClasses(
        of,
        first,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([clause for each in lists for clause in each], np.int64),
        sizes == 1,
    )
