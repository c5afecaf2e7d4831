"""Predicates as bits: both structures that hold them, against a plain dict."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tamis.index.bits import lowest, mask
from tamis.index.elementary_predicates import (
    AT_LEAST,
    AT_MOST,
    BOUND,
    EQUAL,
    UNEQUAL,
    ElementaryPredicates,
)
from tamis.match.topss.predicate_lists import PredicateLists
from tamis.match.topss.predicate_table import PredicateTable
from tamis.match.topss.predicate_vector import PredicateVector, distinct

Predicate = tuple[int, int, int]  # attribute, comparator, constant
HUGE = 2**63 - 1
STRUCTURES = {
    "table over small integers": lambda: PredicateTable(1000),
    "table by ranks": lambda: PredicateTable(1),
    "table, some of each": lambda: PredicateTable(9),
    "table, every cell visited": lambda: PredicateTable(9, skip_empty=False),
    "lists, bisected": PredicateLists,
    "lists, walked": lambda: PredicateLists(linear=True),
}


def _holds(predicate: Predicate, value: int) -> bool:
    _, comparator, constant = predicate
    return {
        EQUAL: value == constant,
        AT_MOST: value <= constant,
        AT_LEAST: value >= constant,
        UNEQUAL: value != constant,
        BOUND: True,
    }[comparator]


def _elementary(predicates: list[Predicate]) -> ElementaryPredicates:
    """The predicates as those of one clause."""
    table = np.array(predicates, np.int64).reshape(-1, 3)
    starts, exact = np.array([0, len(table)]), np.zeros(1, np.int8)
    attribute, comparator = table[:, 0].astype(np.int32), table[:, 1].astype(np.int8)
    return ElementaryPredicates(starts, attribute, comparator, table[:, 2].copy(), exact)


def _add(vector: PredicateVector, predicates: list[Predicate]) -> list[int]:
    plan = vector.plan(_elementary(predicates))
    expected = vector.top_after(plan)
    ids = vector.add(plan).tolist()
    assert vector.top == expected
    return [int(id) for id in ids]


def _satisfied(vector: PredicateVector, event: list[tuple[int, int]]) -> set[int]:
    bits = np.full((1, vector.words), 2**64 - 1, np.uint64)  # what was there is overwritten
    starts = np.array([0, len(event)])
    attribute = np.array([a for a, _ in event], np.int32)
    code = np.array([v for _, v in event], np.int64)
    vector.evaluate(starts, attribute, code, bits)
    return set(np.flatnonzero(np.unpackbits(bits[0].view(np.uint8), bitorder="little")).tolist())


def _random_predicate(chance: random.Random, wide: bool) -> Predicate:
    comparator = chance.choice((EQUAL, AT_MOST, AT_LEAST, UNEQUAL, BOUND))
    constants = (-HUGE, -5, 0, 3, 70, HUGE) if wide and chance.random() < 0.3 else range(-20, 20)
    return chance.randrange(5), comparator, 0 if comparator == BOUND else chance.choice(constants)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("make", STRUCTURES.values(), ids=list(STRUCTURES))
@pytest.mark.slow
def test_satisfied_predicates_are_those_that_hold(make: object, wide: bool) -> None:
    chance = random.Random(1)
    assert callable(make)
    vector: PredicateVector = make()
    live: list[tuple[Predicate, int]] = []  # one for each use
    for _ in range(150):
        if chance.random() < 0.6 or not live:
            fresh = [_random_predicate(chance, wide) for _ in range(chance.choice((1, 2, 40)))]
            live += zip(fresh, _add(vector, fresh), strict=True)
        else:
            chance.shuffle(live)
            many = chance.choice((1, 3, len(live)))
            gone, live = live[:many], live[many:]
            vector.remove(np.array([id for _, id in gone], np.int64))
        vector.check()
        known = dict(live)
        assert len(vector) == len(known) == len(set(known.values())), "equal ones share an id"
        event = [(a, chance.randint(-22, 22)) for a in range(6) for _ in range(chance.randrange(3))]
        event.append((3, chance.choice((-HUGE - 1, -HUGE, HUGE, 70))))
        right = {id for p, id in known.items() if any(_holds(p, v) for a, v in event if a == p[0])}
        assert _satisfied(vector, sorted(event)) == right


@pytest.mark.parametrize("make", STRUCTURES.values(), ids=list(STRUCTURES))
def test_ids_are_given_out_again_before_new_ones_are_made(make: object) -> None:
    assert callable(make)
    vector: PredicateVector = make()
    ids = _add(vector, [(0, EQUAL, c) for c in range(10)])
    assert sorted(ids) == list(range(10))
    vector.remove(np.array([3, 7, 8]))
    again = _add(vector, [(1, AT_MOST, 5), (0, EQUAL, 0), (2, BOUND, 0)])
    assert again[1] == 0
    assert {again[0], again[2]} < {3, 7, 8}
    assert vector.top == 10
    assert len(vector) == 9


def test_the_table_visits_all_cells_or_only_the_occupied_ones() -> None:
    """The cost that grows with the domain is what the bitmap saves."""
    visited = {}
    for domain in (100, 10_000):
        for skip in (False, True):
            table = PredicateTable(10_001, skip_empty=skip)
            _add(table, [(0, AT_LEAST, c) for c in (0, domain // 2, domain)])
            bits = np.zeros((1, 1), np.uint64)
            pairs = (np.array([0, 1]), np.zeros(1, np.int32), np.array([domain]))
            looked, visited[domain, skip] = table.evaluate(*pairs, bits)
            assert looked == 3
    assert visited[100, False] == 101
    assert visited[10_000, False] == 10_001
    assert visited[100, True] == visited[10_000, True] == 3


def test_walking_a_list_stops_where_nothing_more_can_hold() -> None:
    bits = np.zeros((1, 1), np.uint64)
    pairs = (np.array([0, 1]), np.zeros(1, np.int32), np.array([4]))
    for comparator, walked, satisfied in (
        (AT_LEAST, 6, 5),  # constants 0 to 4, and the first that is too large
        (EQUAL, 6, 1),
        (AT_MOST, 20, 16),
        (UNEQUAL, 20, 19),
    ):
        predicates: list[Predicate] = [(0, comparator, c) for c in range(20)]
        linear, bisected = PredicateLists(linear=True), PredicateLists()
        _add(linear, predicates)
        _add(bisected, predicates)
        assert linear.evaluate(*pairs, bits) == (walked, 1)
        assert bisected.evaluate(*pairs, bits) == (satisfied, 1)


def test_ranks_are_dealt_anew_when_most_are_unused() -> None:
    table = PredicateTable(1)
    ids = _add(table, [(0, EQUAL, 1000 * c) for c in range(4000)])
    full = table.nbytes
    table.remove(np.array(ids[10:]))
    table.check()
    assert table.nbytes < full
    assert _satisfied(table, [(0, 9000)]) == {ids[9]}
    assert _satisfied(table, [(0, 10_000)]) == set()


def test_a_list_of_ids_is_made_distinct() -> None:
    starts, ids = distinct(np.array([0, 4, 4, 6]), np.array([2, 0, 2, 2, 2, 1]), 3)
    assert starts.tolist() == [0, 2, 2, 4]
    assert ids.tolist() == [2, 0, 2, 1]


def test_bits() -> None:
    for bit in range(64):
        assert lowest(np.uint64(1 << bit)) == bit
        assert lowest(np.uint64((1 << bit) | (1 << 63))) == bit
    assert mask(0, 64) == 2**64 - 1
    assert mask(3, 5) == 0b11000
    assert mask(63, 64) == 1 << 63
