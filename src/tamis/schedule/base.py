"""The interface of schedulers: clauses of predicates in, the next predicate to evaluate out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from tamis.errors import SchedulerError
from tamis.files.arrays import Int8s, Int64s, zeros
from tamis.index.growth import grown
from tamis.schedule.compiled.event_graph import (
    FlatEventGraph,
    LocalNumbers,
    SharedCalls,
    build_event_graph,
    count_literals,
)
from tamis.schedule.compiled.graph import FALSE, FAULT, NEVER, ON_FALSE, ON_TRUE, TRUE, ClauseGraph
from tamis.schedule.compiled.run_state import (
    EVALUATED,
    MATCHED,
    NOW,
    FlatRunState,
    allocate_state,
    begin,
)
from tamis.schedule.run import Run
from tamis.schedule.statistics import PredicateStatistics

__all__ = [
    "FALSE",
    "FAULT",
    "NEVER",
    "ON_FALSE",
    "ON_TRUE",
    "TRUE",
    "ClauseByClause",
    "Run",
    "Scheduler",
    "Simulation",
]


class Simulation(NamedTuple):
    """What an event with known outcomes took."""

    evaluated: int  # predicates
    cost: float  # of these predicates
    matched: Int64s  # clauses that completed
    trail: Int64s  # the predicates, in the order of evaluation


class Scheduler(ABC):
    """An algorithm over operators: which predicate to evaluate next, so that few have to be.

    A scheduler sees numbers only. The caller numbers clauses and predicates densely and may reuse
    numbers. A clause is a conjunction of literals; the clauses of one owner are alternatives. Runs
    are independent: several may be active at once, while clauses are added and removed. Neither
    runs nor schedulers are thread-safe.

    `add` and `remove` take time proportional to the literals of the clause, `run` to those of the
    survivors.
    """

    def __init__(self, statistics: PredicateStatistics | None = None) -> None:
        self.statistics = PredicateStatistics() if statistics is None else statistics
        self.graph = ClauseGraph()
        self._local = zeros(LocalNumbers)
        # Of the last event; the next one often has the same survivors.
        self._last: FlatEventGraph | None = None
        self._shared_calls: SharedCalls | None = None  # None where no predicates share a call
        self._spare: FlatRunState | None = None  # the state of the last simulation

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, without the statistics."""
        kept = self._local if self._last is None else (*self._local, *self._last)
        return self.graph.nbytes + sum(part.nbytes for part in kept)

    def add(self, clause: int, predicates: Sequence[int], kills: Sequence[int], owner: int) -> None:
        """Add a clause: its predicates in the order of the condition, and which outcome kills."""
        self.graph.add(clause, predicates, kills, owner)
        self._last = None
        self.statistics.fit(self.graph.predicates)
        self._clause_added(clause)

    def assign_call(self, predicate: int, call: int) -> None:
        """Declare which call answers a predicate. One call answers all its predicates at once."""
        self.graph.assign_call(predicate, call)
        self._last = None

    def remove(self, clause: int) -> None:
        """Remove a clause."""
        self.graph.remove(clause)
        self._last = None
        self._clause_removed(clause)

    def run(self, clauses: Int64s) -> Run:
        """Begin an event for which these clauses are undecided; each clause occurs once."""
        graph = self._event_graph(clauses)
        if self._shared_calls is not None:
            self.statistics.apply_call_costs(graph.predicates, self._shared_calls.calls)
        run = self._begin(graph, self._allocate(graph))
        run.share_calls(self._shared_calls)
        return run

    def learn(self, predicate: int, outcome: int, cost: float | None) -> None:
        """Learn the outcome of a predicate and the cost of its call; None: no call was made."""
        self.statistics.learn(predicate, outcome, self._learn_call_cost(predicate, cost))

    def learn_all(self, predicates: Int64s, outcomes: Int8s, cost: float | None) -> None:
        """Like `learn` for several predicates that one call answers."""
        own = self._learn_call_cost(int(predicates[0]), cost)
        if cost is not None and own is None:
            self.statistics.cost[predicates] = self.statistics.cost[predicates[0]]
        self.statistics.learn_all(predicates, outcomes, own)

    @property
    def learns_by_default(self) -> bool:
        """Whether it learns as this class does: `learn_results` and `learn_cost` are enough."""
        kind = type(self)
        return kind.learn is Scheduler.learn and kind.learn_all is Scheduler.learn_all

    def learn_results(self, predicates: Int64s, outcomes: Int8s) -> None:
        """Learn results of any events, in one go; an outcome below 0 is no result."""
        self.statistics.learn_results(predicates, outcomes)

    def learn_cost(self, predicates: Int64s, cost: float, times: int) -> None:
        """Learn the mean cost of a call that was made so often and answers these predicates."""
        known, first = self.statistics, int(predicates[0])
        call, expected = int(self.graph.call[first]), float(known.cost[first])
        known.cost[predicates] = known.learn_call(call, cost, expected, times)

    def _learn_call_cost(self, predicate: int, cost: float | None) -> float | None:
        """Learn a cost by call. Returns the cost where the predicate has no declared call."""
        call = int(self.graph.call[predicate]) if predicate < len(self.graph.call) else -1
        if cost is None or call < 0:
            return cost
        known = self.statistics
        known.cost[predicate] = known.learn_call(call, cost, float(known.cost[predicate]))
        return None

    def simulate(self, clauses: Int64s, outcome: Int8s) -> Simulation:
        """Run an event with known outcomes, by predicate, in one go.

        Each predicate is evaluated by itself: declared calls affect the order, but a call does not
        answer its other predicates.
        """
        used = np.flatnonzero(self.graph.degree[len(outcome) :])
        if len(used):
            most = len(outcome) + int(used[-1]) + 1
            raise SchedulerError(f"the graph has {most} predicates, but {len(outcome)} outcomes")
        graph = self._event_graph(clauses)
        if self._spare is None:
            self._spare = self._allocate(graph)
        run = self._begin(graph, self._spare)
        if run.undecided:
            run.finish(np.ascontiguousarray(outcome, np.int8))
        longs, predicates = self._spare.longs, len(graph.predicates)
        trail = longs[NOW : NOW + longs[EVALUATED]].copy()
        matched = longs[NOW + predicates : NOW + predicates + longs[MATCHED]].copy()
        return Simulation(len(trail), float(self.statistics.cost[trail].sum()), matched, trail)

    def check(self) -> None:
        """Raise if an invariant is broken. Slow; for tests."""
        self.graph.check()
        self.statistics.check()
        assert len(self.statistics) >= self.graph.predicates
        assert all((part == -1).all() for part in self._local), "local numbers of a past event"

    def _clause_added(self, clause: int) -> None:  # noqa: B027
        """Called after a clause was added."""

    def _clause_removed(self, clause: int) -> None:  # noqa: B027
        """Called after a clause was removed."""

    def _ordered(self, clauses: Int64s) -> Int64s:
        """The survivors in the order of evaluation; by default the given one."""
        return clauses

    def _event_graph(self, clauses: Int64s) -> FlatEventGraph:
        """The graph of these survivors; that of the last event if they are the same."""
        clauses = np.ascontiguousarray(clauses, np.int64)
        arrays = self.graph.arrays
        literals = count_literals(arrays.size, clauses)
        if literals < 0:
            raise SchedulerError(f"there is no clause {clauses[-1 - literals]} to decide")
        clauses = self._ordered(clauses)
        if self._last is None or not np.array_equal(self._last.clauses, clauses):
            local = grown(self._local.predicate, self.graph.predicates, -1)
            last = grown(self._local.group, self.graph.groups, -1)
            self._local = LocalNumbers(local, last)
            if not self.graph.has_alternatives:
                last = last[:0]
            self._last = FlatEventGraph(*build_event_graph(*arrays, local, last, clauses, literals))
            self._spare = self._shared_calls = None
            if self.graph.has_shared_calls:
                predicates = self._last.predicates
                self._shared_calls = SharedCalls(predicates, self.graph.calls(predicates))
        return self._last

    def _allocate(self, graph: FlatEventGraph) -> FlatRunState:
        """Arrays for the state of a run."""
        return allocate_state(graph)

    @abstractmethod
    def _begin(self, graph: FlatEventGraph, state: FlatRunState) -> Run:
        """Begin a run with this state."""


class ClauseByClause(Scheduler):
    """A scheduler that takes the survivors in turn. Subclasses differ in what they skip."""

    way: ClassVar[int]  # a constant of `clause_order`

    def _begin(self, graph: FlatEventGraph, state: FlatRunState) -> Run:
        begin(graph, state, self.way)
        return Run(graph, state)
