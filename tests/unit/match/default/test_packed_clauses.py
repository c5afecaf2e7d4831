"""The packed table of clauses beside a plain dict, and beside the table that it replaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numpy.typing import NDArray

from tamis.encode.terms import Row, from_rows
from tamis.errors import SavedIndexError
from tamis.index.clauses import MISSING, NONE, SOME, ClauseTable
from tamis.index.kernel import kernel
from tamis.match.default.structure.packed_clauses import PackedTable, packed_holds
from tamis.testing.matcher_checks import PlainEvent, clause_holds

Clause = list[Row]
Int64s = NDArray[np.int64]
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


def _ints(values: Any) -> Int64s:
    return np.array(list(values), np.int64)


class PackedMachine(RuleBasedStateMachine):
    """Adds and removes clauses in any order; both tables say the same of what is live."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.plain = PackedTable(), ClauseTable()
        self.model: dict[int, Clause] = {}

    def put(self, slots: list[int], given_: list[Clause]) -> None:
        terms = from_rows(given_)
        for table in (self.table, self.plain):
            table.add(_ints(slots), terms.starts, terms[1:])
        self.model.update(zip(slots, given_, strict=True))

    def take(self, slots: list[int]) -> None:
        for table in (self.table, self.plain):
            table.remove(_ints(slots))
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
        self.put([base + i for i in range(60)], [clause] * 60)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), most=st.booleans())
    def remove(self, data: st.DataObject, most: bool) -> None:
        live = sorted(self.model)
        some = st.lists(st.sampled_from(live), unique=True)
        self.take(live[1:] if most else data.draw(some))

    @rule()
    def remove_all(self) -> None:
        self.take(sorted(self.model))
        assert self.table.nbytes == PackedTable().nbytes

    @precondition(lambda self: self.model)
    @rule(slot=st.integers(0, 50))
    def refuse(self, slot: int) -> None:
        terms = from_rows([[]])
        if slot in self.model:
            with pytest.raises(ValueError, match="cannot take another"):
                self.table.add(_ints([slot]), terms.starts, terms[1:])
        else:
            with pytest.raises(ValueError, match="cannot be emptied"):
                self.table.remove(_ints([min(self.model), slot]))

    @rule()
    def save_and_restore(self) -> None:
        arrays = {name: array.copy() for name, array in self.table.arrays().items()}
        self.table = PackedTable()
        self.table.restore(arrays)

    @invariant()
    def says_what_is_live(self) -> None:
        self.table.check()
        assert len(self.table) == len(self.model)
        slots = sorted(self.model)
        assert self.table.live_slots().tolist() == slots
        starts, rows = self.table.terms(_ints(slots[::-1]))
        wanted = from_rows([self.model[slot] for slot in slots[::-1]])
        columns: list[NDArray[Any]] = [starts, *rows]
        whole: list[Any] = list(wanted)
        for left, right in zip(columns, whole, strict=True):
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

    @invariant()
    def holes_do_not_pile_up(self) -> None:
        rows = sum(map(len, self.model.values()))
        used = self.table.arrays()["rows"].nbytes // 24
        assert used <= max(1024, 4 * rows), "blocks of removed clauses are used again, or packed"


TestPacked = PackedMachine.TestCase
TestPacked.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


def filled(*given_: Clause) -> PackedTable:
    table = PackedTable()
    terms = from_rows(given_)
    table.add(np.arange(len(given_)), terms.starts, terms[1:])
    return table


def add_one(table: PackedTable, slot: int, clause: Clause) -> None:
    terms = from_rows([clause])
    table.add(_ints([slot]), terms.starts, terms[1:])


@kernel
def _holds(
    where: Int64s, rows: Int64s, slot: int, span: NDArray[np.int32], code: Int64s
) -> bool:  # fmt: skip
    return packed_holds(where, rows, slot, span, code)


def holds(table: PackedTable, event: PlainEvent, slot: int = 0) -> bool:
    code = _ints(value for at in sorted(event) for value in event[at])
    span = np.zeros(2 * 10, np.int32)
    begin = 0
    for at in sorted(event):
        span[2 * at : 2 * at + 2] = begin, begin + len(event[at])
        begin += len(event[at])
    return _holds(*table.view, slot, span, code)


