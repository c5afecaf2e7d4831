"""What the adaptive scheduler keeps for an event, in addition to `RunState`."""

from __future__ import annotations

from typing import NamedTuple

from tamis.files.arrays import Int32s, Int64s
from tamis.index.kernel import kernel
from tamis.schedule.compiled.event_graph import SIZES, FlatEventGraph
from tamis.schedule.compiled.run_state import NOW, FlatRunState, Singles, allocate_state

BUCKETS = 1024


class GreedyState(NamedTuple):
    """The arrays as kernels read them."""

    odds: Singles  # probability that a literal kills: by the bits of its mask, then by predicate
    chance: Singles  # per literal: the same while clauses are priced; -1 where its result is in
    least: Singles  # per clause: the share of the cheapest predicate that kills it
    second: Singles  # per clause: the share of the second cheapest
    bonus: Singles  # per clause: what a match is expected to save in its alternatives
    worth: Singles  # per owner: the sum of `least` over its clauses
    luck: Singles  # per owner: the sum of the probabilities that its clauses match
    cost: Singles  # per predicate
    load: Singles  # per predicate: what its result is expected to save
    scale: Singles  # per predicate: load * scale is its score
    miss: Singles  # per predicate: probability that no clause will need it
    whole: Singles  # per call: the sum of what its predicates save
    idle: Singles  # per call: probability that no clause will need it
    killers: Int32s  # per clause: literals that may still kill it
    cheapest: Int32s  # per clause: the cheapest predicate that kills it
    open: Int32s  # undecided clauses; some may have been decided since
    live: Int32s  # needed predicates; some may have become unneeded since
    link: Int32s  # the next predicate in the bucket
    head: Int32s  # the first predicate of each bucket
    call: Int32s  # per predicate: the call that answers it
    forced: Int32s  # a stack of predicates that are needed in any case
    at: Int64s  # `RunState.now`: the current bucket; lengths of lists; when to price clauses


def allocate_greedy_state(graph: FlatEventGraph) -> FlatRunState:
    """Arrays for both states."""
    n, m, k = graph.longs[:SIZES].tolist()
    return allocate_state(graph, 3 * n + m + 3 * k + BUCKETS, 5 * n + m + 10 * k)


@kernel
def greedy_state(sizes: Int64s, ints: Int32s, longs: Int64s, floats: Singles) -> GreedyState:
    """Views of the flat arrays, behind those of the run state."""
    n, m, k = sizes[0], sizes[1], sizes[2]
    clauses = 4 * k + m
    predicates = clauses + 5 * n
    live = 5 * n
    buckets = live + 2 * k
    return GreedyState(
        floats[: 4 * k],
        floats[4 * k : clauses],
        floats[clauses : clauses + n],
        floats[clauses + n : clauses + 2 * n],
        floats[clauses + 2 * n : clauses + 3 * n],
        floats[clauses + 3 * n : clauses + 4 * n],
        floats[clauses + 4 * n : predicates],
        floats[predicates : predicates + k],
        floats[predicates + k : predicates + 2 * k],
        floats[predicates + 2 * k : predicates + 3 * k],
        floats[predicates + 3 * k : predicates + 4 * k],
        floats[predicates + 4 * k : predicates + 5 * k],
        floats[predicates + 5 * k :],
        ints[2 * n : 3 * n],
        ints[3 * n : 4 * n],
        ints[4 * n : live],
        ints[live : live + k],
        ints[live + k : buckets],
        ints[buckets : buckets + BUCKETS],
        ints[buckets + BUCKETS : buckets + BUCKETS + k],
        ints[buckets + BUCKETS + k :],
        longs[:NOW],
    )
