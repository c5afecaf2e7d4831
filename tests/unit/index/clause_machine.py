"""Tables of clauses beside a plain dict, and events for which clauses hold or do not."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numpy.typing import NDArray

from tamis.encode.terms import Row, from_rows
from tamis.index.clauses import MISSING, NONE, SOME
from tamis.testing.matcher_checks import PlainEvent

Clause = list[Row]
LOWEST, HIGHEST = -(2**63), 2**63 - 1
ends = st.one_of(st.integers(-5, 5), st.sampled_from([LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST]))
clauses = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.sampled_from([SOME, NONE, MISSING]),
        ends,
        ends,
        st.sampled_from([1, 1, 2, 5, 40]),  # rows of a term
    ),
    max_size=4,
).map(
    lambda given_: [
        (attribute, term, kind, low, high)
        for term, (attribute, kind, low, high, count) in enumerate(sorted(given_))
        for _ in range(count)
    ]
)


def ints(values: Any) -> NDArray[np.int64]:
    """An array of whole numbers."""
    return np.array(list(values), np.int64)


class ClauseMachine(RuleBasedStateMachine):
    """Adds and removes clauses in any order; the table always says what is live."""

    make: ClassVar[Any]

    def __init__(self) -> None:
        super().__init__()
        self.table = self.make()
        self.model: dict[int, Clause] = {}

    def put(self, slots: list[int], given_: list[Clause]) -> None:
        terms = from_rows(given_)
        self.table.add(ints(slots), terms.starts, terms[1:])
        self.model.update(zip(slots, given_, strict=True))

    def take(self, slots: list[int]) -> None:
        self.table.remove(ints(slots))
        for slot in slots:
            del self.model[slot]

    @rule(given_=st.lists(clauses, max_size=5), data=st.data())
    def add(self, given_: list[Clause], data: st.DataObject) -> None:
        free = [slot for slot in range(40) if slot not in self.model]
        slots = data.draw(st.permutations(free))[: len(given_)]
        self.put(slots, given_[: len(slots)])

    @rule(clause=clauses)
    def add_many(self, clause: Clause) -> None:
        base = max(self.model, default=0) + 1
        self.put([base + i for i in range(100)], [clause] * 100)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), most=st.booleans())
    def remove(self, data: st.DataObject, most: bool) -> None:
        live = sorted(self.model)
        some = st.lists(st.sampled_from(live), unique=True)
        self.take(live[1:] if most else data.draw(some))

    @rule()
    def remove_all(self) -> None:
        self.take(sorted(self.model))
        assert self.table.nbytes == self.make().nbytes

    @precondition(lambda self: self.model)
    @rule(slot=st.integers(0, 50))
    def refuse(self, slot: int) -> None:
        terms = from_rows([[]])
        if slot in self.model:
            with pytest.raises(ValueError, match="cannot take another"):
                self.table.add(ints([slot]), terms.starts, terms[1:])
        else:
            with pytest.raises(ValueError, match="cannot be emptied"):
                self.table.remove(ints([min(self.model), slot]))

    @rule()
    def save_and_restore(self) -> None:
        arrays = {name: array.copy() for name, array in self.table.arrays().items()}
        self.table = self.make()
        self.table.restore(arrays)

    @invariant()
    def says_what_is_live(self) -> None:
        self.table.check()
        assert len(self.table) == len(self.model)
        slots = sorted(self.model)
        assert self.table.live_slots().tolist() == slots
        starts, rows = self.table.terms(ints(slots[::-1]))
        wanted: tuple[Any, ...] = from_rows([self.model[slot] for slot in slots[::-1]])
        for left, right in zip((starts, *rows), wanted, strict=True):
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype

    @invariant()
    def finds_who_mentions_an_attribute(self) -> None:
        for attribute in range(8):
            right = [slot for slot, rows in self.model.items() if attribute in {r[0] for r in rows}]
            assert self.table.mentioning(attribute).tolist() == sorted(right)

    @invariant()
    def is_wide_enough(self) -> None:
        assert self.table.slots >= max(self.model, default=-1) + 1
        attributes = [row[0] for rows in self.model.values() for row in rows]
        assert self.table.width >= max(attributes, default=-1) + 1


HOLDS: list[tuple[Clause, PlainEvent, bool]] = [
    ([], {}, True),
    ([(0, 0, SOME, 1, 3)], {0: [2]}, True),
    ([(0, 0, SOME, 1, 3)], {0: [3]}, True),
    ([(0, 0, SOME, 1, 3)], {0: [4]}, False),
    ([(0, 0, SOME, 1, 3)], {}, False),
    ([(0, 0, SOME, 1, 3)], {1: [2]}, False),
    ([(0, 0, SOME, 1, 1), (0, 0, SOME, 3, 3)], {0: [3]}, True),
    ([(0, 0, SOME, 1, 1), (0, 1, SOME, 3, 3)], {0: [3]}, False),
    ([(0, 0, SOME, 1, 1), (0, 1, SOME, 3, 3)], {0: [3, 1]}, True),
    ([(0, 0, SOME, 1, 9), (0, 1, NONE, 3, 3)], {0: [1, 4]}, True),
    ([(0, 0, SOME, 1, 9), (0, 1, NONE, 3, 3)], {0: [1, 3]}, False),
    ([(0, 0, NONE, 1, 1)], {0: [2]}, True),
    ([(0, 0, NONE, 1, 1)], {0: [2, 1]}, False),
    ([(0, 0, NONE, 1, 1)], {}, False),
    ([(0, 0, MISSING, 0, -1)], {}, True),
    ([(0, 0, MISSING, 0, -1)], {0: [0]}, False),
    ([(3, 0, SOME, LOWEST, HIGHEST), (4, 1, MISSING, 0, -1)], {3: [LOWEST]}, True),
    ([(3, 0, SOME, LOWEST, LOWEST)], {3: [HIGHEST]}, False),
    ([(9, term, SOME, -term, term) for term in range(70)], {9: [0]}, True),
    ([(9, term, SOME, 0, 70 - term) for term in range(70)], {9: [2]}, False),
    ([(9, 0, SOME, 2 * i, 2 * i) for i in range(100)], {9: [198]}, True),
    ([(9, 0, SOME, 2 * i, 2 * i) for i in range(100)], {9: [199]}, False),
]


def spans(event: PlainEvent) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the values of ten attributes begin and end, and the values of all."""
    span = np.zeros((10, 2), np.int64)
    begin = 0
    for at in sorted(event):
        span[at] = begin, begin + len(event[at])
        begin += len(event[at])
    return span, ints(value for at in sorted(event) for value in event[at])
