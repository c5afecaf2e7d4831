"""Learning how often predicates are true and what they cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tamis.errors import SchedulerError
from tamis.schedule.base import FAULT
from tamis.schedule.statistics import PredicateStatistics


def test_learning_converges() -> None:
    rng = np.random.default_rng(8)
    truth = np.array([0.02, 0.3, 0.97])
    statistics = PredicateStatistics()
    for _ in range(3000):
        for predicate, p in enumerate(truth):
            statistics.learn(predicate, int(rng.random() < p), 5.0 * (predicate + 1))
    assert statistics.p[:3] == pytest.approx(truth, abs=0.05)
    assert statistics.cost[:3] == pytest.approx([5, 10, 15], rel=0.01)
    statistics.check()


def test_old_results_fade() -> None:
    statistics = PredicateStatistics(memory=100)
    for _ in range(2000):
        statistics.learn(0, 1, 1.0)
    for _ in range(500):
        statistics.learn(0, 0, 9.0)
    assert statistics.p[0] < 0.02
    assert statistics.cost[0] > 8.9


def test_doubt_falls_with_results() -> None:
    statistics = PredicateStatistics()
    statistics.fit(1)
    doubts = [statistics.doubt[0]]
    for turn in range(64):
        statistics.learn(0, turn % 2)
        doubts.append(statistics.doubt[0])
    assert doubts[0] > 4 * doubts[-1] > 0
    statistics.set(0, p=0.5)
    assert statistics.doubt[0] == 0


def test_the_first_results_count_as_a_mean_and_a_fault_for_the_cost_only() -> None:
    statistics = PredicateStatistics(p=0.5)
    for outcome in (1, 1, 0, 1):
        statistics.learn(0, outcome)
    # Four results and two expected ones, of which one is true.
    assert statistics.p[0] == pytest.approx((3 + 1) / (4 + 2))
    statistics.learn(1, FAULT, 7.0)
    assert statistics.p[1] == 0.5
    assert statistics.cost[1] > 1


def test_a_number_used_again_starts_anew() -> None:
    statistics = PredicateStatistics()
    for _ in range(50):
        statistics.learn(4, 1, 100.0)
    statistics.expect(4, cost=2.0)
    assert (statistics.p[4], statistics.cost[4]) == (0.5, 2.0)
    statistics.learn(4, 0)
    assert statistics.p[4] == pytest.approx(1 / 3)


def test_what_was_seen_elsewhere_weighs_as_much_as_if_it_were_seen_here() -> None:
    here, elsewhere = PredicateStatistics(), PredicateStatistics()
    for at in range(100):
        here.learn(0, at % 4 == 0, 8.0)
    elsewhere.expect(0)
    assert elsewhere.is_unseen(0)
    elsewhere.expect(0, p=float(here.p[0]), cost=8.0, seen=100)
    assert not elsewhere.is_unseen(0)
    assert elsewhere.doubt[0] == pytest.approx(here.doubt[0])
    assert elsewhere.settings == 1, "there is news for whoever has made a plan"
    for statistics in (here, elsewhere):
        statistics.learn(0, 0, 8.0)
        statistics.check()
    assert elsewhere.p[0] == pytest.approx(here.p[0])
    # As with results of its own, no more are remembered than fit into the memory.
    elsewhere.expect(0, p=0.5, seen=1e9)
    elsewhere.check()
    elsewhere.learn(0, 1)
    assert elsewhere.p[0] > 0.5


def test_calls_are_timed_elsewhere_too() -> None:
    statistics = PredicateStatistics()
    statistics.expect_call(2, 5.0)
    assert statistics.is_untimed(2)
    statistics.expect_call(2, 5.0, seen=48)
    assert not statistics.is_untimed(2)
    assert statistics.learn_call(2, 55.0, 1.0) == pytest.approx(6.0)


def test_refusals() -> None:
    statistics = PredicateStatistics()
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: statistics.set(0, p=1.5), "between 0 and 1"),
        (lambda: statistics.set(0, cost=-1), "finite"),
        (lambda: statistics.learn(0, 1, float("nan")), "finite"),
        (lambda: statistics.learn(0, 3), "FALSE"),
        (lambda: PredicateStatistics(memory=0), "1 or more"),
        (lambda: PredicateStatistics(optimism=-1), "0 or more"),
        (lambda: statistics.expect(0, p=2), "between 0 and 1"),
    ]
    for call, message in refused:
        with pytest.raises(SchedulerError, match=message):
            call()
