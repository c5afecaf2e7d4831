"""The distinct predicates of all clauses, interned, and the operator call that answers each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tamis.engine.calls.call_group import CallGroup
from tamis.engine.calls.clause_calls import CallPredicate
from tamis.engine.lazy_dict import Interner
from tamis.operators.operator import Operator

OperatorCall = tuple[Operator, Hashable]
"""An operator and the key of its constants."""


class InternedPredicate(NamedTuple):
    """A predicate and the operator that answers it.

    It is the operator of the day when the first clause with the predicate came. A function that is
    redefined later answers for later clauses.
    """

    predicate: CallPredicate
    operator: Operator
    call: OperatorCall  # equal for predicates that one call of the operator answers


class InternedPredicates:
    """Dense numbers for predicates and for calls. A number is recycled after its last clause."""

    def __init__(self) -> None:
        self._numbers: Interner[Hashable] = Interner()
        self._calls: Interner[Hashable] = Interner()
        self._predicates: list[InternedPredicate | None] = []  # by number
        self._users: list[set[int]] = []  # slots, by number
        self._groups: dict[Hashable, CallGroup] = {}  # by call

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> InternedPredicate:
        found = self._predicates[number]
        assert found is not None
        return found

    def __iter__(self) -> Iterator[int]:
        """The numbers in use."""
        return iter(self._numbers)

    def group(self, call: Hashable) -> CallGroup:
        """All predicates that one call answers."""
        return self._groups[call]

    def call_number(self, number: int) -> int:
        """The number of the call that answers a predicate."""
        return self._calls[self[number].call]

    def intern(self, predicate: CallPredicate, operator: Operator, slot: int) -> tuple[int, bool]:
        """The number of a predicate of the clause in a slot, and whether it is new."""
        number = self._numbers.intern((predicate.key, operator))
        while len(self._predicates) <= number:
            self._predicates.append(None)
            self._users.append(set())
        fresh = self._predicates[number] is None
        if fresh:
            call = operator, operator.key(predicate.arguments)
            self._calls.intern(call)
            if call not in self._groups:
                self._groups[call] = CallGroup(operator.signature)
            self._groups[call].add(number, predicate)
            self._predicates[number] = InternedPredicate(predicate, operator, call)
        self._users[number].add(slot)
        return number, fresh

    def release(self, number: int, slot: int) -> None:
        """The clause in a slot no longer uses a predicate. Does nothing the second time."""
        users, found = self._users[number], self._predicates[number]
        users.discard(slot)
        if users or found is None:
            return
        self._predicates[number] = None
        group = self._groups.get(found.call)
        if group is not None and number in group.numbers:
            group.remove(number)
            if not len(group):
                del self._groups[found.call]
                self._calls.remove(found.call)
        self._numbers.remove((found.predicate.key, found.operator))

    def check(self, numbers: Mapping[int, Sequence[int]]) -> None:
        """Raise if these are not the numbers of the predicates of each slot."""
        users: dict[int, set[int]] = {}
        for slot, mine in numbers.items():
            for number in mine:
                users.setdefault(number, set()).add(slot)
        assert users == {number: each for number, each in enumerate(self._users) if each}
        assert sorted(self._numbers) == sorted(users)
        calls: dict[Hashable, set[int]] = {}
        for number in users:
            calls.setdefault(self[number].call, set()).add(number)
        assert {call: set(group.numbers) for call, group in self._groups.items()} == calls
        assert self._calls.numbers.keys() == calls.keys()
