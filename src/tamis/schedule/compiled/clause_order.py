"""The steps of the schedulers that go clause by clause, compiled.

One kernel does what follows from a result and chooses what is next. `simulate` has it do both for a
whole event; a `Run` has it do one at a time. All arrays are locals of it: handing them to a
function at every step costs several times the step. For the same reason `pricing` has a kernel of
its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import kernel
from tamis.schedule.compiled.batch_results import COMPLETED, OPEN, UNKNOWN, telling
from tamis.schedule.compiled.event_graph import SIZES, Numbered, numbering
from tamis.schedule.compiled.graph import BITS, Int8s, Int32s, Int64s

Singles = NDArray[np.float32]

IN_ORDER, LINKED, SEQUENTIAL = range(3)  # how to choose
UNDECIDED, DEAD, COMPLETE, SETTLED = range(4)  # a clause; settled: an alternative has matched
EVALUATED, MATCHED, WAY, CLAUSE, LITERAL = range(2, 7)  # in `now`, behind those of `telling`
NOW = 16  # items of it


class State(NamedTuple):
    """What has come out so far, as kernels see it."""

    outcome: Int8s  # of predicates
    status: Int8s  # of clauses
    left: Int32s  # literals that have not come out
    completed: Int32s  # clauses, by the last result: now[COMPLETED] of them
    trail: Int64s  # predicates evaluated, by number outside
    matched: Int64s  # clauses that count as matched, in a simulation
    now: Int64s  # undecided clauses; the literal that is next; lengths of the lists above


class Flat(NamedTuple):
    """The same, as Python has it: a few flat arrays, in which `pricing` has more."""

    bytes: Int8s
    ints: Int32s
    longs: Int64s
    floats: Singles

    @property
    def now(self) -> Int64s:
        """As in the state."""
        return self.longs[:NOW]


def flat(numbered: Numbered, ints: int = 0, floats: int = 0) -> Flat:
    """Room for a state, and so many items more."""
    n, _, k = numbered.longs[:SIZES].tolist()
    return Flat(
        np.empty(n + k, np.int8),
        np.empty(2 * n + ints, np.int32),
        np.empty(NOW + n + k, np.int64),
        np.empty(floats, np.float32),
    )


@kernel
def state(sizes: Int64s, octets: Int8s, ints: Int32s, longs: Int64s) -> State:
    """Where everything lies in the flat arrays."""
    n, k = sizes[0], sizes[2]
    trail, matched = longs[NOW : NOW + k], longs[NOW + k :]
    return State(octets[:k], octets[k:], ints[:n], ints[n : 2 * n], trail, matched, longs[:NOW])


@kernel
def begin(known: Int64s, who: Int32s, octets: Int8s, ints: Int32s, longs: Int64s, way: int) -> None:
    """Nothing has come out. The first two arrays are those of `Numbered`."""
    start = numbering(known, who).start
    outcome, status, left, _, _, _, now = state(known, octets, ints, longs)
    outcome[:] = UNKNOWN
    status[:] = UNDECIDED
    for s in range(len(status)):
        left[s] = start[s + 1] - start[s]
    now[:] = 0
    now[OPEN] = len(status)
    now[WAY] = way


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
) -> int:
    """Tell that `told` has come out; or, if that is -1, choose: gives the predicate, or -1.

    With `outcomes`, by number outside, go on to the end; then all that completes has matched. The
    first two arrays are those of `Numbered`, the next three those of the state.
    """
    clause, start, literal, sibling, predicate, first, holder, _, _, _ = numbering(known, who)
    outcome_of, status, left, completed, trail, matched, now = state(known, octets, ints, longs)
    way = now[WAY]
    single = len(outcomes) == 0
    s, at = now[CLAUSE], now[LITERAL]
    t = told
    while True:
        if t < 0:
            # The next literal that has not come out, of the next clause that is to be decided.
            while s < len(status) and t < 0:
                if way == SEQUENTIAL:
                    # A clause that was begun is gone through, though it may be dead: `at` is in it.
                    go = status[s] == UNDECIDED or at > start[s]
                else:
                    # Without links it hears of its death on coming to the literal that killed it.
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
            # Most results kill; without a branch on who was undecided that takes half the time.
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
                settle(known, who, octets, ints, longs, c)
        t = -1


tell = telling(step)


@kernel
def settle(
    known: Int64s, who: Int32s, octets: Int8s, ints: Int32s, longs: Int64s, clause: int
) -> None:
    """A clause has matched: the alternatives of its owner need not be decided."""
    sibling = numbering(known, who).sibling
    _, status, _, _, _, _, now = state(known, octets, ints, longs)
    other = sibling[clause]
    while other != clause:
        if status[other] == UNDECIDED:
            now[OPEN] -= 1
        if status[other] != COMPLETE:
            status[other] = SETTLED
        other = sibling[other]


@kernel
def needed(
    known: Int64s, who: Int32s, octets: Int8s, ints: Int32s, longs: Int64s, predicate: int
) -> bool:
    """Whether a predicate has not come out and an undecided clause has it."""
    _, _, _, _, _, first, holder, _, _, _ = numbering(known, who)
    outcome, status, _, _, _, _, _ = state(known, octets, ints, longs)
    if outcome[predicate] == UNKNOWN:
        for i in range(first[predicate], first[predicate + 1]):
            if status[holder[i] >> BITS] == UNDECIDED:
                return True
    return False
