"""The step of the schedulers that go clause by clause, compiled.

One kernel records a result and chooses the next predicate. `simulate` runs it for a whole event, a
`Run` for one result or one choice at a time. All arrays are locals of this kernel: to pass them to
a function at every step would cost several times as much as the step. For the same reason `greedy`
has a kernel of its own.
"""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int8s, Int32s, Int64s
from tamis.index.kernel import kernel
from tamis.schedule.compiled.event_graph import event_graph
from tamis.schedule.compiled.graph import BITS
from tamis.schedule.compiled.run_state import (
    CLAUSE,
    COMPLETE,
    COMPLETED,
    DEAD,
    EVALUATED,
    LITERAL,
    MATCHED,
    OPEN,
    UNDECIDED,
    UNKNOWN,
    WAY,
    batch_recorder,
    run_state,
    settle,
)

IN_ORDER, LINKED, SEQUENTIAL = range(3)  # ways to choose


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
) -> int:
    """Record the outcome of predicate `recorded`; or choose a predicate, if `recorded` is -1.

    Returns the predicate chosen, or -1. With `outcomes`, by global number, it goes on to the end,
    and all clauses that complete match. The first two arrays are those of `FlatEventGraph`, the
    next three those of `FlatRunState`.
    """
    clause, start, literal, sibling, predicate, first, holder, _, _, _ = event_graph(graph, edges)
    outcome_of, status, left, completed, trail, matched, now = run_state(graph, octets, ints, longs)
    way = now[WAY]
    single = len(outcomes) == 0
    s, at = now[CLAUSE], now[LITERAL]
    t = recorded
    while True:
        if t < 0:
            # The next literal without a result, of the next clause to decide.
            while s < len(status) and t < 0:
                if way == SEQUENTIAL:
                    # A clause once begun is finished, dead or not: `at` lies in it.
                    go = status[s] == UNDECIDED or at > start[s]
                else:
                    # Without links, a dead clause ends at the literal that killed it.
                    go = status[s] == UNDECIDED or (way == IN_ORDER and status[s] == DEAD)
                at = max(at, start[s])
                while go and t < 0 and at < start[s + 1]:
                    u = literal[at] >> BITS
                    if outcome_of[u] == UNKNOWN:
                        if way != SEQUENTIAL:
                            t = u
                            break
                        for i in range(first[u], first[u + 1]):
                            if status[holder[i] >> BITS] == UNDECIDED:
                                t = u
                                break
                    elif way != SEQUENTIAL and (literal[at] >> outcome_of[u]) & 1:
                        go = False
                    at += 1
                if t < 0:
                    s += 1
                    at = 0
            now[CLAUSE], now[LITERAL] = s, at
            if t < 0 or single:
                return t
            outcome = outcomes[predicate[t]]
        outcome_of[t] = outcome
        trail[now[EVALUATED]] = predicate[t]
        now[EVALUATED] += 1
        complete = 0
        decided = 0
        for i in range(np.uint64(first[t]), np.uint64(first[t + 1])):
            c = holder[i] >> BITS
            # Most results kill. Without a branch on the status this takes half the time.
            dies = (holder[i] >> outcome) & (status[c] == UNDECIDED)
            status[c] |= dies * DEAD
            decided += dies
            if status[c] == UNDECIDED:
                left[c] -= 1
                if left[c] == 0:
                    status[c] = COMPLETE
                    decided += 1
                    completed[complete] = c
                    complete += 1
        now[COMPLETED] = complete
        now[OPEN] -= decided
        if single:
            return -1
        for i in range(complete):
            c = completed[i]
            matched[now[MATCHED]] = clause[c]
            now[MATCHED] += 1
            if sibling[c] != c:
                settle(graph, edges, octets, ints, longs, c)
        t = -1


record_all = batch_recorder(step)
