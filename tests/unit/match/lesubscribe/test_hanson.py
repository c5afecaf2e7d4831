"""What the conformance suite cannot see of `hanson`: which predicates it looks up."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tamis.match.lesubscribe.hanson import Hanson
from tamis.match.registry import create
from tamis.testing.matcher_checks import (
    add,
    answers,
    clause_holds,
    random_clause,
    random_event,
    remove,
)
from tamis.workload import make
from tests.loaded import loaded


def _candidates(n: int, **options: Any) -> int:
    workload = make("lesubscribe", n, seed=1)
    engine = loaded(workload, "hanson", **options)
    engine.match_batch(workload.events(50))
    return engine.matcher.tally.subscriptions


def test_the_selective_predicate_leaves_few_candidates() -> None:
    assert _candidates(4000) * 3 < _candidates(4000, access="first") * 2


def test_selectivity_can_be_given() -> None:
    def rarely_below_zero(attribute: Any, low: Any, high: Any) -> Any:
        return np.where(high < 0, 0.0, 1.0)

    matcher = create("hanson", access=rarely_below_zero)
    add(matcher, {0: [(0, 0, 0, 5, 5), (1, 1, 0, -9, -1)], 1: [(0, 0, 0, -2, -2), (1, 1, 0, 0, 9)]})
    assert answers(matcher, [{0: [5], 1: [1]}, {0: [5], 1: [-1]}]) == [set(), {0}]
    assert matcher.tally.subscriptions == 1, "value 5 is looked up and leads nowhere"


def test_the_access_predicate_is_not_tested_again() -> None:
    matcher = create("hanson")
    add(matcher, {slot: [(0, 0, 0, slot, slot), (1, 1, 0, 0, 9)] for slot in range(20)})
    assert answers(matcher, [{0: [7], 1: [3]}]) == [{7}]
    assert (matcher.tally.subscriptions, matcher.tally.predicates) == (1, 1)


def test_clauses_added_and_removed_one_by_one_stay_where_they_belong() -> None:
    chance = random.Random(5)
    matcher = Hanson()
    clauses = {slot: random_clause(chance) for slot in range(200)}
    add(matcher, clauses)
    for step in range(150):
        slot = chance.choice(sorted(clauses))
        remove(matcher, [slot])
        clauses[slot] = random_clause(chance)
        add(matcher, {slot: clauses[slot]})
        if step % 10 == 0:
            matcher.check()
            event = random_event(chance)
            expected = {slot for slot, rows in clauses.items() if clause_holds(rows, event)}
            assert answers(matcher, [event]) == [expected]
