"""The calls of operators for some events of a batch: what they read, and what they gave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from time import perf_counter
from typing import Any

from tamis.encode.batch import EventBatch
from tamis.engine.calls.interned_predicates import InternedPredicate, OperatorCall
from tamis.model.operator import Fault, Rows
from tamis.operators.operator import Operator
from tamis.operators.remembering_runner import RememberingRunner

DEAREST = 1e9  # milliseconds: the highest cost that a scheduler sees
UNBOUND = object()  # instead of rows: the event lacks an attribute that the operator reads
_HUNG = Fault("timeout: it hung for this event before", "timeout")

Result = Any  # rows, a fault, or UNBOUND


class EventCalls:
    """The results of these events, by event and by call; and the time of calls not yet reported."""

    def __init__(self, runner: RememberingRunner, batch: EventBatch, events: list[int]) -> None:
        self._runner, self._batch, self._events = runner, batch, events
        self.given: defaultdict[int, dict[OperatorCall, Result]] = defaultdict(dict)
        self.spent: dict[tuple[int, OperatorCall], float] = {}  # milliseconds
        self._late: defaultdict[int, set[Operator]] = defaultdict(set)  # timed out
        self._values: dict[str, dict[int, tuple[Any, ...]]] = {}  # by attribute and event

    def call(self, wanted: Sequence[tuple[int, InternedPredicate]]) -> None:
        """Call an operator for some events, and keep the results.

        They need the same call, unless the operator takes pairs.
        """
        events, whats = [event for event, _ in wanted], [what for _, what in wanted]
        found, spent = self.results(events, whats)
        for event, what, result, cost in zip(events, whats, found, spent, strict=True):
            self.given[event][what.call] = result
            if result is not UNBOUND:
                self.spent[event, what.call] = cost

    def results(
        self, events: list[int], whats: Sequence[InternedPredicate]
    ) -> tuple[list[Result], list[float]]:
        """The result of a call for each event, and the milliseconds it took.

        Each value of an attribute is a call of its own.
        """
        operator = whats[0].operator
        columns = [self._column(name, events) for name in operator.signature.reads]
        if columns and not self._late and all(set(map(len, each)) == {1} for each in columns):
            # Nearly always: every event has one value of each attribute.
            reads = columns[0]
            if len(columns) > 1:
                reads = list(zip(*([value for (value,) in each] for each in columns), strict=True))
            if operator.batch or operator.run == "here":
                return self._together(operator, reads, events, whats)
        found: list[Result] = []
        spent: list[float] = []
        for at, (event, what) in enumerate(zip(events, whats, strict=True)):
            mine = list(product(*(column[at] for column in columns)))
            result, cost = self._one(operator, event, what, mine)
            found.append(result)
            spent.append(cost)
        return found, spent

    def _together(
        self,
        operator: Operator,
        reads: list[tuple[Any, ...]],
        events: list[int],
        whats: Sequence[InternedPredicate],
    ) -> tuple[list[Result], list[float]]:
        given = [what.predicate.arguments for what in whats]
        begun = perf_counter()
        found: list[Result] = list(self._runner.answers(operator, reads, given))
        spent = min((perf_counter() - begun) * 1000 / len(reads), DEAREST)
        for event, result in zip(events, found, strict=True):
            if isinstance(result, Fault):
                self._hung(operator, event, result)
        return found, [spent] * len(found)

    def _one(
        self, operator: Operator, event: int, what: InternedPredicate, reads: list[tuple[Any, ...]]
    ) -> tuple[Result, float]:
        if not reads:
            return UNBOUND, 0.0
        if operator in self._late.get(event, ()) and not self._runner.trusts(*what.call):
            # An event waits once for constants that never answered; skipped calls are counted.
            self._runner.skipped(operator, [what.call[1]] * len(reads), _HUNG)
            return _HUNG, 0.0
        begun = perf_counter()
        found: list[Rows | Fault] = []
        if operator.batch:
            found = self._runner.answers(operator, reads, [what.predicate.arguments] * len(reads))
        for read in reads if not operator.batch else ():
            found += self._runner.answers(operator, [read], [what.predicate.arguments])
            if isinstance(found[-1], Fault):
                break  # a fault for one value is a fault
        united = _united(found)
        self._hung(operator, event, united)
        return united, min((perf_counter() - begun) * 1000, DEAREST)

    def _hung(self, operator: Operator, event: int, result: Rows | Fault) -> None:
        if isinstance(result, Fault) and result.kind == "timeout":
            self._late[event].add(operator)

    def _column(self, name: str, events: list[int]) -> list[tuple[Any, ...]]:
        """All these events are read at once: a column of Arrow is expensive to enter."""
        values = self._values.get(name)
        if values is None:
            read = self._batch.read(name, self._events)
            self._values[name] = values = dict(zip(self._events, read, strict=True))
        return [values[event] for event in events]


def _united(found: list[Rows | Fault]) -> Rows | Fault:
    """The rows for all values of an attribute; one fault makes all a fault."""
    if len(found) == 1:
        return found[0]
    rows: list[tuple[Any, ...]] = []
    for each in found:
        if isinstance(each, Fault):
            return each
        rows.extend(each)
    return tuple(rows)
