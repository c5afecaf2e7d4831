"""Operators for the events of a batch: called when a scheduler wants them, and once an event.

Events go side by side: each goes on until its scheduler wants a predicate whose operator takes a
batch; when all are waiting for one, the operator that most wait for is called for all of these at
once. So nothing is evaluated that an event alone would not have had evaluated.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from time import perf_counter
from typing import Any, Protocol

from tamis.engine.asked import Asked
from tamis.engine.joining import Row, TooManyError
from tamis.engine.numbered import Numbered
from tamis.model.operator import Fault, Rows
from tamis.operators.operator import Operator
from tamis.operators.runner import Runner
from tamis.schedule.base import FALSE, FAULT, TRUE, Run, Scheduler

Values = Mapping[str, tuple[Any, ...]]
DEAREST = 1e9  # milliseconds that a scheduler is told at most
_UNBOUND = object()  # in place of rows: the event lacks what the operator reads


class Clauses(Protocol):
    """Who knows what clauses ask."""

    def asked(self, slot: int) -> tuple[Asked, list[int]]: ...
    def predicate(self, number: int) -> Numbered: ...
    def sharing(self, call: Hashable) -> set[int]: ...


@dataclass
class _Going:
    """An event under way."""

    run: Run
    values: Values
    given: dict[Hashable, Any] = field(default_factory=dict)  # by call
    spent: dict[Hashable, float] = field(default_factory=dict)  # ms, of what was just called
    bindings: dict[int, frozenset[Row]] = field(default_factory=dict)  # by predicate
    late: set[Operator] = field(default_factory=set)  # hung, and are not waited for again
    told: set[int] = field(default_factory=set)
    matched: set[int] = field(default_factory=set)

    @cached_property
    def predicates(self) -> set[int]:
        """All that its clauses have."""
        return set(self.run.predicates.tolist())


class Evaluation:
    """Some events of a batch."""

    def __init__(self, runner: Runner, scheduler: Scheduler, clauses: Clauses) -> None:
        self._runner, self._scheduler, self._clauses = runner, scheduler, clauses
        self._going: dict[int, _Going] = {}
        self.given_up = 0

    def start(self, event: int, slots: Any, values: Values) -> None:
        """An event and the clauses that it may still match."""
        self._going[event] = _Going(self._scheduler.run(slots), values)

    def finish(self) -> dict[int, set[int]]:
        """Evaluate until everything is decided; for each event the clauses that hold."""
        waiting: dict[Hashable, tuple[Numbered, list[tuple[_Going, int]]]] = {}
        ready = list(self._going.values())
        while ready or waiting:
            for going in ready:
                wanted = self._advance(going)
                if wanted is not None:
                    number, what = wanted
                    waiting.setdefault(what.call, (what, []))[1].append((going, number))
            ready = []
            if waiting:
                most = max(waiting, key=lambda key: len(waiting[key][1]))
                what, parked = waiting.pop(most)
                self._call(what, [going for going, _ in parked])
                for going, number in parked:
                    self._tell(going, number, what)
                    ready.append(going)
        return {event: going.matched for event, going in self._going.items()}

    def _advance(self, going: _Going) -> tuple[int, Numbered] | None:
        """Go on with an event until it is done, or waits for an operator that takes a batch."""
        while (number := going.run.next()) >= 0:
            what = self._clauses.predicate(number)
            if what.call not in going.given:
                if what.operator.batch:
                    return number, what
                self._call(what, [going])
            self._tell(going, number, what)
        return None

    def _call(self, what: Numbered, events: list[_Going]) -> None:
        """Call an operator for some events. An attribute with several values is several calls."""
        operator, arguments = what.operator, what.predicate.arguments
        asked: list[tuple[_Going, list[tuple[Any, ...]]]] = []
        for going in events:
            values = [going.values.get(name, ()) for name in operator.signature.reads]
            reads = list(product(*values))
            if not reads:
                going.given[what.call] = _UNBOUND
            elif operator in going.late:
                going.given[what.call] = Fault("timeout: it hung for this event before", "timeout")
            else:
                asked.append((going, reads))
        if operator.batch:
            begun = perf_counter()
            every = [each for _, reads in asked for each in reads]
            found = iter(self._runner.call(operator, every, arguments) if every else [])
            spent = (perf_counter() - begun) * 1000 / max(1, len(every))
            for going, reads in asked:
                mine = [next(found) for _ in reads]
                self._given(going, what, mine, spent * len(reads))
            return
        for going, reads in asked:
            begun = perf_counter()
            mine = []
            for each in reads:
                mine += self._runner.call(operator, [each], arguments)
                if isinstance(mine[-1], Fault):
                    break  # a fault for one value is a fault
            self._given(going, what, mine, (perf_counter() - begun) * 1000)

    def _given(
        self, going: _Going, what: Numbered, found: list[Rows | Fault], spent: float
    ) -> None:
        united = _united(found)
        going.given[what.call] = united
        going.spent[what.call] = min(spent, DEAREST)
        if isinstance(united, Fault) and united.kind == "timeout":
            going.late.add(what.operator)

    def _tell(self, going: _Going, number: int, what: Numbered) -> None:
        """Tell the scheduler of a predicate, and of all others that the same call answers."""
        given = going.given[what.call]
        told = {number}
        cost = going.spent.pop(what.call, None)
        if cost is not None:  # just called
            sharing = self._clauses.sharing(what.call)
            if len(sharing) > 1:
                told |= sharing & going.predicates
        for each in told - going.told:
            going.told.add(each)
            self._tell_one(going, each, given, cost)

    def _tell_one(self, going: _Going, number: int, given: Any, cost: float | None) -> None:
        learned = self._scheduler.statistics
        if given is _UNBOUND:
            outcome = FAULT  # neither the call nor its complement holds
        elif isinstance(given, Fault):
            outcome = FAULT
            learned.learn(number, outcome, cost)
        else:
            predicate, operator, _ = self._clauses.predicate(number)
            rows = predicate.bindings(operator.signature, given)
            going.bindings[number] = rows
            outcome = TRUE if rows else FALSE
            learned.learn(number, outcome, cost)
        for clause in going.run.tell(number, outcome).tolist():
            going.run.settle(clause, self._joins(going, clause))

    def _joins(self, going: _Going, clause: int) -> bool:
        asked, numbers = self._clauses.asked(clause)
        tables = [going.bindings[number] for number in numbers]
        try:
            holds = asked.holds(tables)
        except TooManyError:
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
