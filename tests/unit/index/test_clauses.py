"""The table of clauses beside a plain dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import invariant

from tamis.encode.terms import from_rows
from tamis.index.clauses import NONE, SOME, ClauseTable, holds
from tamis.testing.matcher_checks import PlainEvent
from tests.unit.index.clause_machine import HOLDS, Clause, ClauseMachine, spans


class PlainMachine(ClauseMachine):
    make = ClauseTable

    @invariant()
    def holes_do_not_pile_up(self) -> None:
        rows = sum(map(len, self.model.values()))
        assert len(self.table._rows[0]) <= max(1024, 4 * rows) * 3 // 2 + 64


TestClauses = PlainMachine.TestCase
TestClauses.settings = settings(max_examples=40, stateful_step_count=20)


@pytest.mark.parametrize(("rows", "event", "truth"), HOLDS)
def test_a_clause_holds(rows: Clause, event: PlainEvent, truth: bool) -> None:
    table = ClauseTable()
    terms = from_rows([rows])
    table.add(np.array([0]), terms.starts, terms[1:])
    span, code = spans(event)
    assert holds(table.view, 0, span[:, 0].copy(), span[:, 1].copy(), code)[0] is truth


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
