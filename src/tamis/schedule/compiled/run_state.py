"""The state of one event: the results so far, and the clauses that they decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int8s, Int32s, Int64s
from tamis.index.kernel import kernel
from tamis.schedule.compiled.event_graph import SIZES, FlatEventGraph, event_graph
from tamis.schedule.compiled.graph import BITS

if TYPE_CHECKING:
    from numba import Dispatcher

Singles = NDArray[np.float32]

UNKNOWN = -1  # the outcome of a predicate without a result
UNDECIDED, DEAD, COMPLETE, SETTLED = range(4)  # a clause; settled: an alternative has matched
OPEN, COMPLETED, EVALUATED, MATCHED, WAY, CLAUSE, LITERAL = range(7)  # the first items of `now`
NOW = 16  # items of `now`


class RunState(NamedTuple):
    """The arrays as kernels read them."""

    outcome: Int8s  # of predicates
    status: Int8s  # of clauses
    left: Int32s  # per clause: literals without a result
    completed: Int32s  # clauses that the last result completed: now[COMPLETED] of them
    trail: Int64s  # predicates evaluated, by global number
    matched: Int64s  # clauses that matched, in a simulation
    now: Int64s  # undecided clauses; the next literal; lengths of the lists above


class FlatRunState(NamedTuple):
    """The same state in a few flat arrays, as Python holds it. `greedy_state` adds to them."""

    bytes: Int8s
    ints: Int32s
    longs: Int64s
    floats: Singles


def allocate_state(graph: FlatEventGraph, ints: int = 0, floats: int = 0) -> FlatRunState:
    """Arrays for a state, and for this many additional items."""
    n, _, k = graph.longs[:SIZES].tolist()
    return FlatRunState(
        np.empty(n + k, np.int8),
        np.empty(2 * n + ints, np.int32),
        np.empty(NOW + n + k, np.int64),
        np.empty(floats, np.float32),
    )


@kernel
def run_state(sizes: Int64s, octets: Int8s, ints: Int32s, longs: Int64s) -> RunState:
    """Views of the flat arrays."""
    n, k = sizes[0], sizes[2]
    trail, matched = longs[NOW : NOW + k], longs[NOW + k :]
    return RunState(octets[:k], octets[k:], ints[:n], ints[n : 2 * n], trail, matched, longs[:NOW])


# The first two arrays of the kernels below are those of `FlatEventGraph`, the next three those of
# `FlatRunState`.


def begin(graph: FlatEventGraph, state: FlatRunState, way: int) -> None:
    """Begin an event: no result is known."""
    _reset(graph.longs, graph.ints, state.bytes, state.ints, state.longs, way)


@kernel
def _reset(
    graph: Int64s, edges: Int32s, octets: Int8s, ints: Int32s, longs: Int64s, way: int
) -> None:
    start = event_graph(graph, edges).start
    outcome, status, left, _, _, _, now = run_state(graph, octets, ints, longs)
    outcome[:] = UNKNOWN
    status[:] = UNDECIDED
    for s in range(len(status)):
        left[s] = start[s + 1] - start[s]
    now[:] = 0
    now[OPEN] = len(status)
    now[WAY] = way


@kernel
def settle(
    graph: Int64s, edges: Int32s, octets: Int8s, ints: Int32s, longs: Int64s, clause: int
) -> None:
    """Close the alternatives of a clause that has matched."""
    sibling = event_graph(graph, edges).sibling
    _, status, _, _, _, _, now = run_state(graph, octets, ints, longs)
    other = sibling[clause]
    while other != clause:
        if status[other] == UNDECIDED:
            now[OPEN] -= 1
        if status[other] != COMPLETE:
            status[other] = SETTLED
        other = sibling[other]


@kernel
def is_needed(
    graph: Int64s, edges: Int32s, octets: Int8s, ints: Int32s, longs: Int64s, predicate: int
) -> bool:
    """Whether a predicate has no result and an undecided clause contains it."""
    _, _, _, _, _, first, holder, _, _, _ = event_graph(graph, edges)
    outcome, status, _, _, _, _, _ = run_state(graph, octets, ints, longs)
    if outcome[predicate] == UNKNOWN:
        for i in range(first[predicate], first[predicate + 1]):
            if status[holder[i] >> BITS] == UNDECIDED:
                return True
    return False


def batch_recorder(step: Dispatcher[..., int]) -> Dispatcher[..., Int32s]:
    """The kernel that has `step` record one result after the other.

    `more` are the last arrays that the step takes. Their types have to differ between any two of
    these kernels: the cache of compiled code tells functions apart by place and by types.
    """

    def record_all(
        graph: Int64s,
        edges: Int32s,
        octets: Int8s,
        ints: Int32s,
        longs: Int64s,
        predicates: Int64s,
        outcomes: Int8s,
        more: tuple[Any, ...],
    ) -> Int32s:
        """Record results of predicates, by local number; returns the clauses they complete."""
        completed = ints[graph[0] : 2 * graph[0]]
        found = np.empty(longs[OPEN], np.int32)
        count = 0
        for i in range(len(predicates)):
            t = predicates[i]
            if octets[t] == UNKNOWN:
                step(graph, edges, octets, ints, longs, outcomes[:0], t, outcomes[i], *more)
                for j in range(longs[COMPLETED]):
                    found[count] = completed[j]
                    count += 1
        return found[:count]

    return kernel(record_all)
