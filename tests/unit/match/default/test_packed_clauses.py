"""The packed table of clauses beside a plain dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import invariant
from numpy.typing import NDArray

from tamis.encode.terms import from_rows
from tamis.errors import SavedIndexError
from tamis.index.clauses import MISSING, NONE, SOME
from tamis.index.kernel import kernel
from tamis.match.default.structure.packed_clauses import PackedTable, packed_holds
from tamis.testing.matcher_checks import PlainEvent, clause_holds
from tests.unit.index.clause_machine import HOLDS, LOWEST, Clause, ClauseMachine, ints, spans

Int64s = NDArray[np.int64]


class PackedMachine(ClauseMachine):
    make = PackedTable

    @invariant()
    def holes_do_not_pile_up(self) -> None:
        rows = sum(map(len, self.model.values()))
        used = self.table.arrays()["rows"].nbytes // 24
        assert used <= max(1024, 4 * rows), "blocks of removed clauses are used again, or packed"


TestPacked = PackedMachine.TestCase
TestPacked.settings = settings(max_examples=25, stateful_step_count=20)


def filled(*given_: Clause) -> PackedTable:
    table = PackedTable()
    terms = from_rows(given_)
    table.add(np.arange(len(given_)), terms.starts, terms[1:])
    return table


def add_one(table: PackedTable, slot: int, clause: Clause) -> None:
    terms = from_rows([clause])
    table.add(ints([slot]), terms.starts, terms[1:])


@kernel
def _holds(
    where: Int64s, rows: Int64s, slot: int, span: NDArray[np.int32], code: Int64s
) -> bool:  # fmt: skip
    return packed_holds(where, rows, slot, span, code)


def holds(table: PackedTable, event: PlainEvent, slot: int = 0) -> bool:
    span, code = spans(event)
    return _holds(*table.view, slot, span.ravel().astype(np.int32), code)


@pytest.mark.parametrize(("rows", "event", "truth"), HOLDS)
def test_a_clause_holds(rows: Clause, event: PlainEvent, truth: bool) -> None:
    assert holds(filled(rows), event) is clause_holds(rows, event) is truth


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
            table.remove(ints([turn - 1]))
        table.check()
        assert len(table.arrays()["rows"]) // 3 <= 1200
    assert holds(table, {0: [99]}, 199)
    assert not holds(table, {0: [100]}, 199)


def test_packing_forgets_no_attribute() -> None:
    """What was built for the wider table still stands, and asks about its attributes."""
    long: Clause = [(8, term, SOME, 0, term) for term in range(10)]
    table = filled(*[[(2, 0, SOME, 1, 1)]] * 300, *[long] * 300)
    table.remove(np.arange(300, 600))
    assert len(table.arrays()["rows"]) == 3 * 300, "packed"
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
    starts, rows = table.terms(ints([0]))
    assert starts.tolist() == [0, 2]
    assert list(zip(*(column.tolist() for column in rows), strict=True)) == clause
    assert table.width == 2**31
    assert table.mentioning(2**31 - 1).tolist() == [0]
