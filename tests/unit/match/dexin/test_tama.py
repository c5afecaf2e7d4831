"""TAMA: what the approximate form gives, and how much it counts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tamis import Engine, workload
from tamis.encode.clause import SOME
from tamis.match.registry import create, entry
from tamis.testing.matcher_checks import add, answers
from tests.loaded import loaded

N, EVENTS = 4000, 40


def _dexin(matcher: str, width: float = 0.5, **options: Any) -> tuple[Engine, list[set[int]]]:
    made = workload.make("dexin", N, seed=3, theta=width)
    engine = loaded(made, matcher, **options)
    return engine, [set(ids) for ids in engine.match_batch(made.events(EVENTS))]


def test_the_approximate_form_misses_nothing_and_gives_less_too_many_with_more_levels() -> None:
    right = _dexin("naive")[1]
    excess = []
    for levels in (1, 3, 5, 8, 13):
        found = _dexin("tama", levels=levels)[1]
        assert all(a <= b for a, b in zip(right, found, strict=True)), "no false negatives"
        excess.append(sum(len(b - a) for a, b in zip(right, found, strict=True)))
    assert all(fewer < more for more, fewer in pairwise(excess[:4]))
    assert excess[0] == EVENTS * N - sum(map(len, right)), "one cell keeps nothing apart"
    assert excess[-1] <= sum(map(len, right)) // 10


def test_the_exact_form_verifies_only_what_matches_by_count() -> None:
    right = _dexin("naive")[1]
    engine, found = _dexin("tama", levels=5, exact=True)
    assert found == right
    excess = sum(map(len, _dexin("tama", levels=5)[1]))
    assert 0 < engine.matcher.tally.predicates <= 10 * excess


def test_attributes_with_few_ends_are_exact_without_verifying() -> None:
    tama = create("tama", levels=13)
    clauses = {slot: [(0, 0, SOME, slot % 50, slot % 50 + slot % 7)] for slot in range(500)}
    add(tama, clauses)
    found = answers(tama, [{0: [value]} for value in range(60)])
    for value, slots in enumerate(found):
        assert slots == {slot for slot, [row] in clauses.items() if row[3] <= value <= row[4]}


@pytest.mark.parametrize(("width", "least", "most"), [(0.1, 0.7, 1.2), (0.9, 7.5, 8.6)])
def test_it_counts_a_clause_for_each_attribute_that_agrees(
    width: float, least: float, most: float
) -> None:
    """DEXIN figure 6 in operations: increments, in units of N, grow with the width of ranges."""
    engine, _ = _dexin("tama", width)
    assert least < engine.matcher.tally.subscriptions / EVENTS / N < most


def test_a_value_meets_at_most_one_cell_a_level_and_one_more() -> None:
    engine, _ = _dexin("tama", levels=6)
    assert engine.matcher.tally.nodes <= EVENTS * 10 * (6 + 1)


def test_the_registry_says_that_it_is_approximate() -> None:
    assert not entry("tama").exact
    assert all(trial.get("exact") for trial in entry("tama").trials), "only that form can be tested"
