"""TOPSS's counting matchers: what they count, what they cannot, and what they refuse."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tamis import Engine, Schema, workload
from tamis.encode.clause import SOME
from tamis.encode.terms import Row
from tamis.errors import MatcherError
from tamis.match.registry import create
from tamis.match.topss.counting import CountingMatcher
from tamis.testing.matcher_checks import add, answers, remove
from tests.loaded import loaded

ALL = ("counting-byte", "counting-bit", "counting-list")
MATRICES = ALL[:2]


def _w4(matcher: str, n: int) -> tuple[Engine, Any]:
    made = workload.make("topss", n, seed=3, setting="W4")
    engine = loaded(made, matcher)
    return engine, engine.encode(made.events(40))


# Bytes of a matrix: the paper's 248 MB for 5 million subscriptions are 400 bits for each.
MATRIX_BYTES = {"counting-byte": 400 * 20_000, "counting-bit": 400 * 20_000 / 8}


@pytest.mark.parametrize("matcher", ALL)
def test_w4_has_400_predicates_of_which_an_event_satisfies_190(matcher: str) -> None:
    """10 attributes × (9 of the 10 `!=`, 1 `=`, and on average 4.5 each of `<` and `>`)."""
    engine, events = _w4(matcher, 20_000)
    assert isinstance(engine.matcher, CountingMatcher)
    counting: Any = engine.matcher
    assert len(counting._vector) == 400
    matches = counting.match(events)
    assert counting.tally.predicates / 40 == pytest.approx(190)
    assert matches.total / 40 == pytest.approx(0.176 * 20_000, rel=0.05)
    if matcher in MATRICES:
        assert counting._matrix.nbytes == pytest.approx(MATRIX_BYTES[matcher], rel=0.01)
    else:  # one counter and a half is raised for each subscription
        assert counting.tally.subscriptions / 40 == pytest.approx(1.43 * 20_000, rel=0.03)


def test_matrices_look_at_every_subscription_for_each_satisfied_predicate() -> None:
    for matcher in MATRICES:
        engine, events = _w4(matcher, 5000)
        engine.matcher.match(events)
        assert engine.matcher.tally.subscriptions / 40 == pytest.approx(190 * 5000)


@pytest.mark.parametrize("matcher", ALL)
def test_a_clause_with_more_predicates_than_a_byte_counts(matcher: str) -> None:
    for many in (255, 256, 300):
        counting = create(matcher)
        add(counting, {0: [(a, a, SOME, 1, 1) for a in range(many)], 1: [(0, 0, SOME, 1, 1)]})
        all_ones = {a: [1] for a in range(many)}
        assert answers(counting, [all_ones, {**all_ones, many - 1: [2]}]) == [{0, 1}, {1}]
        counting.check()
        remove(counting, [0])
        counting.check()
        assert answers(counting, [all_ones]) == [{1}]


@pytest.mark.parametrize("matcher", ALL)
def test_a_predicate_that_a_clause_has_twice_counts_once(matcher: str) -> None:
    counting = create(matcher)
    rows: list[Row] = [(0, 0, SOME, 3, 9), (0, 1, SOME, 3, 7), (0, 2, SOME, 3, 9)]
    add(counting, {5: rows})
    assert answers(counting, [{0: [5]}, {0: [8]}, {0: [8, 4]}, {0: [2, 10]}]) == [
        {5},
        set(),
        {5},
        set(),
    ]
    counting.check()


@pytest.mark.parametrize("matcher", MATRICES)
def test_a_matrix_that_would_be_too_large_is_refused_and_nothing_changes(matcher: str) -> None:
    counting = create(matcher, max_bytes=40_000)
    small: dict[int, list[Row]] = {slot: [(0, 0, SOME, slot, slot)] for slot in range(100)}
    large: dict[int, list[Row]] = {slot: [(0, 0, SOME, slot, slot)] for slot in range(100, 3000)}
    add(counting, small)
    before = counting.nbytes
    with pytest.raises(MatcherError, match=r"3,000 × 3,000 take 0.0\d GiB.*raise max_bytes"):
        add(counting, large)
    counting.check()
    assert len(counting) == 100
    assert answers(counting, [{0: [7]}, {0: [700]}]) == [{7}, set()]
    assert counting.nbytes < before + 100_000  # the table of clauses may keep what it reserved
    add(counting, {100: [(0, 0, SOME, 7, 7)]})
    assert answers(counting, [{0: [7]}]) == [{7, 100}]


def test_a_refusal_says_what_to_take_instead() -> None:
    made = workload.make("topss", 2000, setting="W1")
    engine = Engine(Schema.from_dict(made.schema), "counting-byte", max_bytes=1_000_000)
    with pytest.raises(MatcherError, match="counting-list"):
        engine.subscribe_table(made.subscriptions)
    assert len(engine) == 0


def test_lists_that_grow_by_a_constant_are_moved_more_often() -> None:
    """What makes the paper's list-based loading quadratic."""
    moves = {}
    for grow in ("double", "constant"):
        counting = create("counting-list", grow=grow)
        seen, before = 0, -1
        for slot in range(1500):
            add(counting, {slot: [(0, 0, SOME, 1, 1)]})
            capacity = int(counting._postings._capacity[0])  # type: ignore[attr-defined]
            seen, before = seen + (capacity != before), capacity
        moves[grow] = seen
    assert moves["double"] == 12
    assert moves["constant"] == 24


