"""Operators for the events of a batch: called when a scheduler wants them, and once an event.

Events go side by side: each goes on until its scheduler wants a predicate whose operator takes a
batch; when all are waiting for one, the operator that most wait for is called for all of these at
once. So nothing is evaluated that an event alone would not have had evaluated.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.engine.calls.call_group import CallGroup
from tamis.engine.calls.clause_calls import ClauseCalls
from tamis.engine.calls.interned_predicates import InternedPredicate
from tamis.engine.calls.join import JoinLimitError, Row
from tamis.model.operator import Fault, Rows
from tamis.operators.operator import Operator
from tamis.operators.results import Answers
from tamis.operators.runner import Runner
from tamis.schedule.base import FALSE, FAULT, TRUE, Run, Scheduler

Int64s = NDArray[np.int64]
Values = Mapping[str, tuple[Any, ...]]
DEAREST = 1e9  # milliseconds that a scheduler is told at most
_HUNG = Fault("timeout: it hung for this event before", "timeout")
_UNBOUND = object()  # in place of rows: the event lacks what the operator reads


class Clauses(Protocol):
    """Who knows what clauses ask."""

    def asked(self, slot: int) -> tuple[ClauseCalls, list[int]] | None: ...
    def owner(self, slot: int) -> int: ...
    def predicate(self, number: int) -> InternedPredicate: ...
    def sharing(self, call: Hashable) -> CallGroup: ...


@dataclass
class _RunningEvent:
    """An event under way."""

    run: Run
    values: Values
    given: dict[Hashable, Any] = field(default_factory=dict)  # by call
    spent: dict[Hashable, float] = field(default_factory=dict)  # ms, of what was just called
    bindings: dict[int, frozenset[Row]] = field(default_factory=dict)  # by predicate
    late: set[Operator] = field(default_factory=set)  # hung, and are not waited for again
    matched: set[int] = field(default_factory=set)


class _WaitingEvent(NamedTuple):
    """An event that waits for what a predicate needs."""

    going: _RunningEvent
    number: int
    what: InternedPredicate


class Evaluation:
    """Some events of a batch."""

    def __init__(self, runner: Runner, scheduler: Scheduler, clauses: Clauses) -> None:
        self._runner, self._scheduler, self._clauses = runner, scheduler, clauses
        self._going: dict[int, _RunningEvent] = {}
        self.given_up = 0

    def start(self, event: int, slots: Any, values: Values) -> None:
        """An event and the clauses that it may still match."""
        self._going[event] = _RunningEvent(self._scheduler.run(slots), values)

    def finish(self) -> dict[int, set[int]]:
        """Evaluate until everything is decided; for each event the clauses that hold."""
        waiting: dict[Hashable, list[_WaitingEvent]] = {}
        ready = list(self._going.values())
        while ready or waiting:
            for going in ready:
                wanted = self._advance(going)
                if wanted is not None:
                    # One that takes pairs answers for all that wait for it, whatever they ask.
                    what = wanted.what
                    key = what.operator if what.operator.pairs else what.call
                    waiting.setdefault(key, []).append(wanted)
            ready = []
            if waiting:
                most = max(waiting, key=lambda key: len(waiting[key]))
                parked = waiting.pop(most)
                self._call(parked)
                for going, number, what in parked:
                    self._tell(going, number, what)
                    ready.append(going)
        return {event: going.matched for event, going in self._going.items()}

    def _advance(self, going: _RunningEvent) -> _WaitingEvent | None:
        """Go on with an event until it is done, or waits for an operator that takes a batch."""
        while (number := going.run.next()) >= 0:
            what = self._clauses.predicate(number)
            wanting = _WaitingEvent(going, number, what)
            if what.call not in going.given:
                if what.operator.batch:
                    return wanting
                self._call([wanting])
            self._tell(going, number, what)
        return None

    def _call(self, wanting: list[_WaitingEvent]) -> None:
        """Call an operator for some events. An attribute with several values is several calls."""
        operator = wanting[0].what.operator
        asked: list[tuple[_WaitingEvent, list[tuple[Any, ...]]]] = []
        for each in wanting:
            going, call = each.going, each.what.call
            values = [going.values.get(name, ()) for name in operator.signature.reads]
            reads = list(product(*values))
            if not reads:
                going.given[call] = _UNBOUND
            elif operator in going.late:
                # An event waits for an operator once; what is not tried for that is counted too.
                going.given[call] = _HUNG
                self._runner.skipped(operator, len(reads), _HUNG)
            else:
                asked.append((each, reads))
        if operator.batch:
            begun = perf_counter()
            found = iter(self._called(operator, asked) if asked else [])
            spent = (perf_counter() - begun) * 1000 / max(1, sum(len(reads) for _, reads in asked))
            for each, reads in asked:
                mine = [next(found) for _ in reads]
                self._given(each.going, each.what, mine, spent * len(reads))
            return
        for each, reads in asked:
            begun = perf_counter()
            mine = []
            for read in reads:
                mine += self._runner.call(operator, [read], each.what.predicate.arguments)
                if isinstance(mine[-1], Fault):
                    break  # a fault for one value is a fault
            self._given(each.going, each.what, mine, (perf_counter() - begun) * 1000)

    def _called(
        self, operator: Operator, asked: list[tuple[_WaitingEvent, list[tuple[Any, ...]]]]
    ) -> Answers:
        """The answers for all events at once."""
        every = [read for _, reads in asked for read in reads]
        if operator.pairs:
            given = [each.what.predicate.arguments for each, reads in asked for _ in reads]
            return self._runner.call_pairs(operator, every, given)
        return self._runner.call(operator, every, asked[0][0].what.predicate.arguments)

    def _given(
        self, going: _RunningEvent, what: InternedPredicate, found: list[Rows | Fault], spent: float
    ) -> None:
        united = _united(found)
        going.given[what.call] = united
        going.spent[what.call] = min(spent, DEAREST)
        if isinstance(united, Fault) and united.kind == "timeout":
            going.late.add(what.operator)

    def _tell(self, going: _RunningEvent, number: int, what: InternedPredicate) -> None:
        """Tell the scheduler of a predicate, and of all others that the same call answers.

        Only of those that survivors of the event have: all others cost nothing.
        """
        given = going.given[what.call]
        cost = going.spent.pop(what.call, None)
        numbers = going.run.answered_with(number)
        if len(numbers) > 1:
            complete = self._tell_all(going, numbers, what, cost)
        elif given is _UNBOUND:
            complete = going.run.record(number, FAULT)  # neither the call nor its complement holds
        else:
            outcome = FAULT
            if not isinstance(given, Fault):
                holds = what.predicate.holds(what.operator.signature, given)
                outcome = TRUE if holds else FALSE
            self._scheduler.learn(number, outcome, cost)
            complete = going.run.record(number, outcome)
        self._settle(going, complete.tolist())

    def _tell_all(
        self, going: _RunningEvent, numbers: Int64s, what: InternedPredicate, cost: float | None
    ) -> Int64s:
        given = going.given[what.call]
        outcomes = np.full(len(numbers), FAULT, np.int8)
        if given is not _UNBOUND:
            if not isinstance(given, Fault):
                holding = self._clauses.sharing(what.call).answer(given, numbers)
                outcomes = np.where(holding, TRUE, FALSE).astype(np.int8)
            self._scheduler.learn_all(numbers, outcomes, cost)
        return going.run.record_all(numbers, outcomes)

    def _settle(self, going: _RunningEvent, complete: list[int]) -> None:
        """Decide clauses that have come out right call by call."""
        if len(complete) == 1 or not self._scheduler.graph.has_alternatives:
            for clause in complete:
                going.run.settle(clause, self._joins(going, clause))
            return
        # Several of one owner may have come at once: first those without a join, and none any more
        # once one has matched.
        matched: set[int] = set()
        for clause in sorted(complete, key=lambda clause: self._clauses.asked(clause) is not None):
            owner = self._clauses.owner(clause)
            holds = owner not in matched and self._joins(going, clause)
            if holds:
                matched.add(owner)
            going.run.settle(clause, holds)

    def _bindings(self, going: _RunningEvent, number: int) -> frozenset[Row]:
        found = going.bindings.get(number)
        if found is None:
            predicate, operator, call = self._clauses.predicate(number)
            found = predicate.bindings(operator.signature, going.given[call])
            going.bindings[number] = found
        return found

    def _joins(self, going: _RunningEvent, clause: int) -> bool:
        """Whether what the calls of a clause gave fits together."""
        joining = self._clauses.asked(clause)
        holds = True
        if joining is not None:
            asked, numbers = joining
            try:
                holds = asked.holds([self._bindings(going, number) for number in numbers])
            except JoinLimitError:
                self.given_up += 1
                holds = False
        if holds:
            going.matched.add(clause)
        return holds


def _united(found: list[Rows | Fault]) -> Rows | Fault:
    """The rows for all values of an attribute; a fault for one is a fault."""
    rows: list[tuple[Any, ...]] = []
    for each in found:
        if isinstance(each, Fault):
            return each
        rows.extend(each)
    return tuple(rows)
