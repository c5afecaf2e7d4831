"""OpIndex: what lies under which pivot, and what an event compares."""

from __future__ import annotations

import pytest

from tamis import workload
from tamis.encode.clause import SOME
from tamis.encode.terms import Row
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.match.dexin.opindex import OpIndex
from tamis.match.registry import create
from tamis.testing.matcher_checks import add, answers, remove
from tests.loaded import loaded


def _opindex(clauses: dict[int, list[Row]], **options: object) -> OpIndex:
    made = create("opindex", **options)
    assert isinstance(made, OpIndex)
    add(made, clauses)
    return made


def _clauses() -> dict[int, list[Row]]:
    """Attribute 0 is in all clauses, attribute 10 + k in a few of them."""
    return {
        slot: [(0, 0, SOME, slot, HIGHEST), (10 + slot % 20, 1, SOME, slot, slot)]
        for slot in range(200)
    }


def test_an_event_compares_only_predicates_under_its_pivots() -> None:
    matcher = _opindex(_clauses())
    assert all(matcher._pivot[slot] == 10 + slot % 20 for slot in range(200)), "the rarest one"
    assert answers(matcher, [{0: [500]}]) == [set()]
    assert matcher.tally.predicates == 0, "attribute 0 is not a pivot"
    assert answers(matcher, [{0: [500], 13: [43]}]) == [{43}]
    assert matcher.tally.predicates == 10 + 1, "ten ranges on 0 under pivot 13, one equality"


def test_every_predicate_is_compared_where_all_clauses_have_the_same_attributes() -> None:
    made = workload.make("dexin", 2000, seed=2)
    engine = loaded(made, "opindex")
    engine.match_batch(made.events(10))
    ranges = engine.matcher.terms(engine.matcher.clauses.live_slots())
    two_sided = int((ranges.low < ranges.high).sum())
    assert 0 <= engine.matcher.tally.predicates - 10 * 2 * two_sided < 10 * 50


@pytest.mark.parametrize("options", [{}, {"segments": 1, "signature": 1}])
def test_signatures_change_the_work_and_not_the_answer(options: dict[str, int]) -> None:
    matcher = _opindex(_clauses(), **options)
    event = {0: [150], **{10 + k: [100 + k] for k in range(20)}}
    assert answers(matcher, [event])[0] == set(range(100, 120))


def test_a_predicate_that_two_values_satisfy_counts_once() -> None:
    rows: dict[int, list[Row]] = {
        0: [(0, 0, SOME, LOWEST, 9), (1, 1, SOME, 3, 3)],
        1: [(0, 0, SOME, LOWEST, 4), (0, 0, SOME, 6, HIGHEST), (1, 1, SOME, 4, 4)],
    }
    matcher = _opindex(rows)
    assert answers(matcher, [{0: [5, 8], 1: [7]}, {0: [5, 5], 1: [3, 3, 4]}]) == [set(), {0}]


def test_pivots_drift_and_removal_still_finds_them() -> None:
    clauses = _clauses()
    matcher = _opindex({})
    for slot, rows in clauses.items():
        add(matcher, {slot: rows})
    add(matcher, {1000 + k: [(11, 0, SOME, k, k)] for k in range(150)})
    matcher.check()
    remove(matcher, list(clauses))
    matcher.check()
    assert answers(matcher, [{0: [500], 11: [11]}]) == [{1011}]
