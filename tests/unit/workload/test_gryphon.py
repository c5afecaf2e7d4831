"""The matching tree's load: popularity that decays, Zipf values, uniform events."""

from __future__ import annotations

import numpy as np
import pytest

from tamis import workload
from tamis.workload.gryphon import match_rate as expected_rate
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
