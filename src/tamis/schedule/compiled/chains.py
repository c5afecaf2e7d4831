"""Chains of literals, linked where they share a predicate: the cost of orders, compiled.

A chain is evaluated from its top until a literal kills it. Literals lie in a pool, the chain of
clause c at `start[c]`; see `graph`. `p`, `doubt` and `cost` are those of `PredicateStatistics`.
"""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Floats, Int32s, Int64s
from tamis.index.kernel import inlined, kernel
from tamis.schedule.compiled.graph import BITS, FALSE, KILLS, LEAST, TRUE


@inlined
def bounded(chance: float, doubt: float) -> float:
    """The optimistic end of an uncertain probability, away from 0 and 1: dividing by it is safe."""
    return min(max(chance + doubt, LEAST), 1 - LEAST)


@inlined
def _chance(literal: int, p: Floats, doubt: Floats) -> float:
    """The probability that a literal kills, at the optimistic end of the doubt."""
    t = literal >> BITS
    kills = literal & KILLS
    chance = 0.0  # only a fault kills
    if kills == 1 << FALSE:
        chance = bounded(1 - p[t], doubt[t])
    elif kills == 1 << TRUE:
        chance = bounded(p[t], doubt[t])
    elif kills:
        chance = 1.0
    return chance


@kernel
def sort_chains(
    start: Int64s,
    size: Int32s,
    pool: Int32s,
    popular: Int32s,
    clauses: Int64s,
    p: Floats,
    doubt: Floats,
    cost: Floats,
) -> None:
    """Sort the literals of each clause into the order that costs least for this clause alone.

    The order is by cost / probability to kill; literals that never kill come last. Ties go to the
    more popular predicate, then to the lower number: so two chains have their common predicates in
    the same order.
    """
    for i in range(len(clauses)):
        begin = start[clauses[i]]
        for at in range(begin + 1, begin + size[clauses[i]]):
            literal = pool[at]
            chance = _chance(literal, p, doubt)
            price = max(cost[literal >> BITS], LEAST)
            to = at
            while to > begin:
                above = pool[to - 1]
                mine = price * _chance(above, p, doubt)
                other = max(cost[above >> BITS], LEAST) * chance
                if mine > other:
                    break
                if mine == other:
                    more = popular[above >> BITS] - popular[literal >> BITS]
                    if more > 0 or (more == 0 and above < literal):
                        break
                pool[to] = above
                to -= 1
            pool[to] = literal


@kernel
def turn_ratios(
    start: Int64s,
    size: Int32s,
    pool: Int32s,
    clauses: Int64s,
    p: Floats,
    doubt: Floats,
    cost: Floats,
    literals: int,
) -> tuple[Int32s, Int64s, Floats]:
    """For each literal: its predicate, its clause, and P/C.

    P is the probability that its turn comes, C the expected cost of the literals above it.
    """
    predicate, clause = np.empty(literals, np.int32), np.empty(literals, np.int64)
    ratio = np.empty(literals)
    to = 0
    for i in range(len(clauses)):
        reach, spent = 1.0, 0.0
        for at in range(start[clauses[i]], start[clauses[i]] + size[clauses[i]]):
            predicate[to], clause[to] = pool[at] >> BITS, clauses[i]
            ratio[to] = reach / spent if spent > 0 else np.inf
            spent += reach * cost[predicate[to]]
            reach *= 1 - _chance(pool[at], p, doubt)
            to += 1
    return predicate, clause, ratio


@kernel
def score_chains(
    start: Int64s,
    size: Int32s,
    pool: Int32s,
    degree: Int32s,
    clauses: Int64s,
    p: Floats,
    doubt: Floats,
    cost: Floats,
) -> tuple[Floats, Floats]:
    """For each chain its expected cost alone, and how many other chains it is expected to kill for
    each unit of this cost."""
    total, score = np.empty(len(clauses)), np.empty(len(clauses))
    for i in range(len(clauses)):
        reach, spent, killed = 1.0, 0.0, 0.0
        for at in range(start[clauses[i]], start[clauses[i]] + size[clauses[i]]):
            t = pool[at] >> BITS
            chance = _chance(pool[at], p, doubt)
            spent += reach * cost[t]
            killed += reach * chance * (degree[t] - 1)
            reach *= 1 - chance
        total[i] = spent
        score[i] = killed / max(spent, LEAST)
    return total, score


