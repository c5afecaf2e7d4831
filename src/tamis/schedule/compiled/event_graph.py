"""An event's own numbering of its survivors and their predicates.

All numbers start from 0 again: what the event touches lies close together, and it costs the
literals of its survivors, however many clauses there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.index.kernel import kernel
from tamis.schedule.compiled.graph import BITS, FALSE, MASK, TRUE, Int32s, Int64s

SIZES = 3  # items of `longs` before the others


class Numbering(NamedTuple):
    """Who has which predicate, among the survivors, as kernels see it."""

    clause: Int64s  # number outside
    start: Int32s  # literals of clause i: start[i] to start[i + 1]
    literal: Int32s  # 8 * predicate + mask
    sibling: Int32s  # the next clause of its owner, in a ring
    predicate: Int64s  # number outside
    first: Int32s  # holders of predicate t: first[t] to first[t + 1]
    holder: Int32s  # 8 * clause + mask
    dies: Int32s  # per predicate: holders that FALSE kills, and then those that TRUE kills
    killers: Int32s  # per clause: literals that FALSE or TRUE kills
    family: Int32s  # per clause: the first clause of its owner


class Numbered(NamedTuple):
    """The same, as Python has it: two flat arrays. Handing an array to a kernel costs Python a
    fraction of a microsecond; a tuple of ten costs it forty.

    Never changed once made, so that runs can share it.
    """

    longs: Int64s  # how many clauses, literals, predicates; then their numbers outside
    ints: Int32s

    @property
    def clauses(self) -> Int64s:
        """By number: the number outside."""
        return self.longs[SIZES : SIZES + self.longs[0]]

    @property
    def predicates(self) -> Int64s:
        """By number: the number outside."""
        return self.longs[SIZES + self.longs[0] :]


class Scratch(NamedTuple):
    """Numbers within an event by number outside; all -1 between events."""

    predicate: Int32s
    group: Int32s


@kernel
def numbering(longs: Int64s, ints: Int32s) -> Numbering:
    """Where everything lies in the flat arrays."""
    n, m, k = longs[0], longs[1], longs[2]
    literals = n + 1
    per_clause = literals + 2 * m
    per_predicate = per_clause + 3 * n
    return Numbering(
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
def measure(size: Int32s, clauses: Int64s) -> int:
    """The literals of these clauses; negative, where clause -1 - i is none."""
    total = 0
    for i in range(len(clauses)):
        c = clauses[i]
        if c < 0 or c >= len(size) or size[c] == 0:
            return -1 - i
        total += size[c]
    return total


@kernel
def number(
    pool_start: Int64s,
    pool_size: Int32s,
    group: Int32s,
    pool: Int32s,
    place: Int32s,
    last: Int32s,
    clauses: Int64s,
    literals: int,
) -> tuple[Int64s, Int32s]:
    """Number the survivors, in this order: the arrays of `Numbered`.

    The first four are the links of the graph, the next two the scratch; where no owner has two
    clauses, `last` may be empty. Two passes over the literals; the second, which writes all over
    `holder`, costs most.
    """
    n = len(clauses)
    coded = np.empty(literals, np.int32)
    outside = np.empty(min(literals, len(place)), np.int64)
    held = np.empty(len(outside), np.int32)
    k = 0
    to = 0
    for i in range(n):
        c = clauses[i]
        for at in range(pool_start[c], pool_start[c] + pool_size[c]):
            code = pool[at]
            t = place[code >> BITS]
            if t < 0:
                t = k
                place[code >> BITS] = t
                outside[t] = code >> BITS
                held[t] = 0
                k += 1
            held[t] += 1
            coded[to] = t << BITS | code & MASK
            to += 1
    longs = np.empty(SIZES + n + k, np.int64)
    longs[0], longs[1], longs[2] = n, literals, k
    ints = np.empty(4 * n + 1 + 2 * literals + 3 * k + 2, np.int32)
    clause, start, literal, sibling, predicate, first, holder, dies, killers, family = numbering(
        longs, ints
    )
    clause[:] = clauses
    predicate[:] = outside[:k]
    literal[:] = coded
    first[0] = first[1] = 0
    for t in range(k):
        place[predicate[t]] = -1
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
            killers[i] += (literal[to] & (1 << FALSE | 1 << TRUE)) != 0
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
