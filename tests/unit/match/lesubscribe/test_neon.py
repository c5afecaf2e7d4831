"""Neon evaluates every predicate of the operations that an event touches, as its text says."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.encode.clause import SOME
from tamis.match.lesubscribe.neon import Neon
from tamis.testing.matcher_checks import add, answers, remove

_LOW, _HIGH = -(2**63), 2**63 - 1


def _filled(matcher: Neon, clauses: int = 100) -> Neon:
    """Clauses `a0 = slot mod 10 and a1 <= slot`, and one on an attribute that no event binds."""
    add(
        matcher,
        {
            slot: [(0, 0, SOME, slot % 10, slot % 10), (1, 1, SOME, _LOW, slot)]
            for slot in range(clauses)
        },
    )
    add(matcher, {clauses: [(7, 0, SOME, 1, 2)]})
    return matcher


def test_all_predicates_on_bound_attributes_are_evaluated_and_no_others() -> None:
    matcher = _filled(Neon())
    assert answers(matcher, [{0: [3], 1: [50]}]) == [{53, 63, 73, 83, 93}]
    assert matcher.operations == 4  # a range has two ends
    assert matcher.tally.nodes == 2
    assert matcher.tally.predicates == 200
    assert matcher.tally.subscriptions == 10 + 50


def test_the_value_index_evaluates_only_equalities_with_the_value() -> None:
    matcher = _filled(Neon(value_index=True))
    assert answers(matcher, [{0: [3], 1: [50]}]) == [{53, 63, 73, 83, 93}]
    assert matcher.operations == 4
    assert matcher.tally.predicates == 10 + 100
    matcher.tally.reset()
    assert answers(matcher, [{0: [3, 4, 3]}]) == [set()]
    assert matcher.tally.predicates == 20, "a value that stands twice is looked up once"


@pytest.mark.parametrize("value_index", [False, True])
@pytest.mark.parametrize("at_once", [1, 7, 40])
def test_operations_go_with_their_last_predicate(value_index: bool, at_once: int) -> None:
    matcher = _filled(Neon(value_index=value_index))
    order = np.random.default_rng(1).permutation(100).tolist()
    for start in range(0, 100, at_once):
        remove(matcher, order[start : start + at_once])
        matcher.check()
    assert matcher.operations == 2
    assert answers(matcher, [{0: [3], 1: [50], 7: [2]}]) == [{100}]


@pytest.mark.parametrize("value_index", [False, True])
def test_an_event_type_is_part_of_an_operation(value_index: bool) -> None:
    matcher = Neon(event_type=0, value_index=value_index)
    add(
        matcher,
        {
            slot: [(0, 0, SOME, slot % 4, slot % 4), (1, 1, SOME, _LOW, slot), (2, 2, SOME, 5, 5)]
            for slot in range(100)
        },
    )
    add(matcher, {100: [(1, 0, SOME, 3, 3)], 101: [(0, 0, SOME, 2, 2)]})  # any type; only a type
    matcher.check()
    assert matcher.operations == 4 * 2 + 2
    right = {slot for slot in range(50, 100) if slot % 4 == 2} | {101}
    assert answers(matcher, [{0: [2], 1: [50], 2: [5]}, {1: [3], 2: [5]}]) == [right, {100}]
    matcher.tally.reset()
    both = {slot for slot in range(96, 100) if slot % 4 in (2, 3)} | {101}
    assert answers(matcher, [{0: [2, 3, 2], 1: [96], 2: [5]}]) == [both]
    assert value_index or matcher.tally.predicates == 2 * 50 + 1 + 1, "those of two types of four"
    remove(matcher, list(range(2, 102)))
    matcher.check()
    assert matcher.operations == 4
