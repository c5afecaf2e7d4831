"""The table of clauses beside a plain dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tamis.encode.terms import Row, Terms, from_rows
from tamis.index.clauses import MISSING, NONE, SOME, ClauseTable, holds

clauses = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.integers(0, 2),
        st.integers(-5, 5),
        st.integers(-5, 5),
        st.integers(1, 2),
    ),
    max_size=4,
).map(
    lambda given_: [
        (attribute, term, kind, low, high)
        for term, (attribute, kind, low, high, count) in enumerate(sorted(given_))
        for _ in range(count)
    ]
)
Clause = list[Row]


class ClauseMachine(RuleBasedStateMachine):
    """Adds and removes clauses in any order; the table always says what is live."""

    def __init__(self) -> None:
        super().__init__()
        self.table = ClauseTable()
        self.model: dict[int, Clause] = {}

    def put(self, slots: list[int], given_: list[Clause]) -> None:
        terms = from_rows(given_)
        self.table.add(np.array(slots, np.int64), terms.starts, terms[1:])
        self.model.update(zip(slots, given_, strict=True))

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
        slots = live[1:] if most else data.draw(st.lists(st.sampled_from(live), unique=True))
        self.table.remove(np.array(slots, np.int64))
        for slot in slots:
            del self.model[slot]

    @rule()
    def remove_all(self) -> None:
        self.table.remove(np.array(sorted(self.model), np.int64))
        self.model.clear()
        assert self.table.nbytes == ClauseTable().nbytes

    @invariant()
    def says_what_is_live(self) -> None:
        self.table.check()
        assert len(self.table) == len(self.model)
        slots = np.array(sorted(self.model), np.int64)
        assert self.table.live_slots().tolist() == slots.tolist()
        starts, rows = self.table.terms(slots)
        terms = Terms(starts, *rows)
        wanted = from_rows([self.model[slot] for slot in slots.tolist()])
        for left, right in zip(terms, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(left), np.asarray(right))

    @invariant()
    def holes_do_not_pile_up(self) -> None:
        rows = sum(map(len, self.model.values()))
        assert len(self.table._rows[0]) <= max(1024, 4 * rows) * 3 // 2 + 64


TestClauses = ClauseMachine.TestCase
TestClauses.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


def one(rows: Clause) -> ClauseTable:
    table = ClauseTable()
    terms = from_rows([rows])
    table.add(np.array([0]), terms.starts, terms[1:])
    return table


@pytest.mark.parametrize(
    ("rows", "values", "truth"),
    [
        ([], {}, True),
        ([(0, 0, SOME, 1, 3)], {0: [2]}, True),
        ([(0, 0, SOME, 1, 3)], {0: [4]}, False),
        ([(0, 0, SOME, 1, 3)], {}, False),
        ([(0, 0, SOME, 1, 1), (0, 0, SOME, 3, 3)], {0: [3]}, True),
        ([(0, 0, SOME, 1, 1), (0, 1, SOME, 3, 3)], {0: [3]}, False),
        ([(0, 0, SOME, 1, 1), (0, 1, SOME, 3, 3)], {0: [3, 1]}, True),
        ([(0, 0, NONE, 1, 1)], {0: [2]}, True),
        ([(0, 0, NONE, 1, 1)], {0: [2, 1]}, False),
        ([(0, 0, NONE, 1, 1)], {}, False),
        ([(0, 0, MISSING, 0, -1)], {}, True),
        ([(0, 0, MISSING, 0, -1)], {0: [0]}, False),
        ([(0, 0, SOME, -(2**63), 2**63 - 1)], {0: [-(2**63)]}, True),
    ],
)
def test_a_clause_holds(rows: Clause, values: dict[int, list[int]], truth: bool) -> None:
    code = np.array([c for at in sorted(values) for c in values[at]], np.int64)
    first, last = np.zeros(1, np.int64), np.zeros(1, np.int64)
    if 0 in values:
        last[0] = len(values[0])
    assert holds(one(rows).view, 0, first, last, code)[0] is truth


def test_a_slot_is_taken_once_and_emptied_once() -> None:
    table = one([(0, 0, SOME, 1, 3)])
    terms = from_rows([[(0, 0, SOME, 1, 3)]])
    with pytest.raises(ValueError, match="cannot take another"):
        table.add(np.array([0]), terms.starts, terms[1:])
    table.add(np.array([1]), terms.starts, terms[1:])
    table.remove(np.array([0]))
    with pytest.raises(ValueError, match="cannot be emptied"):
        table.remove(np.array([0]))
    table.check()


def test_terms_are_taken_in_any_order() -> None:
    terms = from_rows([[(0, 0, 0, 1, 2)], [], [(1, 0, 0, 3, 4), (2, 1, 0, 5, 6)]])
    taken = terms.take(np.array([2, 1, 0, 2]))
    assert taken.clauses == 4
    assert taken.starts.tolist() == [0, 2, 2, 3, 5]
    assert taken.low.tolist() == [3, 5, 1, 3, 5]


def test_a_packed_table_has_no_holes_left() -> None:
    table = ClauseTable()
    clause: Clause = [(0, 0, SOME, 1, 3), (1, 1, SOME, 4, 5), (2, 2, NONE, 6, 6)]
    many = from_rows([clause] * 600)
    table.add(np.arange(600), many.starts, many[1:])
    full = table.nbytes
    table.remove(np.arange(10, 600))
    assert table.nbytes < full, "packed, once most of it is holes"
    table.check()
    for slot in range(10, 40):  # one by one, which looks for holes first
        single = from_rows([clause])
        table.add(np.array([slot]), single.starts, single[1:])
        table.check()
    _, rows = table.terms(np.arange(40))
    assert rows[3].tolist() == [1, 4, 6] * 40
