"""Operators for the events of a batch: called when a scheduler wants them, and once an event.

Events go side by side: each goes on until its scheduler wants a predicate whose operator takes a
batch; when all are waiting for one, the operator that most wait for is called for all of these at
once. So nothing is evaluated that an event alone would not have had evaluated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from tamis.engine.asked import Asked, CallPredicate
from tamis.engine.joining import Row, TooManyError
from tamis.model.operator import Fault, Rows
from tamis.operators.operator import Operator
from tamis.operators.registry import Operators
from tamis.operators.runner import Runner
from tamis.schedule.base import FALSE, FAULT, TRUE, Run, Scheduler

Values = Mapping[str, tuple[Any, ...]]
_UNBOUND = object()  # in place of rows: the event lacks what the operator reads


class Clauses(Protocol):
    """Who knows what clauses ask."""

    def asked(self, slot: int) -> Asked: ...
    def predicate(self, number: int) -> CallPredicate: ...
    def number(self, predicate: CallPredicate) -> int: ...
    def call(self, predicate: CallPredicate) -> Hashable: ...
    def sharing(self, call: Hashable) -> Iterable[int]: ...


class _Going(NamedTuple):
    """An event under way: what operators have given, and the bindings of predicates."""

    run: Run
    values: Values
    given: dict[Hashable, Any]
    spent: dict[Hashable, float]  # milliseconds, of what has just been given
    bindings: dict[int, frozenset[Row]]
    told: set[int]
    matched: set[int]


class _Wanted(NamedTuple):
    operator: Operator
    arguments: tuple[Any, ...]
    key: Hashable


class Evaluation:
    """Some events of a batch."""

    def __init__(
        self, operators: Operators, runner: Runner, scheduler: Scheduler, clauses: Clauses
    ) -> None:
        self._operators, self._runner = operators, runner
        self._scheduler, self._clauses = scheduler, clauses
        self._going: dict[int, _Going] = {}
        self.given_up = 0

    def start(self, event: int, slots: Any, values: Values) -> None:
        """An event and the clauses that it may still match."""
        self._going[event] = _Going(self._scheduler.run(slots), values, {}, {}, {}, set(), set())

    def finish(self) -> dict[int, set[int]]:
        """Evaluate until everything is decided; for each event the clauses that hold."""
        waiting: dict[Hashable, tuple[_Wanted, list[tuple[_Going, int]]]] = {}
        ready = list(self._going.values())
        while ready or waiting:
            for going in ready:
                wanted = self._advance(going)
                if wanted is not None:
                    number, what = wanted
                    waiting.setdefault(what.key, (what, []))[1].append((going, number))
            ready = []
            if waiting:
                most = max(waiting, key=lambda key: len(waiting[key][1]))
                what, parked = waiting.pop(most)
                self._call(what, [going for going, _ in parked])
                for going, number in parked:
                    self._tell(going, number, what)
                    ready.append(going)
        return {event: going.matched for event, going in self._going.items()}

    def _advance(self, going: _Going) -> tuple[int, _Wanted] | None:
        """Go on with an event until it is done, or waits for an operator that takes a batch."""
        while (number := going.run.next()) >= 0:
            what = self._wanted(number)
            if what.key not in going.given:
                if what.operator.batch:
                    return number, what
                self._call(what, [going])
            self._tell(going, number, what)
        return None

    def _wanted(self, number: int) -> _Wanted:
        predicate = self._clauses.predicate(number)
        operator = self._operators[predicate.operator]
        return _Wanted(operator, predicate.arguments, self._clauses.call(predicate))

    def _call(self, what: _Wanted, events: list[_Going]) -> None:
        """Call an operator for some events. An attribute with several values is several calls."""
        reads: list[tuple[Any, ...]] = []
        counts = []
        for going in events:
            bound = [going.values.get(name, ()) for name in what.operator.signature.reads]
            each = list(product(*bound))
            counts.append(len(each))
            reads.extend(each)
        begun = perf_counter()
        found = self._runner.call(what.operator, reads, what.arguments) if reads else []
        spent = (perf_counter() - begun) * 1000 / max(1, len(reads))
        at = 0
        for going, count in zip(events, counts, strict=True):
            mine = found[at : at + count]
            at += count
            going.given[what.key] = _united(mine) if count else _UNBOUND
            going.spent[what.key] = spent * count

    def _tell(self, going: _Going, number: int, what: _Wanted) -> None:
        """Tell the scheduler of a predicate, and of all others that the same call answers."""
        given = going.given[what.key]
        told = [number]
        if what.key in going.spent:  # just called
            told += [other for other in self._clauses.sharing(what.key) if other != number]
        cost = going.spent.pop(what.key, None)
        for each in told:
            if each not in going.told:
                going.told.add(each)
                self._tell_one(going, each, what, given, cost)
                cost = None  # the others come along for nothing

    def _tell_one(
        self, going: _Going, number: int, what: _Wanted, given: Any, cost: float | None
    ) -> None:
        if given is _UNBOUND or isinstance(given, Fault):
            outcome = FAULT  # neither the call nor its complement holds
        else:
            rows = self._clauses.predicate(number).bindings(what.operator.signature, given)
            going.bindings[number] = rows
            outcome = TRUE if rows else FALSE
            self._scheduler.statistics.learn(number, outcome, cost)
        for clause in going.run.tell(number, outcome).tolist():
            going.run.settle(clause, self._joins(going, clause))

    def _joins(self, going: _Going, clause: int) -> bool:
        asked = self._clauses.asked(clause)
        tables = [going.bindings[self._clauses.number(each.predicate)] for each in asked.calls]
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
