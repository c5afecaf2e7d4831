"""Evaluation of operators for the events of a batch, in the order that a scheduler decides.

Each event advances until its scheduler wants a predicate whose operator takes batches. When all
events wait, the operator that most of them wait for is called for all of these at once. So nothing
is evaluated that an event alone would not need.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tamis.engine.calls.clause_calls import ClauseCalls
from tamis.engine.calls.event_calls import UNBOUND, EventCalls
from tamis.engine.calls.interned_predicates import (
    InternedPredicate,
    InternedPredicates,
    OperatorCall,
)
from tamis.engine.calls.join import JoinLimitError, Row
from tamis.files.arrays import Int64s
from tamis.model.operator import Fault
from tamis.operators.operator import Operator
from tamis.schedule.base import FALSE, FAULT, TRUE, Run, Scheduler


class ClauseEntry(NamedTuple):
    """A clause with calls."""

    calls: ClauseCalls
    text: str  # the calls in the native language, to be saved
    owner: int
    operators: tuple[Operator, ...]  # one for each call
    numbers: list[int]  # the interned predicates of its calls, in order
    joined: bool  # whether the bindings must be joined


@dataclass
class _RunningEvent:
    """An event whose clauses are not all decided."""

    event: int
    run: Run
    given: dict[OperatorCall, Any]  # results, by call
    bindings: dict[int, frozenset[Row]] = field(default_factory=dict)  # by predicate
    matched: set[int] = field(default_factory=set)


class _WaitingEvent(NamedTuple):
    """An event that waits for the result of a predicate."""

    running: _RunningEvent
    number: int
    what: InternedPredicate


class Evaluation:
    """The evaluation of some events of a batch."""

    def __init__(
        self,
        calls: EventCalls,
        scheduler: Scheduler,
        entries: Mapping[int, ClauseEntry],
        predicates: InternedPredicates,
    ) -> None:
        self._calls, self._scheduler = calls, scheduler
        self._entries, self._predicates = entries, predicates
        self._events: dict[int, _RunningEvent] = {}
        self.given_up = 0

    def start(self, event: int, slots: Any) -> None:
        """Add an event with the clauses that it may match."""
        run = self._scheduler.run(slots)
        self._events[event] = _RunningEvent(event, run, self._calls.given[event])

    def finish(self) -> dict[int, set[int]]:
        """Evaluate until all clauses are decided; return those that hold, by event."""
        waiting: dict[Hashable, list[_WaitingEvent]] = {}
        ready = list(self._events.values())
        while ready or waiting:
            for running in ready:
                wanted = self._advance(running)
                if wanted is not None:
                    # An operator that takes pairs answers all its predicates in one call.
                    what = wanted.what
                    key = what.operator if what.operator.pairs else what.call
                    waiting.setdefault(key, []).append(wanted)
            ready = []
            if waiting:
                most = max(waiting, key=lambda key: len(waiting[key]))
                parked = waiting.pop(most)
                self._calls.call([(each.running.event, each.what) for each in parked])
                for running, number, what in parked:
                    self._report(running, number, what)
                    ready.append(running)
        return {event: running.matched for event, running in self._events.items()}

    def _advance(self, running: _RunningEvent) -> _WaitingEvent | None:
        """Advance an event until it is decided, or waits for an operator that takes batches."""
        while (number := running.run.next()) >= 0:
            what = self._predicates[number]
            waiting = _WaitingEvent(running, number, what)
            if what.call not in running.given:
                if what.operator.batch:
                    return waiting
                self._calls.call([(running.event, what)])
            self._report(running, number, what)
        return None

    def _report(self, running: _RunningEvent, number: int, what: InternedPredicate) -> None:
        """Report a predicate, and all others that the same call answers, to the scheduler.

        Only predicates of undecided clauses are reported; the others cost nothing.
        """
        given = running.given[what.call]
        cost = self._calls.spent.pop((running.event, what.call), None)
        numbers = running.run.answered_with(number)
        if len(numbers) > 1:
            complete = self._report_all(running, numbers, what, cost)
        elif given is UNBOUND:
            # Neither the call nor its complement holds.
            complete = running.run.record(number, FAULT)
        else:
            outcome = FAULT
            if not isinstance(given, Fault):
                holds = what.predicate.holds(what.operator.signature, given)
                outcome = TRUE if holds else FALSE
            self._scheduler.learn(number, outcome, cost)
            complete = running.run.record(number, outcome)
        self._settle(running, complete.tolist())

    def _report_all(
        self, running: _RunningEvent, numbers: Int64s, what: InternedPredicate, cost: float | None
    ) -> Int64s:
        given = running.given[what.call]
        outcomes = np.full(len(numbers), FAULT, np.int8)
        if given is not UNBOUND:
            if not isinstance(given, Fault):
                holding = self._predicates.group(what.call).answer(given, numbers)
                outcomes = np.where(holding, TRUE, FALSE).astype(np.int8)
            self._scheduler.learn_all(numbers, outcomes, cost)
        return running.run.record_all(numbers, outcomes)

    def _settle(self, running: _RunningEvent, complete: list[int]) -> None:
        """Decide clauses whose calls all hold one by one."""
        if len(complete) == 1 or not self._scheduler.graph.has_alternatives:
            for clause in complete:
                running.run.settle(clause, self._joins(running, clause))
            return
        # Clauses of one owner: those without a join first, and none after one has matched.
        matched: set[int] = set()
        for clause in sorted(complete, key=lambda clause: self._entries[clause].joined):
            owner = self._entries[clause].owner
            holds = owner not in matched and self._joins(running, clause)
            if holds:
                matched.add(owner)
            running.run.settle(clause, holds)

    def _bindings(self, running: _RunningEvent, number: int) -> frozenset[Row]:
        found = running.bindings.get(number)
        if found is None:
            predicate, operator, call = self._predicates[number]
            found = predicate.bindings(operator.signature, running.given[call])
            running.bindings[number] = found
        return found

    def _joins(self, running: _RunningEvent, clause: int) -> bool:
        """Whether the bindings of a clause's calls join."""
        entry, holds = self._entries[clause], True
        if entry.joined:
            tables = (self._bindings(running, number) for number in entry.numbers)
            try:
                holds = entry.calls.holds(list(tables))
            except JoinLimitError:
                self.given_up += 1
                holds = False
        if holds:
            running.matched.add(clause)
        return holds
