"""The hash join in plain Python that a careful programmer writes for rules with equalities.

Rules with equalities on the same attributes share a dict, from the values to the rules. An event
looks itself up once in each dict whose attributes it has; which dicts these are is remembered by
the names of the event. Only the rules that it finds there test what else they ask. Rules without an
equality are all tested.

This module imports nothing of tamis: a new process that uses it must not pay for that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

Predicate = tuple[str, str, Any]  # attribute, comparator, constant
_Test = tuple[str, Callable[[Any, Any], bool], Any]
_Rule = tuple[Any, tuple[_Test, ...]]
_Table = dict[Any, list[_Rule]]

_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class HashJoin:
    """Rules in dicts by the values that they equal."""

    def __init__(self, rules: Iterable[tuple[Any, Sequence[Predicate]]] = ()) -> None:
        self._tables: dict[tuple[str, ...], _Table] = {}
        self._keys: dict[Any, tuple[tuple[str, ...], Any]] = {}
        self._plans: dict[tuple[str, ...], list[tuple[Callable[[Any], Any], _Table]]] = {}
        for id, predicates in rules:
            self.add(id, predicates)

    def add(self, id: Any, predicates: Sequence[Predicate]) -> None:
        """Add a rule, a conjunction of predicates."""
        equal = {name: constant for name, sign, constant in predicates if sign == "="}
        names = tuple(sorted(equal))
        if names not in self._tables:
            self._tables[names] = {}
            self._plans.clear()
        key = _value_of(names)(equal)
        rest = tuple(
            (name, _TESTS[sign], constant)
            for name, sign, constant in predicates
            if sign != "=" or equal[name] != constant
        )
        self._tables[names].setdefault(key, []).append((id, rest))
        self._keys[id] = names, key

    def remove(self, id: Any) -> None:
        """Remove a rule."""
        names, key = self._keys.pop(id)
        table = self._tables[names]
        table[key] = [each for each in table[key] if each[0] != id]
        if not table[key]:
            del table[key]

    def match(self, event: Mapping[str, Any]) -> list[Any]:
        """The ids of the rules that match an event, which is flat and has no nulls."""
        found: list[Any] = []
        for value_of, table in self._plan(event):
            for id, rest in table.get(value_of(event), ()):
                for name, test, constant in rest:
                    if name not in event or not test(event[name], constant):
                        break
                else:
                    found.append(id)
        return found

    def _plan(self, event: Mapping[str, Any]) -> list[tuple[Callable[[Any], Any], _Table]]:
        shape = tuple(event)
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._plans[shape] = [
                (_value_of(names), table)
                for names, table in self._tables.items()
                if event.keys() >= set(names)
            ]
        return plan


def _value_of(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """Reads the values of some attributes: one, or several as a tuple."""
    return itemgetter(*names) if names else lambda event: ()
