"""The graph of one event: the clauses that survived the matcher, and their predicates.

Clauses and predicates get local numbers from 0 on. What the event touches lies close together, and
the time depends on the literals of the survivors only, however many clauses there are.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.kernel import kernel
from tamis.schedule.compiled.graph import BITS, FALSE, KILLS, MASK, TRUE

SIZES = 3  # items of `longs` before the others


class EventGraph(NamedTuple):
    """The arrays as kernels read them."""

    clause: Int64s  # its global number
    start: Int32s  # literals of clause i: start[i] to start[i + 1]
    literal: Int32s  # 8 * predicate + mask
    sibling: Int32s  # the next clause of its owner, in a ring
    predicate: Int64s  # its global number
    first: Int32s  # holders of predicate t: first[t] to first[t + 1]
    holder: Int32s  # 8 * clause + mask
    dies: Int32s  # per predicate: holders that FALSE kills, and then those that TRUE kills
    killers: Int32s  # per clause: literals that FALSE or TRUE kills
    family: Int32s  # per clause: the first clause of its owner


class FlatEventGraph(NamedTuple):
    """The same graph in two flat arrays, as Python holds it. To pass an array to a kernel costs a
    fraction of a microsecond; to pass a tuple of ten costs forty.

    Immutable, so that runs can share it.
    """

    longs: Int64s  # counts of clauses, literals, predicates; then their global numbers
    ints: Int32s

    @property
    def clauses(self) -> Int64s:
        """Global numbers, by local number."""
        return self.longs[SIZES : SIZES + self.longs[0]]

    @property
    def predicates(self) -> Int64s:
        """Global numbers, by local number."""
        return self.longs[SIZES + self.longs[0] :]


class LocalNumbers(NamedTuple):
    """Local numbers by global number; all -1 between events."""

    predicate: Int32s
    group: Int32s


class SharedCalls:
    """The predicates of an event, grouped by call.

    Grouped lazily: an event that makes no call does not pay for it.
    """

    def __init__(self, predicates: Int64s, calls: Int64s) -> None:
        self._predicates = predicates
        self.calls = calls  # from `ClauseGraph.calls`

    @cached_property
    def local(self) -> Int32s:
        """For each predicate the number of its call, from 0 on."""
        return np.unique(self.calls, return_inverse=True)[1].astype(np.int32)

    @cached_property
    def _sorted(self) -> Int64s:
        return self._predicates[np.argsort(self.local, kind="stable")]

    @cached_property
    def _first(self) -> Int64s:
        return np.append(0, np.cumsum(np.bincount(self.local)))

    def answered_with(self, predicate: int) -> Int64s:
        """The predicates that the call for this one (a local number) answers, itself included."""
        call = self.local[predicate]
        return self._sorted[self._first[call] : self._first[call + 1]]


@kernel
def event_graph(longs: Int64s, ints: Int32s) -> EventGraph:
    """Views of the flat arrays."""
    n, m, k = longs[0], longs[1], longs[2]
    literals = n + 1
    per_clause = literals + 2 * m
    per_predicate = per_clause + 3 * n
    return EventGraph(
        longs[SIZES : SIZES + n],
        ints[:literals],
        ints[literals : literals + m],
        ints[per_clause : per_clause + n],
        longs[SIZES + n :],
        ints[per_predicate : per_predicate + k + 2],
        ints[literals + m : per_clause],
        ints[per_predicate + k + 2 :],
        ints[per_clause + n : per_clause + 2 * n],
        ints[per_clause + 2 * n : per_predicate],
    )


@kernel
def count_literals(size: Int32s, clauses: Int64s) -> int:
    """How many literals these clauses have; -1 - i where clauses[i] does not exist."""
    total = 0
    for i in range(len(clauses)):
        c = clauses[i]
        if c < 0 or c >= len(size) or size[c] == 0:
            return -1 - i
        total += size[c]
    return total


@kernel
def build_event_graph(
    pool_start: Int64s,
    pool_size: Int32s,
    group: Int32s,
    pool: Int32s,
    local: Int32s,
    last: Int32s,
    clauses: Int64s,
    literals: int,
) -> tuple[Int64s, Int32s]:
    """The arrays of a `FlatEventGraph`, with the survivors in this order.

    The first four arguments are the `GraphArrays`, the next two the `LocalNumbers`; `last` may be
    empty where no owner has two clauses. Two passes over the literals. The second costs most: its
    writes to `holder` are random accesses.
    """
    n = len(clauses)
    coded = np.empty(literals, np.int32)
    numbers = np.empty(min(literals, len(local)), np.int64)
    held = np.empty(len(numbers), np.int32)
    k = 0
    to = 0
    for i in range(n):
        c = clauses[i]
        for at in range(pool_start[c], pool_start[c] + pool_size[c]):
            code = pool[at]
            t = local[code >> BITS]
            if t < 0:
                t = k
                local[code >> BITS] = t
                numbers[t] = code >> BITS
                held[t] = 0
                k += 1
            held[t] += 1
            coded[to] = t << BITS | code & MASK
            to += 1
    longs = np.empty(SIZES + n + k, np.int64)
    longs[0], longs[1], longs[2] = n, literals, k
    ints = np.empty(4 * n + 1 + 2 * literals + 3 * k + 2, np.int32)
    clause, start, literal, sibling, predicate, first, holder, dies, killers, family = event_graph(
        longs, ints
    )
    clause[:] = clauses
    predicate[:] = numbers[:k]
    literal[:] = coded
    first[0] = first[1] = 0
    for t in range(k):
        local[predicate[t]] = -1
        first[t + 2] = first[t + 1] + held[t]
    to = 0
    for i in range(n):
        start[i] = to
        killers[i] = 0
        sibling[i] = family[i] = i
        for _ in range(pool_size[clauses[i]]):
            t = literal[to] >> BITS
            holder[first[t + 1]] = i << BITS | literal[to] & MASK
            first[t + 1] += 1
            killers[i] += (literal[to] & KILLS) != 0
            to += 1
    start[n] = to
    for t in range(k):
        dies[2 * t] = dies[2 * t + 1] = 0
        for at in range(first[t], first[t + 1]):
            dies[2 * t] += (holder[at] >> FALSE) & 1
            dies[2 * t + 1] += (holder[at] >> TRUE) & 1
    if len(last):
        for i in range(n):
            g = group[clauses[i]]
            if last[g] >= 0:
                sibling[i] = sibling[last[g]]
                sibling[last[g]] = i
                family[i] = family[last[g]]
            last[g] = i
        for i in range(n):
            last[group[clauses[i]]] = -1
    return longs, ints
