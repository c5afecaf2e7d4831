"""Clusters find, for an event, the clauses all of whose equalities hold, in whichever way."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from tamis.index.clauses import bind
from tamis.index.elementary_predicates import AT_MOST, EQUAL, ElementaryPredicates, key_predicates
from tamis.match.lesubscribe.clusters import EqualityClusters, partial

Equalities = dict[int, int]


def _elementary(clauses: list[Equalities], extra: bool = False) -> ElementaryPredicates:
    """Clauses as predicates, each with a range on attribute 40 where `extra`."""
    rows = [
        [(a, EQUAL, v) for a, v in sorted(clause.items())] + [(40, AT_MOST, 5)] * extra
        for clause in clauses
    ]
    flat = [row for clause in rows for row in clause]
    return ElementaryPredicates(
        np.cumsum([0, *map(len, rows)]),
        np.array([row[0] for row in flat], np.int32),
        np.array([row[1] for row in flat], np.int8),
        np.array([row[2] for row in flat], np.int64),
        np.zeros(len(clauses), np.int8),
    )


def _add(clusters: EqualityClusters, first: int, clauses: list[Equalities]) -> None:
    found = _elementary(clauses, extra=True)
    has = clusters.add(np.arange(first, first + len(clauses)), found, key_predicates(found))
    assert has.tolist() == [bool(clause) for clause in clauses]


def _find(
    clusters: EqualityClusters, event: dict[int, list[int]], subsets: bool = False
) -> tuple[list[int], int]:
    """The slots found, and how many look-ups it took."""
    pairs = [(a, v) for a in sorted(event) for v in event[a]]
    attribute = np.array([a for a, _ in pairs], np.int32)
    code = np.array([v for _, v in pairs], np.int64)
    bound = np.zeros(50, np.int64), np.zeros(50, np.int64)
    bind(attribute, 0, len(pairs), *bound)
    view = clusters.view
    found = np.empty(1, np.int64)
    keys, many, looked = partial(view, attribute, code, (0, len(pairs)), bound, found, subsets)
    slots: list[int] = []
    for key in keys[:many].tolist():
        start = view.lists.start[key]
        slots += view.slots[start : start + view.lists.size[key]].tolist()
    return slots, looked


def _right(clauses: list[Equalities], event: dict[int, list[int]]) -> list[int]:
    return [
        slot
        for slot, clause in enumerate(clauses)
        if clause and all(v in event.get(a, []) for a, v in clause.items())
    ]


@pytest.mark.parametrize("values", [1, 2, 6])
def test_any_event_finds_the_clauses_whose_equalities_hold(values: int) -> None:
    chance = random.Random(values)
    clauses = [
        {a: chance.randrange(3) for a in chance.sample(range(9), chance.randint(0, 5))}
        for _ in range(400)
    ]
    clusters = EqualityClusters()
    _add(clusters, 0, clauses)
    clusters.check()
    for _ in range(100):
        bound = chance.sample(range(12), chance.randint(0, 12))
        event = {a: chance.choices(range(4), k=chance.randint(1, values)) for a in bound}
        assert sorted(_find(clusters, event)[0]) == _right(clauses, event)
    gone = list(range(0, 400, 2))
    found = _elementary([clauses[slot] for slot in gone])
    clusters.remove(np.array(gone), found, key_predicates(found))
    clusters.check()
    event = {a: [0, 1] for a in range(9)}
    left = [{} if slot in gone else clause for slot, clause in enumerate(clauses)]
    assert sorted(_find(clusters, event)[0]) == _right(left, event)


def test_few_attributes_among_many_schemas_are_looked_up_by_subset() -> None:
    clauses = [dict.fromkeys(some, 1) for some in combinations(range(14), 4)]
    clusters = EqualityClusters()
    _add(clusters, 0, clauses)
    event = {a: [1] for a in (2, 3, 5, 7, 11)}
    slots, looked = _find(clusters, event)
    assert sorted(slots) == _right(clauses, event)
    assert looked == 2**5 - 1 + 5, "all subsets, then one key for each of the five schemas"


def test_schemas_are_tested_only_under_their_rarest_attribute() -> None:
    clauses = [{0: 1, a: 1} for a in range(1, 40)]
    clusters = EqualityClusters()
    _add(clusters, 0, clauses)
    slots, looked = _find(clusters, {a: [1] for a in (0, 3, 30)})
    assert sorted(slots) == [2, 29]
    assert looked <= 6, "two schemas to test of 39, two keys"


def test_more_combinations_than_keys_are_never_tried() -> None:
    clauses = [dict.fromkeys(range(8), v) for v in range(50)]
    clusters = EqualityClusters()
    _add(clusters, 0, clauses)
    event = {a: list(range(10, 30)) for a in range(8)}  # 20 to the 8th combinations
    slots, looked = _find(clusters, event)
    assert sorted(slots) == list(range(10, 30))
    assert looked <= 2 * 50


def test_a_second_equality_on_one_attribute_is_not_part_of_the_key() -> None:
    found = ElementaryPredicates(
        np.array([0, 3, 4]),
        np.array([1, 1, 2, 1], np.int32),
        np.array([EQUAL, EQUAL, EQUAL, AT_MOST], np.int8),
        np.array([5, 6, 7, 8], np.int64),
        np.zeros(2, np.int8),
    )
    assert key_predicates(found).tolist() == [True, False, True, False]


def test_subsets_of_the_event_are_looked_up_if_wanted_however_few_schemas_there_are() -> None:
    clauses = [{0: 1}, {0: 1, 2: 1}, {7: 1}]
    clusters = EqualityClusters()
    _add(clusters, 0, clauses)
    event = {a: [1] for a in (0, 1, 2, 3, 4, 5)}
    slots, looked = _find(clusters, event, subsets=True)
    assert sorted(slots) == [0, 1]
    assert looked == 2**6 - 1 + 2, "all subsets, then one key for each of the two schemas"
    wide = {a: [1] for a in range(40)}
    assert sorted(_find(clusters, wide, subsets=True)[0]) == [0, 1, 2], "as usual: too many subsets"
