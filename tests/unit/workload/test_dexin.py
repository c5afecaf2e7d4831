"""DEXIN's workload against what its parameters say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis import workload
from tests.unit.workload.brute import Predicates, match_rate, matches


def ends(**parameters: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Low and high ends of the constraints on a1, from a subscriptions table."""
    made = workload.make("dexin", 20_000, attributes=1, **parameters)
    predicates = Predicates(made.subscriptions)
    value = np.asarray(predicates.value)
    return value[predicates.comparator != "<="], value[predicates.comparator != ">="]


@pytest.mark.slow
def test_at_the_defaults_340_in_a_million_match() -> None:
    """0.45^10: each constraint is a range, half the domain wide, nine times in ten."""
    # One attribute, where chance plays little part ...
    one = workload.make("dexin", 20_000, seed=1, attributes=1)
    assert match_rate(one.subscriptions, one.events(1000)) == pytest.approx(0.45, rel=0.03)
    # ... and ten of them, where events differ a hundredfold.
    ten = workload.make("dexin", 100_000, seed=1)
    per_million = 1e6 * match_rate(ten.subscriptions, ten.events(250))
    assert per_million == pytest.approx(340, rel=0.3)


def test_every_attribute_is_constrained_once_with_points_by_chance() -> None:
    made = workload.make("dexin", 20_000)
    predicates = Predicates(made.subscriptions)
    points = np.bincount(predicates.owner[predicates.comparator == "="], minlength=20_000)
    assert (predicates.lengths == 2 * 10 - points).all()
    assert points.mean() == pytest.approx(1.0, abs=0.03)
    assert (points == 0).mean() == pytest.approx(0.9**10, abs=0.01)


@pytest.mark.parametrize(("attributes", "low", "high"), [(10, 1, 1), (22, 2, 3), (4, 0, 1)])
def test_as_a_share_each_subscription_has_its_points(attributes: int, low: int, high: int) -> None:
    made = workload.make("dexin", 20_000, attributes=attributes, reading="share")
    predicates = Predicates(made.subscriptions)
    equal = predicates.comparator == "="
    points = np.bincount(predicates.owner[equal], minlength=20_000)
    assert points.min() == low
    assert points.max() == high
    assert points.mean() == pytest.approx(0.1 * attributes, abs=0.02)
    # No attribute is preferred.
    _, counts = np.unique(predicates.names[equal], return_counts=True)
    assert counts / counts.sum() == pytest.approx(1 / attributes, abs=0.02)


def test_ranges_have_the_given_width_and_place() -> None:
    low, high = ends(points=0.0)
    width = high - low
    assert width.min() >= 0.2 - 1e-4
    assert width.max() <= 0.8 + 1e-4
    assert width.mean() == pytest.approx(0.5, abs=0.01)
    assert low.min() >= 0
    assert high.max() <= 1
    # The low end is uniform in [0, 1 - θ].
    assert (low / (1 - width)).mean() == pytest.approx(0.5, abs=0.01)
    one_width = np.subtract(*reversed(ends(points=0.0, theta=0.3)))
    assert one_width == pytest.approx(0.3, abs=1e-4)


def test_values_are_those_of_the_cardinality() -> None:
    made = workload.make("dexin", 5000, cardinality=100)
    value = np.asarray(Predicates(made.subscriptions).value)
    seen = np.asarray(made.events(2000)["a1"])
    grid = np.arange(100) / 99
    assert np.isin(value, grid).all()
    assert np.isin(seen, grid).all()
    assert len(np.unique(seen)) == 100


def test_zipf_crowds_the_low_values() -> None:
    low, _ = ends(points=1.0, distribution="zipf", cardinality=1000)
    first = 1 / np.sum(1 / np.arange(1, 1001))
    assert (low == 0).mean() == pytest.approx(first, abs=0.01)
    events = workload.make("dexin", 1, distribution="zipf", cardinality=1000).events(20_000)
    assert (np.asarray(events["a1"]) == 0).mean() == pytest.approx(first, abs=0.01)
    crowded, _ = ends(points=0.0, distribution="zipf")
    spread, _ = ends(points=0.0)
    assert np.median(crowded) < 0.1 * np.median(spread)


def test_mixed_tosses_a_coin_for_each_attribute() -> None:
    events = workload.make("dexin", 1, attributes=22, distribution="mixed").events(2000)
    skewed = [np.median(np.asarray(column)) < 0.1 for column in events.itercolumns()]
    assert 4 < sum(skewed) < 18


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.07, 0.2])
def test_a_fixed_matching_rate_is_met(rate: float) -> None:
    made = workload.make("dexin", 20_000, matching=rate, seed=2)
    events = made.events(30)
    counts = [int(matched.sum()) for matched in matches(made.subscriptions, events)]
    own = round(rate * 20_000)
    # Its own subscriptions always, another event's only by sharing one value in ten thousand.
    assert min(counts) >= own
    assert np.mean(counts) == pytest.approx(own, rel=0.01, abs=1)


def test_with_a_fixed_rate_one_attribute_covers_the_value_only() -> None:
    made = workload.make("dexin", 5000, matching=0.1, points=0.0)
    predicates = Predicates(made.subscriptions)
    value = np.asarray(predicates.value)
    width = (value[1::2] - value[::2]).reshape(5000, 10)
    assert (np.sum(width == 0, axis=1) == 1).all()
    assert np.sort(width, axis=1)[:, 1].min() >= 0.2 - 1e-4
