"""Chains of literals, linked where they have a predicate in common: what orders cost, compiled.

A chain is evaluated from its top until a literal kills it. Literals lie in a pool, the chain of
clause c at `start[c]`; see `graph`. `p`, `doubt` and `cost` are those of `Statistics`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import inlined, kernel
from tamis.schedule.compiled.graph import BITS, FALSE, TRUE, Int32s, Int64s

Floats = NDArray[np.float64]

_KILLS = 1 << FALSE | 1 << TRUE
_LEAST = 1e-6  # chances are kept so far from 0 and 1, and costs from 0


@inlined
def _chance(literal: int, p: Floats, doubt: Floats) -> float:
    """That a literal kills; of what is doubtful, the better end."""
    t = literal >> BITS
    kills = literal & _KILLS
    chance = 0.0  # only a fault does
    if kills == 1 << FALSE:
        chance = min(max(1 - p[t] + doubt[t], _LEAST), 1 - _LEAST)
    elif kills == 1 << TRUE:
        chance = min(max(p[t] + doubt[t], _LEAST), 1 - _LEAST)
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
    """Put the literals of each clause into the order that costs least if it is alone.

    That is by cost / chance to kill, least first; those that never kill last. Of equal ones the
    more popular goes first, then the lower number: with some such rule, what two chains have in
    common comes in the same order in both.
    """
    for i in range(len(clauses)):
        begin = start[clauses[i]]
        for at in range(begin + 1, begin + size[clauses[i]]):
            literal = pool[at]
            chance = _chance(literal, p, doubt)
            price = max(cost[literal >> BITS], _LEAST)
            to = at
            while to > begin:
                above = pool[to - 1]
                mine = price * _chance(above, p, doubt)
                other = max(cost[above >> BITS], _LEAST) * chance
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
def places(
    start: Int64s,
    size: Int32s,
    pool: Int32s,
    clauses: Int64s,
    p: Floats,
    doubt: Floats,
    cost: Floats,
    literals: int,
) -> tuple[Int32s, Int64s, Floats]:
    """For each literal: its predicate, its clause, and how soon and cheaply its turn comes.

    That is P/C: the chance that its turn comes, by what is expected to be spent above it.
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
def scores(
    start: Int64s,
    size: Int32s,
    pool: Int32s,
    degree: Int32s,
    clauses: Int64s,
    p: Floats,
    doubt: Floats,
    cost: Floats,
) -> tuple[Floats, Floats]:
    """What each chain is expected to cost, alone; and how many others it is expected to kill for
    each unit of that."""
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
        score[i] = killed / max(spent, _LEAST)
    return total, score


@kernel
def difference(first: Int32s, second: Int32s, p: Floats, doubt: Floats, cost: Floats) -> float:
    """What it costs to evaluate the chain `first` before `second`, less what the reverse costs.

    Each predicate that both have adds a term. Of two chains, the one that goes first and comes to
    it spares the other what that has spent above it, if it kills the other:

        chance that it kills the first * P_second * C_first - the same with the roles exchanged

    P is the chance to come to it, and to pass what both have above it. C is what is spent above it,
    as if what both have were not there: neither its cost nor its chance.
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
    """The chance to pass, and what is spent on, the literals of a chain above one of them."""
    shared, own, spent = 1.0, 1.0, 0.0
    for at in range(end):
        mask = -1
        for b in range(len(other)):
            if chain[at] >> BITS == other[b] >> BITS:
                mask = other[b] & _KILLS
        if mask >= 0:
            # To go on, both chains have to survive it.
            shared *= 1 - _chance(chain[at] | mask, p, doubt)
        else:
            spent += own * cost[chain[at] >> BITS]
            own *= 1 - _chance(chain[at], p, doubt)
    return shared * own, spent


@kernel
def edges(
    start: Int64s,
    size: Int32s,
    pool: Int32s,
    predicate: Int32s,
    clause: Int64s,
    p: Floats,
    doubt: Floats,
    cost: Floats,
) -> tuple[Int64s, Int64s, Floats]:
    """Who should go before whom, and what that saves, less than 0.

    `clause` lists the holders of each predicate in turn, those that come to it for least first; so
    it is enough to compare neighbours.
    """
    before, after = np.empty(len(clause), np.int64), np.empty(len(clause), np.int64)
    weight = np.empty(len(clause))
    many = 0
    for i in range(len(clause) - 1):
        if predicate[i] == predicate[i + 1]:
            u, v = clause[i], clause[i + 1]
            saved = difference(
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
def join(before: Int64s, after: Int64s, clauses: int) -> tuple[Int64s, Int64s]:
    """Paths of edges, taken in the order given: the next on the path of each clause, the last.

    An edge is left out where it would make a fork or a ring.
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
def walk(heads: Int64s, following: Int64s) -> Int64s:
    """The clauses of the paths that begin with these."""
    order = np.empty(len(following), np.int64)
    many = 0
    for i in range(len(heads)):
        at = heads[i]
        while at >= 0:
            order[many] = at
            many += 1
            at = following[at]
    return order[:many]