@kernel
def order_difference(
    first: Int32s, second: Int32s, p: Floats, doubt: Floats, cost: Floats
) -> float:
    """The cost of evaluating the chain `first` before `second`, minus the cost of the reverse.

    Each common predicate adds a term. The chain that goes first and reaches this predicate may kill
    the other one, and so save what the other would have spent above it:

        probability that it kills the first * P_second * C_first - the same with roles exchanged

    P is the probability to reach the predicate and to pass the common ones above it. C is the cost
    of the literals above it, as if the common ones did not exist.
    """
    total = 0.0
    for a in range(len(first)):
        for b in range(len(second)):
            if first[a] >> BITS == second[b] >> BITS:
                p_first, c_first = _above(first, a, second, p, doubt, cost)
                p_second, c_second = _above(second, b, first, p, doubt, cost)
                total += _chance(first[a], p, doubt) * p_second * c_first
                total -= _chance(second[b], p, doubt) * p_first * c_second
    return total


@kernel
def _above(
    chain: Int32s, end: int, other: Int32s, p: Floats, doubt: Floats, cost: Floats
) -> tuple[float, float]:
    """The probability to pass the literals of a chain above one of them, and their cost."""
    shared, own, spent = 1.0, 1.0, 0.0
    for at in range(end):
        mask = -1
        for b in range(len(other)):
            if chain[at] >> BITS == other[b] >> BITS:
                mask = other[b] & KILLS
        if mask >= 0:
            # Both chains have to survive it.
            shared *= 1 - _chance(chain[at] | mask, p, doubt)
        else:
            spent += own * cost[chain[at] >> BITS]
            own *= 1 - _chance(chain[at], p, doubt)
    return shared * own, spent


@kernel
def weigh_neighbours(
    start: Int64s,
    size: Int32s,
    pool: Int32s,
    predicate: Int32s,
    clause: Int64s,
    p: Floats,
    doubt: Floats,
    cost: Floats,
) -> tuple[Int64s, Int64s, Floats]:
    """Edges of the order: which clause should precede which, and the (negative) cost difference.

    `clause` lists the holders of each predicate by descending P/C; so it is enough to compare
    neighbours.
    """
    before, after = np.empty(len(clause), np.int64), np.empty(len(clause), np.int64)
    weight = np.empty(len(clause))
    many = 0
    for i in range(len(clause) - 1):
        if predicate[i] == predicate[i + 1]:
            u, v = clause[i], clause[i + 1]
            saved = order_difference(
                pool[start[u] : start[u] + size[u]],
                pool[start[v] : start[v] + size[v]],
                p,
                doubt,
                cost,
            )
            if saved > 0:
                u, v, saved = v, u, -saved
            if saved < 0:
                before[many], after[many], weight[many] = u, v, saved
                many += 1
    return before[:many], after[:many], weight[:many]


@kernel
def join_paths(before: Int64s, after: Int64s, clauses: int) -> tuple[Int64s, Int64s]:
    """Join edges into paths, in the order given; returns the next and the previous clause of each.

    An edge that would make a fork or a ring is left out.
    """
    following = np.full(clauses, -1, np.int64)
    leading = np.full(clauses, -1, np.int64)
    parent = np.arange(clauses)
    for i in range(len(before)):
        u, v = before[i], after[i]
        if following[u] >= 0 or leading[v] >= 0:
            continue
        top_u, top_v = u, v
        while parent[top_u] != top_u:
            parent[top_u] = parent[parent[top_u]]
            top_u = parent[top_u]
        while parent[top_v] != top_v:
            parent[top_v] = parent[parent[top_v]]
            top_v = parent[top_v]
        if top_u != top_v:
            parent[top_u] = top_v
            following[u] = v
            leading[v] = u
    return following, leading


@kernel
def walk_paths(heads: Int64s, following: Int64s) -> Int64s:
    """The clauses of the paths with these heads, in order."""
    order = np.empty(len(following), np.int64)
    many = 0
    for i in range(len(heads)):
        at = heads[i]
        while at >= 0:
            order[many] = at
            many += 1
            at = following[at]
    return order[:many]
