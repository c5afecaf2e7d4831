"""The steps of the adaptive scheduler, compiled.

As in `steps`, one kernel tells and chooses, and has all arrays as locals. What is rare (prices,
filling the buckets) it leaves to others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import kernel
from tamis.schedule.compiled.batch_results import COMPLETED, OPEN, UNKNOWN, telling
from tamis.schedule.compiled.clause_order import (
    COMPLETE,
    DEAD,
    EVALUATED,
    MATCHED,
    NOW,
    UNDECIDED,
    Singles,
    settle,
    state,
)
from tamis.schedule.compiled.event_graph import numbering
from tamis.schedule.compiled.graph import BITS, FALSE, TRUE, Int8s, Int32s, Int64s
from tamis.schedule.compiled.greedy_state import BUCKETS, prices_in

Floats = NDArray[np.float64]

KILLS = 1 << FALSE | 1 << TRUE  # of a mask: it may kill otherwise than by a fault
FINE = 21  # bits of a float32 that a bucket leaves out: 4 buckets for a factor of 2
FEW = 64  # undecided clauses: from here on prices are made for every step
FIRST = 4096  # undecided clauses: from here on prices are made, at first
AGAIN = 0.5  # and again, when this share of them is left
LEAST = 1e-6  # chances are kept so far from 0 and 1, and costs from 0
SLIGHT = np.float32(0.1)
TINY, MANY = np.float32(1e-30), np.float32(1e30)
SHARED, NEXT, STACK, OPENS, LIVE, LIMIT, VALUED = range(NOW - 7, NOW)  # in `now`


@kernel
def value(
    known: Int64s,
    who: Int32s,
    ints: Int32s,
    longs: Int64s,
    floats: Singles,
    p: Floats,
    doubt: Floats,
    cost: Floats,
    spare: Singles,
    calls: Int32s,
) -> None:
    """How likely literals kill, in the light of what is doubtful; and where all begin.

    Before prices are made, all clauses are worth the same, and all holders of a predicate are taken
    to die of it with the same chance. `spare` is what `unneeded` gave; `calls` says for each
    predicate which call answers it, and is empty where each has one of its own.
    """
    _, start, literal, sibling, predicate, first, _, dies, alive, _ = numbering(known, who)
    prices = prices_in(known, ints, longs, floats)
    odds, dear, load, scale, miss = prices.odds, prices.cost, prices.load, prices.scale, prices.miss
    killers, opens, live, forced = prices.killers, prices.open, prices.live, prices.forced
    at = prices.at
    clauses, predicates = len(sibling), len(predicate)
    at[NEXT] = at[STACK] = at[VALUED] = 0
    at[SHARED] = len(calls)
    prices.call[: len(calls)] = calls
    at[OPENS], at[LIVE] = clauses, predicates
    at[LIMIT] = FIRST
    for t in range(predicates):
        outside = predicate[t]
        false = min(max(1 - p[outside] + doubt[outside], LEAST), 1 - LEAST)
        true = min(max(p[outside] + doubt[outside], LEAST), 1 - LEAST)
        odds[t], odds[predicates + t] = 0, false
        odds[2 * predicates + t], odds[3 * predicates + t] = true, 1 - LEAST
        dear[t] = max(cost[outside], LEAST)
        load[t] = first[t + 1] - first[t]
        scale[t] = (dies[2 * t] * false + dies[2 * t + 1] * true) / load[t]
        miss[t] = spare[t]
        live[t] = t
    score(known, ints, longs, floats)
    for s in range(clauses):
        opens[s] = s
        killers[s] = alive[s]
        if killers[s] <= 1 and sibling[s] == s:
            for i in range(start[s], start[s + 1]):
                if killers[s] == 0 or literal[i] & KILLS:
                    forced[at[STACK]] = literal[i] >> BITS
                    at[STACK] += 1
    if clauses > FEW:
        _fill(known, ints, longs, floats)


@kernel
def unneeded(known: Int64s, who: Int32s, p: Floats, doubt: Floats) -> Singles:
    """For each predicate the chance that nobody needs it, since all its clauses die of others."""
    _, start, literal, _, predicate, _, _, _, _, _ = numbering(known, who)
    right = np.empty((len(predicate), KILLS + 1), np.float32)
    for t in range(len(predicate)):
        outside = predicate[t]
        right[t, 0] = 1
        right[t, 1 << FALSE] = 1 - min(max(1 - p[outside] + doubt[outside], LEAST), 1 - LEAST)
        right[t, 1 << TRUE] = 1 - min(max(p[outside] + doubt[outside], LEAST), 1 - LEAST)
        right[t, KILLS] = LEAST
    spare = np.ones(len(predicate), np.float32)
    for s in range(len(start) - 1):
        all_right = np.float32(1)
        for j in range(start[s], start[s + 1]):
            all_right *= right[literal[j] >> BITS, literal[j] & KILLS]
        for j in range(start[s], start[s + 1]):
            t = literal[j] >> BITS
            spare[t] *= 1 - all_right / right[t, literal[j] & KILLS]
    return spare


@kernel
def _bucket(score: float) -> int:
    """The higher the score, the lower the bucket: exponent and first bits of the number."""
    return int(BUCKETS - 1 - (np.float32(max(score, 0.0)).view(np.int32) >> FINE))


@kernel
def _fill(sizes: Int64s, ints: Int32s, longs: Int64s, floats: Singles) -> None:
    """All live predicates into their buckets."""
    prices = prices_in(sizes, ints, longs, floats)
    load, scale, live = prices.load, prices.scale, prices.live
    link, head, at = prices.link, prices.head, prices.at
    head[:] = -1
    for i in range(at[LIVE]):
        t = live[i]
        b = _bucket(load[t] * scale[t])
        link[t] = head[b]
        head[b] = t
    at[NEXT] = 0


@kernel
def price(
    known: Int64s, who: Int32s, octets: Int8s, ints: Int32s, longs: Int64s, floats: Singles
) -> int:
    """Make prices anew; the predicate with the best score.

    The share of a predicate is its cost, divided among the clauses that it can be expected to
    kill. A clause that dies of t saves the share of its cheapest other predicate: that is what
    killing it is worth to t, so that t is not praised for what others do for less. If t completes
    a clause, that saves the alternatives of its owner. On the other side, what t costs counts only
    as far as it is not needed anyway, because all other literals of a clause come out right.

    Three passes over the literals of undecided clauses, with six random accesses for each.
    """
    _, start, literal, sibling, predicate, _, _, _, _, family = numbering(known, who)
    outcome, status, _, _, _, _, _ = state(known, octets, ints, longs)
    prices = prices_in(known, ints, longs, floats)
    odds, chance, cost = prices.odds, prices.chance, prices.cost
    least, second, bonus, cheapest = prices.least, prices.second, prices.bonus, prices.cheapest
    worth, luck = prices.worth, prices.luck
    load, scale, miss = prices.load, prices.scale, prices.miss
    opens, live, at = prices.open, prices.live, prices.at
    whole, call, shared = prices.whole, prices.call, prices.at[SHARED] != 0
    predicates = len(predicate)
    for i in range(at[LIVE]):
        load[live[i]] = -1
    kept = 0
    for i in range(at[OPENS]):
        s = opens[i]
        if status[s] == UNDECIDED:
            opens[kept] = s
            kept += 1
            for j in range(np.uint64(start[s]), np.uint64(start[s + 1])):
                t = literal[j] >> BITS
                chance[j] = -1
                if outcome[t] == UNKNOWN:
                    chance[j] = odds[(literal[j] & KILLS) * predicates + t]
                    load[t] = max(load[t], np.float32(0)) + chance[j]
    at[OPENS] = kept
    if shared:
        whole[:] = 0
        for i in range(at[LIVE]):
            whole[call[live[i]]] += max(load[live[i]], np.float32(0))
    kept = 0
    for i in range(at[LIVE]):
        t = live[i]
        if load[t] >= 0:
            live[kept] = t
            kept += 1
            killed = whole[call[t]] if shared else load[t]
            scale[t] = cost[t] / max(killed, TINY)  # its share, for now
            load[t] = 0
            miss[t] = 1
    at[LIVE] = kept
    for i in range(at[OPENS]):
        s = opens[i]
        worth[family[s]] = luck[family[s]] = 0
    for i in range(at[OPENS]):
        s = opens[i]
        best = -1
        low = high = MANY
        right = np.float32(1)
        for j in range(np.uint64(start[s]), np.uint64(start[s + 1])):
            # Without branches: which of two shares is less cannot be foreseen.
            t = literal[j] >> BITS
            share = scale[t] if chance[j] > 0 else MANY
            right *= 1 - max(chance[j], np.float32(0))
            best = t if share < low else best
            high = min(high, max(low, share))
            low = min(low, share)
        if best < 0:  # none can kill: all that is left has to be paid for
            low = np.float32(0)
            for j in range(np.uint64(start[s]), np.uint64(start[s + 1])):
                if chance[j] == 0:
                    low += cost[literal[j] >> BITS]
        cheapest[s], least[s], second[s], bonus[s] = best, low, high, right
        if high == MANY:  # there is no other way
            second[s] = low
        worth[family[s]] += low
        luck[family[s]] += right
    for i in range(at[OPENS]):
        s = opens[i]
        right = bonus[s]
        unlucky = 1 - min(luck[family[s]] - right, np.float32(1))
        bonus[s] = 0
        if sibling[s] != s:
            bonus[s] = right * (worth[family[s]] - least[s])
        for j in range(np.uint64(start[s]), np.uint64(start[s + 1])):
            if chance[j] >= 0:
                t = literal[j] >> BITS
                miss[t] *= 1 - right / (1 - chance[j]) * unlucky
                load[t] += chance[j] * (second[s] if t == cheapest[s] else least[s]) + bonus[s]
    for i in range(at[LIVE]):
        scale[live[i]] = 1
    at[VALUED] = 1
    return score(known, ints, longs, floats)


@kernel
def score(sizes: Int64s, ints: Int32s, longs: Int64s, floats: Singles) -> int:
    """From what live predicates save, `load * scale`, to what they save for their cost; the best.

    What one call answers comes out together: each of its predicates is as good as all of them.
    """
    prices = prices_in(sizes, ints, longs, floats)
    cost, load, scale, miss = prices.cost, prices.load, prices.scale, prices.miss
    live, at, whole, idle, call = prices.live, prices.at, prices.whole, prices.idle, prices.call
    shared = at[SHARED] != 0
    if shared:
        whole[:] = 0
        idle[:] = 1
        for i in range(at[LIVE]):
            t = live[i]
            whole[call[t]] += load[t] * scale[t]
            idle[call[t]] *= miss[t]
    best, highest = -1, np.float32(-1)
    for i in range(at[LIVE]):
        t = live[i]
        if shared:
            mine = load[t] * scale[t]
            scale[t] = whole[call[t]] / mine * scale[t] if mine > 0 else np.float32(0)
            miss[t] = idle[call[t]]
        scale[t] /= cost[t] * max(miss[t], SLIGHT)
        if load[t] * scale[t] > highest:
            best, highest = t, load[t] * scale[t]
    return best


@kernel
def step(
    known: Int64s,
    who: Int32s,
    octets: Int8s,
    ints: Int32s,
    longs: Int64s,
    outcomes: Int8s,
    told: int,
    outcome: int,
    floats: Singles,
) -> int:
    """Tell that `told` has come out; or, if that is -1, choose: gives the predicate, or -1.

    With `outcomes`, by number outside, go on to the end; then all that completes has matched. The
    first two arrays are those of `Numbered`, the next three and the last those of `Flat`.
    """
    clause, start, literal, sibling, predicate, first, holder, _, _, _ = numbering(known, who)
    outcome_of, status, left, completed, trail, matched, now = state(known, octets, ints, longs)
    prices = prices_in(known, ints, longs, floats)
    odds, least, second, bonus = prices.odds, prices.least, prices.second, prices.bonus
    scale, cheapest, killers = prices.scale, prices.cheapest, prices.killers
    link, head, forced = prices.link, prices.head, prices.forced
    single = len(outcomes) == 0
    predicates = len(predicate)
    # In locals, as all stores might change what is in an array.
    bucket, stack, undecided, valued = now[NEXT], now[STACK], now[OPEN], now[VALUED]
    t = told
    while True:
        while t < 0:
            must = stack > 0
            if must:
                stack -= 1
                u = forced[stack]
            else:
                if undecided <= max(now[LIMIT], FEW):
                    if undecided == 0:
                        break
                    t = price(known, who, octets, ints, longs, floats)
                    valued = 1
                    if undecided <= FEW:
                        break
                    t = -1
                    now[LIMIT] = int(AGAIN * undecided)
                    _fill(known, ints, longs, floats)
                    bucket = 0
                # Scores only fall until the next prices, so the buckets are gone through once.
                while head[bucket] < 0:
                    bucket += 1
                u = head[bucket]
                head[bucket] = link[u]
            if outcome_of[u] != UNKNOWN:
                continue
            # Nobody told it of the clauses that were decided since: it looks for itself.
            some = 0
            load = np.float32(0)
            if valued:
                for i in range(np.uint64(first[u]), np.uint64(first[u + 1])):
                    s = np.uint64(holder[i] >> BITS)
                    if status[s] == UNDECIDED:
                        some += 1
                        worth = second[s] if cheapest[s] == u else least[s]
                        load += odds[(holder[i] & KILLS) * predicates + u] * worth + bonus[s]
            else:
                for i in range(np.uint64(first[u]), np.uint64(first[u + 1])):
                    some += status[np.uint64(holder[i] >> BITS)] == UNDECIDED
                load = np.float32(some)
            if some:
                b = _bucket(load * scale[u])
                if must or b <= bucket:
                    t = u
                else:
                    link[u] = head[b]
                    head[b] = u
        if single and told < 0:
            now[NEXT], now[STACK] = bucket, stack
            return t
        if t < 0:
            now[OPEN] = 0
            return -1
        if not single:
            outcome = outcomes[predicate[t]]
        outcome_of[t] = outcome
        trail[now[EVALUATED]] = predicate[t]
        now[EVALUATED] += 1
        complete = 0
        for i in range(np.uint64(first[t]), np.uint64(first[t + 1])):
            s = np.uint64(holder[i] >> BITS)
            # Most results kill; without a branch on who was undecided that takes half the time.
            dies = (holder[i] >> outcome) & (status[s] == UNDECIDED)
            status[s] |= dies * DEAD
            undecided -= dies
            if status[s] == UNDECIDED:
                left[s] -= 1
                if left[s] == 0:
                    status[s] = COMPLETE
                    undecided -= 1
                    completed[complete] = s
                    complete += 1
                elif holder[i] & KILLS:
                    killers[s] -= 1
                    if killers[s] <= 1 and sibling[s] == s:
                        # What is left to kill it is needed whatever else comes out: it may as well
                        # come now, when it may kill most others. With none left, all are needed.
                        for j in range(start[s], start[s + 1]):
                            u = literal[j] >> BITS
                            if outcome_of[u] == UNKNOWN and (killers[s] == 0 or literal[j] & KILLS):
                                forced[stack] = u
                                stack += 1
        now[COMPLETED], now[OPEN] = complete, undecided
        if single:
            now[STACK] = stack
            return -1
        for i in range(complete):
            s = completed[i]
            matched[now[MATCHED]] = clause[s]
            now[MATCHED] += 1
            if sibling[s] != s:
                settle(known, who, octets, ints, longs, s)
        undecided = now[OPEN]
        t = -1


tell = telling(step)
