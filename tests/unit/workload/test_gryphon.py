"""The matching tree's load: popularity that decays, Zipf values, uniform events."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tamis import TamisError, workload
from tamis.workload.gryphon import make_worst_event, make_worst_set, worst_visits
from tamis.workload.gryphon import match_rate as expected_rate
from tamis.workload.tables import conditions
from tests.unit.workload.brute import Predicates, match_rate


def test_attributes_lose_popularity_by_a_constant_factor() -> None:
    predicates = Predicates(workload.make("gryphon", 50_000).subscriptions)
    assert set(predicates.comparator) == {"="}
    for place in (0, 1, 5, 10):
        share = (predicates.names == f"a{place + 1}").sum() / 50_000
        assert share == pytest.approx(0.98 * 0.85**place, abs=0.01)
    value = np.asarray(predicates.value)
    _, counts = np.unique(value, return_counts=True)
    zipf = 1 / np.arange(1, 6)
    assert counts / counts.sum() == pytest.approx(zipf / zipf.sum(), abs=0.01)


def test_the_share_that_matches_is_the_one_computed() -> None:
    made = workload.make("gryphon", 100_000, factor=0.6)
    rate = match_rate(made.subscriptions, made.events(300))
    assert rate == pytest.approx(expected_rate(30, 5, 0.98, 0.6), rel=0.1)


@pytest.mark.parametrize("n", [10_000, 40_000])
def test_matches_can_be_held_while_subscriptions_grow(n: int) -> None:
    made = workload.make("gryphon", n, matches=50)
    assert n * match_rate(made.subscriptions, made.events(300)) == pytest.approx(50, rel=0.15)


def test_events_are_uniform_and_dense() -> None:
    events = workload.make("gryphon", 1).events(5000)
    assert events.num_columns == 30
    for column in events.itercolumns():
        _, counts = np.unique(np.asarray(column), return_counts=True)
        assert counts / 5000 == pytest.approx(0.2, abs=0.03)


def _visits(paths: set[tuple[int, ...]], values: int) -> float:
    """Expected visits of a tree whose leaves have these paths of values and stars (0)."""
    nodes = {path[:depth] for path in paths for depth in range(len(path) + 1)}
    return float(sum(1 / values ** sum(label > 0 for label in node) for node in nodes))


def _paths(made: workload.Workload, attributes: int) -> set[tuple[int, ...]]:
    found = set()
    for predicates in made.subscriptions["predicates"].to_pylist():
        path = [0] * attributes
        for each in predicates:
            path[int(each["attribute"][1:]) - 1] = int(each["value"])
        found.add(tuple(path))
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_no_set_of_subscriptions_makes_an_event_visit_more_nodes(n: int) -> None:
    made = make_worst_set(n, attributes=2, values=2)
    mine = _paths(made, 2)
    assert len(mine) == n, "all are different"
    assert worst_visits(made) == pytest.approx(_visits(mine, 2))
    every = [path for path in product(range(3), repeat=2) if any(path)]
    rng = np.random.default_rng(n)
    for _ in range(200):
        other = {every[at] for at in rng.permutation(len(every))[:n]}
        assert _visits(other, 2) <= _visits(mine, 2) + 1e-12


@pytest.mark.parametrize("n", [7, 100, 1295])
def test_visits_of_a_worst_set_are_known(n: int) -> None:
    made = make_worst_set(n, attributes=4, values=5)
    paths = _paths(made, 4)
    assert len(paths) == n
    assert worst_visits(made) == pytest.approx(_visits(paths, 5))


def test_a_worst_event_matches_all_and_they_differ() -> None:
    made = make_worst_event(300, attributes=12)
    assert len(set(conditions(made.subscriptions).to_pylist())) == 300
    assert match_rate(made.subscriptions, made.events(3)) == 1
    assert made.schema == make_worst_set(5, attributes=12).schema


def test_a_set_that_is_too_large_is_refused() -> None:
    with pytest.raises(TamisError, match="1 to 8 subscriptions with a test, not 9"):
        make_worst_set(9, attributes=2, values=2)
    with pytest.raises(TamisError, match="draws 1 to 7 different subscriptions, not 8"):
        make_worst_event(8, attributes=4)