def test_many_vectors_are_made_a_few_events_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, events = _w4("counting-list", 500)
    whole = engine.matcher.match(events)
    monkeypatch.setattr("tamis.match.topss.counting._VECTORS", 3 * 8 * 7)
    parts = engine.matcher.match(events)
    assert np.array_equal(whole.starts, parts.starts)
    assert np.array_equal(whole.slots, parts.slots)


@pytest.mark.parametrize(
    ("matcher", "options"),
    [(matcher, {}) for matcher in ALL] + [("counting-bit", {"counters": "bytes"})],
)
def test_the_two_stages_apart_are_what_a_match_does(matcher: str, options: dict[str, str]) -> None:
    made = workload.make("topss", 3000, seed=3, setting="W4")
    engine = loaded(made, create(matcher, **options))
    events = engine.encode(made.events(40))
    counting = engine.matcher
    assert isinstance(counting, CountingMatcher)
    whole = counting.match(events)
    tally = dataclasses.replace(counting.tally)
    counting.tally.reset()
    bits = counting.evaluate_predicates(events)
    assert np.bitwise_count(bits).sum() == counting.tally.predicates == tally.predicates
    assert counting.tally.subscriptions == 0
    counted = counting.count_predicates(bits)
    assert [sorted(each) for each in counted] == [sorted(each) for each in whole]
    assert counting.tally.subscriptions == tally.subscriptions
    assert counting.tally.nodes == tally.nodes


def test_byte_counters_are_raised_once_for_each_association_and_keep_no_planes() -> None:
    made = workload.make("topss", 20_000, seed=3, setting="W4")
    planes, bytes_ = (create("counting-bit", counters=each) for each in ("planes", "bytes"))
    matches = []
    for counting in (planes, bytes_):
        engine = loaded(made, counting)
        matches.append(engine.match_batch(made.events(40)).total)
    assert matches[0] == matches[1]
    assert bytes_.tally.subscriptions / 40 == pytest.approx(1.43 * 20_000, rel=0.03)
    assert isinstance(planes, CountingMatcher)
    assert isinstance(bytes_, CountingMatcher)
    assert planes.part_sizes.counting - bytes_.part_sizes.counting == 20_000 - 20_000 % 64 + 64


def test_parts_take_what_the_paper_says() -> None:
    """Lists are smallest, and larger than the bit matrix with what a deletion needs."""
    made = workload.make("topss", 20_000, seed=3, setting="W4")
    sizes = {}
    for name in ALL:
        counting = create(name, **({"counters": "bytes"} if name == "counting-bit" else {}))
        loaded(made, counting).match_batch(made.events(2))
        assert isinstance(counting, CountingMatcher)
        sizes[name] = counting.part_sizes
    lists, bits = sizes["counting-list"], sizes["counting-bit"]
    assert lists.counting < bits.counting < sizes["counting-byte"].counting
    assert lists.counting + lists.deletion > bits.counting
    assert lists.predicates == bits.predicates


def test_tables_over_a_whole_domain_take_memory_by_its_size() -> None:
    sizes = []
    for setting in ("W0", "W1"):
        made = workload.make("topss", 300, seed=3, setting=setting)
        counting = create("counting-list", domain=100_001, skip_empty=False)
        engine = loaded(made, counting)
        assert isinstance(counting, CountingMatcher)
        sizes.append(counting.part_sizes.predicates)
        events = engine.encode(made.events(3))
        counting.evaluate_predicates(events)
    assert sizes[1] > 10 * sizes[0]
