"""Schedulers in plain Python: one class with a method `choose`.

A scheduler of this kind is easy to write and slow to run: each choice takes time proportional to
the literals of the event's survivors, in Python. It suits experiments, and operators that take
milliseconds. The page docs/schedulers.md shows how to write one.
"""

from __future__ import annotations

import operator
from abc import abstractmethod

from tamis.errors import SchedulerError
from tamis.files.arrays import Int8s
from tamis.schedule.base import Scheduler
from tamis.schedule.compiled.clause_order import IN_ORDER
from tamis.schedule.compiled.event_graph import FlatEventGraph, event_graph
from tamis.schedule.compiled.graph import BITS, FALSE, MASK, TRUE
from tamis.schedule.compiled.run_state import MATCHED, NOW, UNDECIDED, UNKNOWN, FlatRunState, begin
from tamis.schedule.run import Run
from tamis.schedule.statistics import PredicateStatistics


class PythonScheduler(Scheduler):
    """Base class of schedulers that choose in Python."""

    @abstractmethod
    def choose(self, state: EventState) -> int:
        """The predicate to evaluate next: one of `state.open`, which is never empty."""

    def _begin(self, graph: FlatEventGraph, state: FlatRunState) -> Run:
        begin(graph, state, IN_ORDER)
        return _PythonRun(self, graph, state)


class EventState:
    """What is open in one event, as of its last result.

    Predicates and clauses are numbers. A clause is a conjunction: it dies with the first predicate
    that has the wrong outcome. The clauses of one subscription are alternatives: the first match
    decides them all.
    """

    def __init__(
        self, statistics: PredicateStatistics, graph: FlatEventGraph, state: FlatRunState, run: Run
    ) -> None:
        self._statistics, self._run = statistics, run
        self._predicates: list[int] = graph.predicates.tolist()
        self._clauses: list[int] = graph.clauses.tolist()
        self._outcome = state.bytes[: len(self._predicates)]
        self._status = state.bytes[len(self._predicates) :]
        arrays = event_graph(*graph)
        self._family: list[int] = arrays.family.tolist()
        start, literal = arrays.start.tolist(), arrays.literal.tolist()
        # For each clause the masks of its literals, and for each predicate the clauses with it.
        self._masks: list[dict[int, int]] = []
        self._holders: list[list[int]] = [[] for _ in self._predicates]
        for s in range(len(self._clauses)):
            mine = literal[start[s] : start[s + 1]]
            self._masks.append({each >> BITS: each & MASK for each in mine})
            for each in mine:
                self._holders[each >> BITS].append(s)
        self._local_predicate = {number: t for t, number in enumerate(self._predicates)}
        self._local_clause = {number: s for s, number in enumerate(self._clauses)}

    @property
    def open(self) -> list[int]:
        """The predicates worth evaluating: those that some undecided clause needs."""
        return [each for each in self._predicates if self.clauses(each)]

    @property
    def undecided(self) -> list[int]:
        """The clauses that may still match."""
        return [each for s, each in enumerate(self._clauses) if self._status[s] == UNDECIDED]

    def cost(self, predicate: int) -> float:
        """The mean cost of the call for a predicate; in an engine, milliseconds."""
        return float(self._statistics.cost[predicate])

    def probability(self, predicate: int) -> float:
        """How likely a predicate is true."""
        return float(self._statistics.p[predicate])

    def clauses(self, predicate: int) -> list[int]:
        """The undecided clauses that need a predicate; empty once its result is known."""
        t = self._local_predicate[predicate]
        if self._outcome[t] != UNKNOWN:
            return []
        return [self._clauses[s] for s in self._holders[t] if self._status[s] == UNDECIDED]

    def predicates(self, clause: int) -> list[int]:
        """The predicates that an undecided clause still needs, in the order of its condition."""
        s = self._local_clause[clause]
        if self._status[s] != UNDECIDED:
            return []
        return [self._predicates[t] for t in self._masks[s] if self._outcome[t] == UNKNOWN]

    def kill_probability(self, predicate: int, clause: int) -> float:
        """How likely the result of a predicate kills a clause."""
        mask = self._masks[self._local_clause[clause]].get(self._local_predicate[predicate], 0)
        true = self.probability(predicate)
        return (mask >> FALSE & 1) * (1 - true) + (mask >> TRUE & 1) * true

    def alternatives(self, clause: int) -> list[int]:
        """The undecided clauses of the same subscription, this one included."""
        family = self._family[self._local_clause[clause]]
        return [each for each in self.undecided if self._family[self._local_clause[each]] == family]

    def answered_with(self, predicate: int) -> list[int]:
        """The open predicates that the call for this one answers, itself included."""
        return [each for each in self._run.answered_with(predicate).tolist() if self.clauses(each)]


class _PythonRun(Run):
    """A run that asks a `PythonScheduler`."""

    def __init__(
        self, scheduler: PythonScheduler, graph: FlatEventGraph, state: FlatRunState
    ) -> None:
        super().__init__(graph, state)
        self._scheduler = scheduler
        self._state: EventState | None = None
        self._made_of = graph, state

    def finish(self, outcomes: Int8s) -> None:
        while (predicate := self.next()) >= 0:
            for clause in self.record(predicate, int(outcomes[predicate])).tolist():
                self._longs[NOW + len(self._predicates) + self._longs[MATCHED]] = clause
                self._longs[MATCHED] += 1
                self.settle(clause, True)

    def _choose(self) -> int:
        if not self.undecided:
            return -1
        if self._state is None:
            self._state = EventState(self._scheduler.statistics, *self._made_of, self)
        chosen = self._scheduler.choose(self._state)
        allowed = self._state.open
        try:
            number = operator.index(chosen)
        except TypeError:
            number = -1
        if number not in allowed or isinstance(chosen, bool):
            raise SchedulerError(
                f"{type(self._scheduler).__name__}.choose returned {chosen!r}, "
                f"which is not open; open are {_some(allowed)}"
            )
        return self._local_number(number)


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (", …" if len(numbers) > 10 else "")