@pytest.mark.parametrize(
    ("rows", "event"),
    [
        ([], {}),
        ([(0, 0, SOME, 1, 3)], {0: [3]}),
        ([(0, 0, SOME, 1, 3)], {0: [4]}),
        ([(0, 0, SOME, 1, 3)], {}),
        ([(0, 0, SOME, 1, 3)], {1: [2]}),
        ([(0, 0, SOME, 1, 1), (0, 0, SOME, 3, 3)], {0: [3]}),
        ([(0, 0, SOME, 1, 1), (0, 1, SOME, 3, 3)], {0: [3]}),
        ([(0, 0, SOME, 1, 1), (0, 1, SOME, 3, 3)], {0: [3, 1]}),
        ([(0, 0, SOME, 1, 9), (0, 1, NONE, 3, 3)], {0: [1, 4]}),
        ([(0, 0, SOME, 1, 9), (0, 1, NONE, 3, 3)], {0: [1, 3]}),
        ([(0, 0, NONE, 1, 1)], {0: [2]}),
        ([(0, 0, NONE, 1, 1)], {0: [2, 1]}),
        ([(0, 0, NONE, 1, 1)], {}),
        ([(0, 0, MISSING, 0, -1)], {}),
        ([(0, 0, MISSING, 0, -1)], {0: [0]}),
        ([(3, 0, SOME, LOWEST, HIGHEST), (4, 1, MISSING, 0, -1)], {3: [LOWEST]}),
        ([(3, 0, SOME, LOWEST, LOWEST)], {3: [HIGHEST]}),
        ([(9, term, SOME, -term, term) for term in range(70)], {9: [0]}),
        ([(9, term, SOME, 0, 70 - term) for term in range(70)], {9: [2]}),
        ([(9, 0, SOME, 2 * i, 2 * i) for i in range(100)], {9: [198]}),
        ([(9, 0, SOME, 2 * i, 2 * i) for i in range(100)], {9: [199]}),
    ],
)
def test_a_clause_holds(rows: Clause, event: PlainEvent) -> None:
    assert holds(filled(rows), event) is clause_holds(rows, event)


def test_a_block_is_used_again_by_one_of_its_size() -> None:
    three: Clause = [(0, 0, SOME, 1, 3), (1, 1, SOME, 4, 5), (2, 2, NONE, 6, 6)]
    table = filled(*[three] * 20, *[three[:2]] * 20)
    full = len(table.arrays()["rows"])
    for _ in range(3):
        table.remove(np.arange(5, 30))
        for slot in range(5, 30):
            add_one(table, slot, three if slot < 20 else three[:2])
        assert len(table.arrays()["rows"]) == full
        table.check()


def test_long_clauses_are_packed_away() -> None:
    """Blocks of 64 rows and more are not kept for others, but do not stay for ever either."""
    clause: Clause = [(0, 0, SOME, i, i) for i in range(100)]
    table = filled([(1, 0, SOME, 0, 0)])
    for turn in range(1, 200):
        add_one(table, turn, clause)
        if turn > 1:
            table.remove(_ints([turn - 1]))
        table.check()
        assert len(table.arrays()["rows"]) // 3 <= 1200
    assert holds(table, {0: [99]}, 199)
    assert not holds(table, {0: [100]}, 199)


def test_packing_forgets_no_attribute() -> None:
    """What was built for the wider table still stands, and asks about its attributes."""
    long: Clause = [(8, term, SOME, 0, term) for term in range(10)]
    table, plain = PackedTable(), ClauseTable()
    for each in (table, plain):
        terms = from_rows([[(2, 0, SOME, 1, 1)]] * 300 + [long] * 300)
        each.add(np.arange(600), terms.starts, terms[1:])
        each.remove(np.arange(300, 600))
    assert len(table.arrays()["rows"]) == 3 * 300, "packed"
    assert plain.width == 9
    assert table.width == 9


def test_a_table_that_does_not_fit_together_is_refused() -> None:
    arrays = filled([(0, 0, SOME, 1, 3)]).arrays()
    for wrong in (
        {"rows": arrays["rows"][:-1]},
        {"free": arrays["free"][:-1]},
        {"where": arrays["where"].astype(np.int32)},
    ):
        with pytest.raises(SavedIndexError, match="table of clauses is inconsistent"):
            PackedTable().restore(arrays | wrong)


def test_terms_and_attributes_of_any_number() -> None:
    clause: Clause = [(2**31 - 2, 0, NONE, LOWEST, 5), (2**31 - 1, 32_767, MISSING, 0, -1)]
    table = filled(clause)
    starts, rows = table.terms(_ints([0]))
    assert starts.tolist() == [0, 2]
    assert list(zip(*(column.tolist() for column in rows), strict=True)) == clause
    assert table.width == 2**31
    assert table.mentioning(2**31 - 1).tolist() == [0]
