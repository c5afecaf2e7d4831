"""All schedulers find the owners that an oracle finds which evaluates everything."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tamis.schedule.base import FALSE, FAULT, NEVER, ON_FALSE, ON_TRUE, TRUE
from tamis.schedule.registry import create, schedulers
from tests.unit.schedule.instances import random_instance, random_outcome, walk

each = pytest.mark.parametrize("name", schedulers())


@each
def test_the_oracle_agrees(name: str) -> None:
    rng = random.Random(1)
    for _ in range(400):
        instance = random_instance(
            rng, rng.randint(1, 40), rng.randint(1, 15), rng.choice([1, 5, 1000])
        )
        scheduler = instance.load(create(name))
        for predicate in range(instance.predicates):
            scheduler.statistics.set(predicate, p=rng.random(), cost=10 ** rng.uniform(-1, 2))
        for _ in range(3):
            survivors = rng.sample(
                list(instance.clauses), rng.randint(0, min(len(instance.clauses), 25))
            )
            outcome = random_outcome(rng, instance.predicates, rng.random())
            clauses = np.array(survivors, np.int64)
            trail, matched = walk(scheduler.run(clauses), outcome)
            wanted = instance.owners(survivors, outcome)
            assert {instance.clauses[clause].owner for clause in matched} == wanted
            assert all(instance.complete(clause, outcome) for clause in matched)
            assert len(set(trail)) == len(trail), "no predicate twice"

            simulated = scheduler.simulate(clauses, np.array(outcome, np.int8))
            assert simulated.trail.tolist() == trail, "one by one is as all at once"
            assert simulated.matched.tolist() == matched
            assert simulated.evaluated == len(trail)
            assert simulated.cost == pytest.approx(scheduler.statistics.cost[trail].sum())
        scheduler.check()


@each
def test_many_clauses_over_few_predicates(name: str) -> None:
    """So many that prices are made and the buckets are used."""
    rng = random.Random(2)
    for owners in (7, 150, 10_000):
        instance = random_instance(rng, 600, 90, owners)
        scheduler = instance.load(create(name))
        scheduler.statistics.set(range(90), p=[rng.random() for _ in range(90)])
        for true in (0.1, 0.5, 0.9):
            survivors = rng.sample(list(instance.clauses), 500)
            outcome = random_outcome(rng, 90, true)
            clauses = np.array(survivors, np.int64)
            trail, matched = walk(scheduler.run(clauses), outcome)
            found = {instance.clauses[clause].owner for clause in matched}
            assert found == instance.owners(survivors, outcome)
            simulated = scheduler.simulate(clauses, np.array(outcome, np.int8))
            assert simulated.trail.tolist() == trail
            assert simulated.matched.tolist() == matched


@each
def test_a_match_decides_its_alternatives_and_a_failed_join_does_not(name: str) -> None:
    scheduler = create(name)
    scheduler.add(0, [0], [ON_FALSE], owner=7)
    scheduler.add(1, [1], [ON_FALSE], owner=7)
    for matched, evaluated in ((True, 1), (False, 2)):
        run = scheduler.run(np.array([0, 1]))
        first = run.next()
        (clause,) = run.tell(first, TRUE)
        run.settle(int(clause), matched)
        assert (run.next() < 0) == (evaluated == 1)
        assert run.undecided == evaluated - 1


@each
def test_a_fault_kills_whatever_the_literal(name: str) -> None:
    scheduler = create(name)
    for clause, kill in enumerate((ON_FALSE, ON_TRUE, NEVER)):
        scheduler.add(clause, [0], [kill], owner=clause)
    clauses = np.arange(3)
    for outcome, complete in ((FALSE, [1, 2]), (TRUE, [0, 2]), (FAULT, [])):
        run = scheduler.run(clauses)
        assert run.next() == 0
        assert run.tell(0, outcome).tolist() == complete
        assert run.next() == -1


@each
def test_a_predicate_and_its_negation_kill_each_other(name: str) -> None:
    scheduler = create(name)
    scheduler.add(0, [3, 3], [ON_FALSE, ON_TRUE], owner=0)
    for outcome in (FALSE, TRUE, FAULT):
        simulated = scheduler.simulate(np.array([0]), np.full(4, outcome, np.int8))
        assert (simulated.evaluated, len(simulated.matched)) == (1, 0)


@each
def test_runs_go_on_side_by_side_while_clauses_come_and_go(name: str) -> None:
    rng = random.Random(3)
    instance = random_instance(rng, 30, 10, 1000)
    scheduler = instance.load(create(name))
    survivors = list(instance.clauses)
    clauses = np.array(survivors, np.int64)
    outcomes = [random_outcome(rng, 10) for _ in range(3)]
    wanted = [instance.owners(survivors, outcome) for outcome in outcomes]
    runs = [scheduler.run(clauses) for _ in outcomes]
    found: list[set[int]] = [set() for _ in runs]
    going = True
    while going:
        going = False
        for run, outcome, owners in zip(runs, outcomes, found, strict=True):
            predicate = run.next()
            if predicate >= 0:
                going = True
                for clause in run.tell(predicate, outcome[predicate]).tolist():
                    owners.add(instance.clauses[clause].owner)
                    run.settle(clause, True)
        if survivors:
            scheduler.remove(survivors.pop())
            scheduler.simulate(np.array(survivors, np.int64), np.array(outcomes[0], np.int8))
    assert found == wanted


@each
def test_what_was_not_asked_for_may_be_told(name: str) -> None:
    rng = random.Random(4)
    for _ in range(60):
        instance = random_instance(rng, 20, 8, 1000)
        scheduler = instance.load(create(name))
        survivors = list(instance.clauses)
        outcome = random_outcome(rng, 8)
        run = scheduler.run(np.array(survivors, np.int64))
        assert run.tell(10**6, TRUE).tolist() == [], "nobody has it"
        early = rng.randrange(8)
        matched = run.tell(early, outcome[early]).tolist()
        while (predicate := run.next()) >= 0:
            assert predicate != early
            assert run.next() == predicate, "asking again changes nothing"
            matched += run.tell(predicate, outcome[predicate]).tolist()
        found = {instance.clauses[clause].owner for clause in matched}
        assert found == instance.owners(survivors, outcome)
