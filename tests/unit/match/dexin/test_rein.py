"""REIN marks violated ends, and compares only those in the event's own buckets."""

from __future__ import annotations

import pytest

from tamis import workload
from tamis.match.dexin.rein import Rein
from tests.loaded import loaded

N, EVENTS = 20_000, 40


def _matched(matcher: Rein, **parameters: object) -> Rein:
    made = workload.make("dexin", N, seed=3, **parameters)
    loaded(made, matcher).match_batch(made.events(EVENTS))
    return matcher


@pytest.mark.parametrize(("theta", "marks"), [(0.1, 9.1), (0.9, 1.9)])
def test_marks_add_up_over_the_attributes(theta: float, marks: float) -> None:
    tally = _matched(Rein(), theta=theta).tally
    assert tally.subscriptions / EVENTS / N == pytest.approx(marks, rel=0.08)


def test_fewer_buckets_mean_more_comparisons_and_the_same_marks() -> None:
    few, many = _matched(Rein(buckets=10)).tally, _matched(Rein(buckets=1000)).tally
    assert few.subscriptions == many.subscriptions
    # Of each attribute two buckets are compared one by one, and there are as many ends in each.
    assert few.predicates / EVENTS == pytest.approx(10 * 2 * N / 10, rel=0.1)
    assert many.predicates / EVENTS == pytest.approx(10 * 2 * N / 1000, rel=0.1)
