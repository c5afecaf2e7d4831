"""What the conformance suite cannot see of `gough`: the size of its graph, and paths through it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tamis.encode.batch import EventBatch
from tamis.errors import MatcherError
from tamis.match.lesubscribe.gough import Gough
from tamis.match.registry import create
from tamis.testing.matcher_checks import add, answers, random_clause, remove
from tamis.workload import make
from tests.loaded import loaded


def _loaded(n: int, **options: Any) -> tuple[Gough, EventBatch]:
    workload = make("lesubscribe", n, seed=1)
    matcher = Gough(**options)
    return matcher, loaded(workload, matcher).encode(workload.events(50))


def test_an_event_follows_one_path() -> None:
    matcher, batch = _loaded(150)
    matches = matcher.match(batch)
    assert matcher.held == 150
    assert 50 <= matcher.tally.nodes <= 50 * 6, "at most one node for each of six attributes"
    assert matcher.tally.subscriptions == matches.total, "nothing is touched that does not match"
    matcher.check()


def test_equal_nodes_are_one_and_the_order_of_attributes_decides_the_size() -> None:
    nodes = []
    for n, options in (
        (20, {"memo": True}),
        (20, {"memo": False}),
        (80, {"order": "selective"}),
        (80, {"order": (0, 1, 2, 3, 4, 5)}),
    ):
        matcher, batch = _loaded(n, **options)
        matcher.match(batch)
        assert matcher.held == n
        nodes.append(matcher.nodes)
    assert nodes[0] * 2 < nodes[1]
    assert nodes[2] != nodes[3]


def test_the_graph_holds_what_fits_and_the_rest_is_verified() -> None:
    matcher, batch = _loaded(3000, max_nodes=5_000)
    matcher.match(batch)
    assert 0 < matcher.nodes <= 5_000
    assert 300 < matcher.held < 3000, "equalities on the top attribute keep nodes apart"
    assert matcher.tally.subscriptions >= 50 * (3000 - matcher.held)


def test_with_overflow_error_matching_is_refused_until_enough_is_removed() -> None:
    chance = random.Random(1)
    matcher = create("gough", max_nodes=500, overflow="error")
    fitting = {slot: [(0, 0, 0, slot, slot)] for slot in range(100)}
    add(matcher, fitting)
    assert answers(matcher, [{0: [7]}]) == [{7}]
    wild = {100 + i: random_clause(chance) for i in range(300)}
    add(matcher, wild)
    for _ in range(2):
        with pytest.raises(MatcherError, match=r"max_nodes.*order.*overflow='scan'"):
            answers(matcher, [{0: [7]}])
    matcher.check()
    assert len(matcher) == 400
    remove(matcher, list(wild))
    assert answers(matcher, [{0: [7]}]) == [{7}]
    matcher.check()


def test_few_changes_do_not_make_a_new_graph() -> None:
    matcher, batch = _loaded(200)
    matcher.match(batch)
    graph = matcher._graph
    remove(matcher, [3, 4])
    add(matcher, {4: [], 900: []})
    assert {4, 900} <= set(matcher.match(batch)[0])
    assert matcher._graph is graph
    matcher.check()
