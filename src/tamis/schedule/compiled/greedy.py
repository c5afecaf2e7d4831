"""The step of the adaptive scheduler, compiled.

As in `clause_order`, one kernel records results and chooses, and has all arrays as locals. Other
kernels do the rare work: they price clauses and fill buckets.
"""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Floats, Int8s, Int32s, Int64s
from tamis.index.kernel import kernel
from tamis.schedule.compiled.chains import bounded
from tamis.schedule.compiled.event_graph import event_graph
from tamis.schedule.compiled.graph import BITS, FALSE, KILLS, LEAST, TRUE
from tamis.schedule.compiled.greedy_state import BUCKETS, greedy_state
from tamis.schedule.compiled.run_state import (
    COMPLETE,
    COMPLETED,
    DEAD,
    EVALUATED,
    MATCHED,
    NOW,
    OPEN,
    UNDECIDED,
    UNKNOWN,
    Singles,
    batch_recorder,
    run_state,
    settle,
)

FINE = 21  # bits of a float32 that a bucket leaves out: 4 buckets for a factor of 2
FEW = 64  # at most this many undecided clauses are priced at every step
FIRST = 4096  # at most this many undecided clauses are priced for the first time
AGAIN = 0.5  # and again whenever this share of them is left
SLIGHT = np.float32(0.1)
TINY, MANY = np.float32(1e-30), np.float32(1e30)
SHARED, NEXT, STACK, OPENS, LIVE, LIMIT, VALUED = range(NOW - 7, NOW)  # items of `now`


@kernel
def reset_greedy_state(
    graph: Int64s,
    edges: Int32s,
    ints: Int32s,
    longs: Int64s,
    floats: Singles,
    p: Floats,
    doubt: Floats,
    cost: Floats,
    spare: Singles,
    calls: Int32s,
) -> None:
    """Begin an event: probabilities that literals kill, and the first scores.

    Until clauses are priced, all are worth the same, and a predicate is assumed to kill all its
    clauses with the same probability. `spare` comes from `unneeded_chances`. `calls` has the call
    of each predicate; it is empty where each has its own.
    """
    _, start, literal, sibling, predicate, first, _, dies, alive, _ = event_graph(graph, edges)
    state = greedy_state(graph, ints, longs, floats)
    odds, dear, load, scale, miss = state.odds, state.cost, state.load, state.scale, state.miss
    killers, opens, live, forced = state.killers, state.open, state.live, state.forced
    at = state.at
    clauses, predicates = len(sibling), len(predicate)
    at[NEXT] = at[STACK] = at[VALUED] = 0
    at[SHARED] = len(calls)
    state.call[: len(calls)] = calls
    at[OPENS], at[LIVE] = clauses, predicates
    at[LIMIT] = FIRST
    for t in range(predicates):
        number = predicate[t]
        false = bounded(1 - p[number], doubt[number])
        true = bounded(p[number], doubt[number])
        odds[t], odds[predicates + t] = 0, false
        odds[2 * predicates + t], odds[3 * predicates + t] = true, 1 - LEAST
        dear[t] = max(cost[number], LEAST)
        load[t] = first[t + 1] - first[t]
        scale[t] = (dies[2 * t] * false + dies[2 * t + 1] * true) / load[t]
        miss[t] = spare[t]
        live[t] = t
    score_predicates(graph, ints, longs, floats)
    for s in range(clauses):
        opens[s] = s
        killers[s] = alive[s]
        if killers[s] <= 1 and sibling[s] == s:
            for i in range(start[s], start[s + 1]):
                if killers[s] == 0 or literal[i] & KILLS:
                    forced[at[STACK]] = literal[i] >> BITS
                    at[STACK] += 1
    if clauses > FEW:
        _fill_buckets(graph, ints, longs, floats)


@kernel
def unneeded_chances(graph: Int64s, edges: Int32s, p: Floats, doubt: Floats) -> Singles:
    """For each predicate the probability that others kill all its clauses."""
    _, start, literal, _, predicate, _, _, _, _, _ = event_graph(graph, edges)
    right = np.empty((len(predicate), KILLS + 1), np.float32)
    for t in range(len(predicate)):
        number = predicate[t]
        right[t, 0] = 1
        right[t, 1 << FALSE] = 1 - bounded(1 - p[number], doubt[number])
        right[t, 1 << TRUE] = 1 - bounded(p[number], doubt[number])
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
    """The higher the score, the lower the bucket: the exponent and first bits of the float."""
    return int(BUCKETS - 1 - (np.float32(max(score, 0.0)).view(np.int32) >> FINE))


@kernel
def _fill_buckets(sizes: Int64s, ints: Int32s, longs: Int64s, floats: Singles) -> None:
    """Put all live predicates into their buckets."""
    state = greedy_state(sizes, ints, longs, floats)
    load, scale, live = state.load, state.scale, state.live
    link, head, at = state.link, state.head, state.at
    head[:] = -1
    for i in range(at[LIVE]):
        t = live[i]
        b = _bucket(load[t] * scale[t])
        link[t] = head[b]
        head[b] = t
    at[NEXT] = 0


