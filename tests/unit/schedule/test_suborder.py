"""The order of chains: whole, kept up, and made anew when enough has changed."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tamis.errors import SchedulerError
from tamis.schedule.base import ON_FALSE, TRUE
from tamis.schedule.statistics import PredicateStatistics
from tamis.schedule.suborder import SubOrderScheduler
from tamis.testing.scheduler_checks import random_clauses
from tests.unit.schedule.instances import workload


def test_the_order_is_a_permutation_through_churn() -> None:
    rng = random.Random(7)
    instance = random_clauses(rng, 300, 60, 1000)
    scheduler = SubOrderScheduler()
    instance.load(scheduler)
    assert sorted(scheduler.order().tolist()) == sorted(instance.clauses)
    gone: list[int] = []
    for _ in range(60):
        for _ in range(rng.randint(1, 9)):
            if gone and rng.random() < 0.5:
                number = gone.pop(rng.randrange(len(gone)))
                clause = instance.clauses[number]
                scheduler.add(number, clause.predicates, clause.kills, clause.owner)
            else:
                number = rng.choice([n for n in instance.clauses if n not in gone])
                scheduler.remove(number)
                gone.append(number)
        if rng.random() < 0.7:
            scheduler.check()
            assert sorted(scheduler.order().tolist()) == sorted(set(instance.clauses) - set(gone))


def test_few_survivors_come_in_the_order_of_all() -> None:
    scheduler = SubOrderScheduler()
    workload(500, 100, seed=3).load(scheduler)
    order = scheduler.order().tolist()
    for few in (20, 400):
        some = np.random.default_rng(few).permutation(500)[:few]
        run = scheduler.run(some)
        assert run.undecided == few
        in_order = scheduler._ordered(some).tolist()
        assert in_order == [clause for clause in order if clause in set(some.tolist())]


def test_the_chain_that_comes_sooner_to_what_is_shared_goes_first() -> None:
    scheduler = SubOrderScheduler(PredicateStatistics(memory=50))
    scheduler.add(0, [5, 9], [ON_FALSE] * 2, 0)
    scheduler.add(1, [6, 9], [ON_FALSE] * 2, 1)
    statistics = scheduler.statistics
    statistics.set([5, 6, 9], p=[0.3, 0.7, 0.9])
    assert scheduler.order().tolist() == [1, 0]
    statistics.set([5, 6], p=[0.7, 0.3])
    assert scheduler.order().tolist() == [0, 1], "what was set changes the order"
    for turn in range(400):
        statistics.learn(5, int(turn % 10 < 3))
        statistics.learn(6, int(turn % 10 < 7))
    assert scheduler.order().tolist() == [1, 0], "and so does what was learned"


def test_a_few_new_clauses_do_not_move_the_others() -> None:
    scheduler = SubOrderScheduler()
    workload(400, 80, seed=4).load(scheduler)
    before = scheduler.order().tolist()
    for number in range(400, 420):
        scheduler.add(number, [number % 80, (number + 7) % 80], [ON_FALSE] * 2, number)
    after = scheduler.order().tolist()
    assert [clause for clause in after if clause < 400] == before
    assert after[-20:] != list(range(400, 420)), "new ones get a place by their score"
    for number in range(420, 500):
        scheduler.add(number, [number % 80], [ON_FALSE], number)
    assert [clause for clause in scheduler.order().tolist() if clause < 400] != before


def test_a_killed_chain_is_skipped_and_a_result_used_again() -> None:
    scheduler = SubOrderScheduler()
    for number in range(3):
        scheduler.add(number, [number, 3], [ON_FALSE] * 2, number)
    scheduler.statistics.set(range(4), p=[0.5, 0.5, 0.5, 0.1])
    run = scheduler.run(np.arange(3))
    assert run.next() == 3
    assert run.record(3, 0).tolist() == []
    assert run.next() == -1
    simulated = scheduler.simulate(np.arange(3), np.full(4, TRUE, np.int8))
    assert simulated.evaluated == 4


def test_chains_by_cost_or_as_in_the_paper() -> None:
    for chains, first in (("cost", 0), ("selectivity", 1)):
        scheduler = SubOrderScheduler(chains=chains)
        scheduler.add(0, [0, 1], [ON_FALSE] * 2, 0)
        scheduler.statistics.set([0, 1], p=[0.5, 0.4], cost=[1, 1000])
        assert scheduler.run(np.array([0])).next() == first
    with pytest.raises(SchedulerError, match="selectivity"):
        SubOrderScheduler(chains="price")
