"""The different predicates of all clauses, numbered, and which call of an operator answers each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tamis.engine.calls.call_group import CallGroup
from tamis.engine.calls.clause_calls import CallPredicate
from tamis.operators.operator import Operator


class InternedPredicate(NamedTuple):
    """A predicate, and who answers it: that of the day when the first clause had it.

    A function that is defined anew later answers for later clauses.
    """

    predicate: CallPredicate
    operator: Operator
    call: Hashable  # equal where one call of the operator answers both


class InternedPredicates:
    """Dense numbers for predicates, recycled when no clause has them any more."""

    def __init__(self) -> None:
        self._number: dict[Hashable, int] = {}
        self._of: list[InternedPredicate | None] = []
        self._users: list[set[int]] = []  # slots
        self._free: list[int] = []
        self._sharing: dict[Hashable, CallGroup] = {}
        self._call_number: dict[Hashable, int] = {}
        self._free_calls: list[int] = []

    def __len__(self) -> int:
        return len(self._number)

    def __getitem__(self, number: int) -> InternedPredicate:
        found = self._of[number]
        assert found is not None
        return found

    def __iter__(self) -> Iterator[int]:
        """The numbers that are taken."""
        return iter(self._number.values())

    def sharing(self, call: Hashable) -> CallGroup:
        """All that one call answers."""
        return self._sharing[call]

    def call_number(self, number: int) -> int:
        """A dense number for the call that answers a predicate."""
        return self._call_number[self[number].call]

    def take(self, predicate: CallPredicate, operator: Operator, slot: int) -> tuple[int, bool]:
        """The number of a predicate that the clause in a slot has; whether it is a new one."""
        key = predicate.key, operator
        number = self._number.get(key)
        fresh = number is None
        if number is None:
            number = self._free.pop() if self._free else len(self._of)
            if number == len(self._of):
                self._of.append(None)
                self._users.append(set())
            call = operator, operator.key(predicate.arguments)
            self._of[number] = InternedPredicate(predicate, operator, call)
            sharing = self._sharing.get(call)
            if sharing is None:
                sharing = self._sharing[call] = CallGroup(operator.signature)
                spare = self._free_calls
                self._call_number[call] = spare.pop() if spare else len(self._call_number)
            sharing.add(number, predicate)
            self._number[key] = number
        self._users[number].add(slot)
        return number, fresh

    def leave(self, number: int, slot: int) -> None:
        """The clause in a slot no longer has it. May be said twice."""
        users, found = self._users[number], self._of[number]
        users.discard(slot)
        if users or found is None:
            return
        self._of[number] = None
        self._number.pop((found.predicate.key, found.operator), None)
        sharing = self._sharing.get(found.call)
        if sharing is not None and number in sharing.numbers:
            sharing.remove(number)
            if not len(sharing):
                del self._sharing[found.call]
                self._free_calls.append(self._call_number.pop(found.call))
        self._free.append(number)
