"""Predicates that one call answers come out together, and a call is as good as all of them."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.errors import SchedulerError
from tamis.schedule.base import FALSE, FAULT, ON_FALSE, TRUE
from tamis.schedule.registry import create
from tests.unit.schedule.instances import NAMES

each = pytest.mark.parametrize("name", NAMES)


def test_a_call_that_decides_more_goes_first() -> None:
    """Predicates of two clauses each are worse than one of all; but not if they are one call."""
    adaptive = create("adaptive")
    clause = 0
    for predicate in range(10):
        for _ in range(2):
            adaptive.add(clause, [predicate, 10, 11 + clause], [ON_FALSE] * 3, clause)
            clause += 1
    for predicate in range(10):
        adaptive.statistics.set(predicate, p=0.1, cost=3.0)
    adaptive.statistics.set(10, p=0.5, cost=3.0)
    adaptive.statistics.set(range(11, 11 + clause), p=0.5, cost=100.0)
    every = np.arange(clause)
    assert adaptive.run(every).next() == 10
    for predicate in range(10):
        adaptive.assign_call(predicate, 3)
    assert adaptive.run(every).next() < 10


def test_who_shares() -> None:
    scheduler = create("naive")
    graph, before = scheduler.graph, scheduler.nbytes
    predicates = np.array([4, 0, 7, 5, 9])
    assert len(set(graph.calls(predicates).tolist())) == 5
    for predicate, call in ((4, 2), (7, 2), (0, 4)):
        graph.assign_call(predicate, call)
    found = graph.calls(predicates).tolist()
    assert found[0] == found[2]
    assert len(set(found)) == 4, "a call may have the number of a predicate"
    graph.assign_call(7, 3)
    assert len(set(graph.calls(predicates).tolist())) == 5
    with pytest.raises(SchedulerError, match="numbered 0 to"):
        graph.assign_call(-1, 0)
    scheduler.assign_call(1000, 3)
    assert scheduler.nbytes >= before + 4000, "what is known of calls is counted"


def test_nobody_shares_a_call_unless_two_predicates_in_use_have_it() -> None:
    graph = create("naive").graph
    graph.assign_call(0, 5)
    graph.assign_call(1, 6)
    graph.assign_call(2, 6)
    for clause, predicates in enumerate(([0, 3], [1], [0, 1])):
        graph.add(clause, predicates, [ON_FALSE] * len(predicates), clause)
        graph.check()
        assert not graph.has_shared_calls, "2 is in no clause"
    graph.add(3, [2], [ON_FALSE], 3)
    graph.check()
    assert graph.has_shared_calls
    graph.assign_call(2, 5)
    assert graph.has_shared_calls
    graph.assign_call(2, 7)
    assert not graph.has_shared_calls
    graph.assign_call(2, 6)
    graph.check()
    graph.remove(1)
    assert graph.has_shared_calls, "clause 2 has 1 as well"
    graph.remove(2)
    assert not graph.has_shared_calls
    graph.check()
    graph.call[2] = 5
    with pytest.raises(AssertionError):
        graph.check()


@each
def test_predicates_that_share_a_call_cost_what_it_costs(name: str) -> None:
    scheduler = create(name)
    statistics = scheduler.statistics
    for predicate in range(4):
        scheduler.assign_call(predicate, predicate // 2)
        scheduler.add(predicate, [predicate], [ON_FALSE], predicate)
    statistics.expect_call(0, 8.0)
    run = scheduler.run(np.array([0, 1, 2]))
    assert statistics.cost.tolist()[:4] == [8.0, 8.0, 1.0, 1.0], "of the other nothing is known"
    assert run.answered_with(1).tolist() == [0, 1]
    assert run.answered_with(2).tolist() == [2], "3 does not survive"
    assert run.answered_with(3).tolist() == []
    scheduler.learn(0, TRUE, 4.0)
    assert statistics.call_cost[0] == statistics.cost[0] == 6.0
    assert statistics.cost[1] == 8.0
    scheduler.learn_all(np.array([2]), np.array([TRUE], np.int8), 3.0)
    assert statistics.cost[2] == 2.0
    scheduler.learn(1, FALSE, None)
    scheduler.run(np.array([1, 3]))
    assert statistics.cost.tolist()[:4] == [6.0, 6.0, 2.0, 2.0]
    scheduler.learn_all(np.array([2, 3]), np.array([TRUE, FAULT], np.int8), 5.0)
    assert statistics.cost.tolist()[2:4] == [3.0, 3.0]
    statistics.expect_call(0, 9.0)
    assert statistics.call_cost[0] == 9.0
    scheduler.check()


@each
def test_who_shares_a_call_with_whom_does_not_change_under_way(name: str) -> None:
    scheduler = create(name)
    for predicate in range(4):
        scheduler.assign_call(predicate, predicate // 2)
        scheduler.add(predicate, [predicate], [ON_FALSE], predicate)
    every = np.arange(4)
    run = scheduler.run(every)
    scheduler.assign_call(1, 1)
    assert run.answered_with(0).tolist() == [0, 1]
    assert scheduler.run(every).answered_with(0).tolist() == [0]
    assert sorted(scheduler.run(every).answered_with(3).tolist()) == [1, 2, 3]


def test_a_predicate_that_nobody_has_changes_nothing() -> None:
    scheduler = create("naive")
    scheduler.add(0, [3, 5], [ON_FALSE, ON_FALSE], 0)
    run = scheduler.run(np.array([0]))
    assert run.record_all(np.array([1, 9]), np.array([TRUE, FALSE], np.int8)).tolist() == []
    assert run.next() == 3
    assert run.record_all(np.array([5, 3, 3]), np.array([TRUE, TRUE, FAULT], np.int8)).tolist() == [
        0
    ]
    assert run.next() == -1
    assert scheduler.run(np.zeros(0, np.int64)).record_all(
        np.array([3]), np.array([TRUE], np.int8)
    ).tolist() == []  # fmt: skip


def test_learning_of_many_is_as_of_each() -> None:
    one, many = create("naive").statistics, create("naive").statistics
    rng = np.random.default_rng(3)
    for _ in range(5):
        predicates = rng.permutation(40)[:30]
        outcomes = rng.integers(0, 3, 30).astype(np.int8)
        for predicate, outcome in zip(predicates.tolist(), outcomes.tolist(), strict=True):
            one.learn(predicate, outcome, 2.5)
        many.learn_all(predicates, outcomes, 2.5)
    for name in ("p", "doubt", "cost"):
        np.testing.assert_allclose(getattr(one, name)[:40], getattr(many, name)[:40])
    assert one.learned == many.learned