@kernel
def price_clauses(
    graph: Int64s, edges: Int32s, octets: Int8s, ints: Int32s, longs: Int64s, floats: Singles
) -> int:
    """Price the undecided clauses and score the predicates; returns the best predicate.

    The share of a predicate is its cost, divided among the clauses that it is expected to kill. If
    t kills a clause, that saves the share of the cheapest other predicate of the clause: t gets no
    credit for what others do for less. If t completes a clause, that saves the alternatives of its
    owner. The cost of t counts only as far as no clause needs t in any case.

    Three passes over the literals of undecided clauses, with six random accesses for each.
    """
    _, start, literal, sibling, predicate, _, _, _, _, family = event_graph(graph, edges)
    outcome, status, _, _, _, _, _ = run_state(graph, octets, ints, longs)
    state = greedy_state(graph, ints, longs, floats)
    odds, chance, cost = state.odds, state.chance, state.cost
    least, second, bonus, cheapest = state.least, state.second, state.bonus, state.cheapest
    worth, luck = state.worth, state.luck
    load, scale, miss = state.load, state.scale, state.miss
    opens, live, at = state.open, state.live, state.at
    whole, call, shared = state.whole, state.call, state.at[SHARED] != 0
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
            scale[t] = cost[t] / max(killed, TINY)  # its share, until scores replace it
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
            # Without branches: the processor cannot predict which of two shares is less.
            t = literal[j] >> BITS
            share = scale[t] if chance[j] > 0 else MANY
            right *= 1 - max(chance[j], np.float32(0))
            best = t if share < low else best
            high = min(high, max(low, share))
            low = min(low, share)
        if best < 0:  # nothing can kill it: all open predicates have to be evaluated
            low = np.float32(0)
            for j in range(np.uint64(start[s]), np.uint64(start[s + 1])):
                if chance[j] == 0:
                    low += cost[literal[j] >> BITS]
        cheapest[s], least[s], second[s], bonus[s] = best, low, high, right
        if high == MANY:  # no other predicate can kill it
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
    return score_predicates(graph, ints, longs, floats)


@kernel
def score_predicates(sizes: Int64s, ints: Int32s, longs: Int64s, floats: Singles) -> int:
    """Divide what live predicates save, `load * scale`, by their cost; returns the best predicate.

    One call answers all its predicates: each of them gets the score of their sum.
    """
    state = greedy_state(sizes, ints, longs, floats)
    cost, load, scale, miss = state.cost, state.load, state.scale, state.miss
    live, at, whole, idle, call = state.live, state.at, state.whole, state.idle, state.call
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
    graph: Int64s,
    edges: Int32s,
    octets: Int8s,
    ints: Int32s,
    longs: Int64s,
    outcomes: Int8s,
    recorded: int,
    outcome: int,
    floats: Singles,
) -> int:
    """Record the outcome of predicate `recorded`; or choose a predicate, if `recorded` is -1.

    Returns the predicate chosen, or -1. With `outcomes`, by global number, it goes on to the end,
    and all clauses that complete match. The first two arrays are those of `FlatEventGraph`, the
    next three and the last those of `FlatRunState`.
    """
    clause, start, literal, sibling, predicate, first, holder, _, _, _ = event_graph(graph, edges)
    outcome_of, status, left, completed, trail, matched, now = run_state(graph, octets, ints, longs)
    state = greedy_state(graph, ints, longs, floats)
    odds, least, second, bonus = state.odds, state.least, state.second, state.bonus
    scale, cheapest, killers = state.scale, state.cheapest, state.killers
    link, head, forced = state.link, state.head, state.forced
    single = len(outcomes) == 0
    predicates = len(predicate)
    # In locals: after a store the compiler would read array items again.
    bucket, stack, undecided, valued = now[NEXT], now[STACK], now[OPEN], now[VALUED]
    t = recorded
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
                    t = price_clauses(graph, edges, octets, ints, longs, floats)
                    valued = 1
                    if undecided <= FEW:
                        break
                    t = -1
                    now[LIMIT] = int(AGAIN * undecided)
                    _fill_buckets(graph, ints, longs, floats)
                    bucket = 0
                # Scores only fall until the next pricing, so one pass over the buckets is enough.
                while head[bucket] < 0:
                    bucket += 1
                u = head[bucket]
                head[bucket] = link[u]
            if outcome_of[u] != UNKNOWN:
                continue
            # Clauses may have been decided since it was scored: score it again.
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
        if single and recorded < 0:
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
            # Most results kill. Without a branch on the status this takes half the time.
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
                        # The last predicate that can kill it is needed in any case: it comes now,
                        # when it can kill most others. Without one, all are needed.
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
                settle(graph, edges, octets, ints, longs, s)
        undecided = now[OPEN]
        t = -1


record_all = batch_recorder(step)
