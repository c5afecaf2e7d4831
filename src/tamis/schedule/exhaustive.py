"""A scheduler for measuring: it evaluates every predicate, and counts the results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int8s, Int64s
from tamis.index.growth import grown
from tamis.schedule.base import FAULT, TRUE, ClauseByClause, Run
from tamis.schedule.compiled.clause_order import IN_ORDER
from tamis.schedule.compiled.event_graph import FlatEventGraph
from tamis.schedule.compiled.graph import ClauseGraph
from tamis.schedule.compiled.run_state import UNKNOWN, FlatRunState, begin


class PredicateCounts(NamedTuple):
    """The results of one predicate."""

    seen: int  # results, without faults
    true: int  # of these
    faults: int
    timed: int  # calls that answered it
    spent: float  # on these calls, in the unit of costs


class ExhaustiveScheduler(ClauseByClause):
    """All predicates of all survivors, whether or not they can still decide anything.

    Other schedulers see a predicate only after those before it, and the order depends on what they
    have learned. To measure how often each predicate is true by itself, none may be skipped. This
    is as expensive as possible: it is for samples, and not in the table of schedulers.

    An event takes time proportional to the literals of its survivors, and makes all their calls.
    """

    way = IN_ORDER

    def __init__(self, graph: ClauseGraph) -> None:
        super().__init__()
        self.graph = graph
        self.statistics.fit(graph.predicates)
        # By predicate, in the order of `PredicateCounts`.
        self._counts = np.zeros((graph.predicates, len(PredicateCounts._fields)))

    def counts(self, predicate: int) -> PredicateCounts | None:
        """The results of a predicate; None if it was never evaluated."""
        if predicate >= len(self._counts):
            return None
        seen, true, faults, timed = self._counts[predicate, :4].astype(int).tolist()
        spent = float(self._counts[predicate, 4])
        return PredicateCounts(seen, true, faults, timed, spent) if seen + faults else None

    def learn(self, predicate: int, outcome: int, cost: float | None) -> None:
        self.learn_all(np.array([predicate]), np.array([outcome], np.int8), cost)

    def learn_all(self, predicates: Int64s, outcomes: Int8s, cost: float | None) -> None:
        self._counts = grown(self._counts, int(predicates.max(initial=-1)) + 1)
        fault = outcomes == FAULT
        timed = cost is not None
        for column, more in enumerate((~fault, outcomes == TRUE, fault, timed, cost or 0.0)):
            self._counts[predicates, column] += more

    def _begin(self, graph: FlatEventGraph, state: FlatRunState) -> Run:
        begin(graph, state, self.way)
        return _ExhaustiveRun(graph, state)


class _ExhaustiveRun(Run):
    """An event that ends when no predicate is left."""

    def next(self) -> int:
        """The first predicate without a result."""
        unknown = np.flatnonzero(self._octets[: len(self._predicates)] == UNKNOWN)
        self._current = int(unknown[0]) if len(unknown) else -1
        return int(self._predicates[self._current]) if self._current >= 0 else -1
