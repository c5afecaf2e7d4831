"""The conformance checks of schedulers, which raise `AssertionError`.

A check takes a function that makes an empty scheduler. An oracle that evaluates every predicate
says which clauses match.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tamis.schedule.base import FALSE, FAULT, NEVER, ON_FALSE, ON_TRUE, TRUE, Run, Scheduler
from tamis.testing.checks import run_checks

MakeScheduler = Callable[[], Scheduler]
SchedulerCheck = Callable[[MakeScheduler], None]
SCHEDULER_CHECKS: dict[str, SchedulerCheck] = {}


def check_scheduler(make: MakeScheduler) -> None:
    """Run all checks on schedulers made by `make`; the first failure names its check."""
    run_checks(SCHEDULER_CHECKS, make)


def _check(check: SchedulerCheck) -> SchedulerCheck:
    SCHEDULER_CHECKS[check.__name__] = check
    return check


@dataclass
class ScheduledClause:
    """The arguments of `Scheduler.add`."""

    predicates: list[int]
    kills: list[int]
    owner: int


@dataclass
class ScheduledClauses:
    """Clauses by number, over predicates; and the oracle."""

    clauses: dict[int, ScheduledClause] = field(default_factory=dict)
    predicates: int = 0

    def load(self, scheduler: Scheduler) -> Scheduler:
        """Add all clauses to a scheduler."""
        for number, clause in self.clauses.items():
            scheduler.add(number, clause.predicates, clause.kills, clause.owner)
        return scheduler

    def completes(self, number: int, outcome: Sequence[int]) -> bool:
        """Whether no literal of a clause kills it."""
        clause = self.clauses[number]
        return not any(
            _dies(outcome[predicate], kill)
            for predicate, kill in zip(clause.predicates, clause.kills, strict=True)
        )

    def owners(self, survivors: Sequence[int], outcome: Sequence[int]) -> set[int]:
        """The owners of which a survivor completes."""
        return {self.clauses[s].owner for s in survivors if self.completes(s, outcome)}

    def check_matches(
        self, matched: Sequence[int], survivors: Sequence[int], outcome: Sequence[int]
    ) -> None:
        """Compare the clauses that a scheduler matched with the oracle."""
        owners = {self.clauses[clause].owner for clause in matched}
        assert owners == self.owners(survivors, outcome), "it disagrees with the oracle"
        assert all(self.completes(clause, outcome) for clause in matched), "a dead clause matched"


def _dies(outcome: int, kill: int) -> bool:
    return outcome == FAULT or (outcome, kill) in ((FALSE, ON_FALSE), (TRUE, ON_TRUE))


def random_clause(rng: random.Random, predicates: int, owners: int) -> ScheduledClause:
    """Most literals are positive; some predicates occur twice."""
    chosen = [rng.randrange(predicates) for _ in range(rng.randint(1, 5))]
    kills = [rng.choices([ON_FALSE, ON_TRUE, NEVER], [6, 3, 1])[0] for _ in chosen]
    return ScheduledClause(chosen, kills, rng.randrange(owners))


def random_clauses(
    rng: random.Random, clauses: int, predicates: int, owners: int
) -> ScheduledClauses:
    """Clauses with gaps between their numbers."""
    numbers = rng.sample(range(2 * clauses + 1), clauses)
    made = {number: random_clause(rng, predicates, owners) for number in numbers}
    return ScheduledClauses(made, predicates)


def random_outcome(rng: random.Random, predicates: int, true: float = 0.5) -> list[int]:
    """An outcome for each predicate; some are faults."""
    return [FAULT if rng.random() < 0.05 else int(rng.random() < true) for _ in range(predicates)]


def walk(run: Run, outcome: Sequence[int]) -> tuple[list[int], list[int]]:
    """Go through a run step by step; returns the predicates evaluated and the clauses matched."""
    trail: list[int] = []
    matched: list[int] = []
    while (predicate := run.next()) >= 0:
        assert predicate not in trail, "it evaluates a predicate twice"
        trail.append(predicate)
        complete = run.record(predicate, int(outcome[predicate])).tolist()
        matched += complete
        for clause in complete:
            run.settle(clause, True)
    assert run.undecided == 0, "it ends with undecided clauses"
    return trail, matched


def check_event(
    clauses: ScheduledClauses, scheduler: Scheduler, survivors: list[int], outcome: list[int]
) -> None:
    """One event, step by step and in one go, against the oracle."""
    numbers = np.array(survivors, np.int64)
    trail, matched = walk(scheduler.run(numbers), outcome)
    clauses.check_matches(matched, survivors, outcome)
    simulated = scheduler.simulate(numbers, np.array(outcome, np.int8))
    assert simulated.trail.tolist() == trail, "simulate differs from a run"
    assert simulated.matched.tolist() == matched
    assert simulated.evaluated == len(trail)
    assert np.isclose(simulated.cost, scheduler.statistics.cost[trail].sum())


@_check
def agrees_with_the_oracle(make: MakeScheduler) -> None:
    rng = random.Random(1)
    for _ in range(300):
        clauses = random_clauses(
            rng, rng.randint(1, 40), rng.randint(1, 15), rng.choice([1, 5, 1000])
        )
        scheduler = clauses.load(make())
        for predicate in range(clauses.predicates):
            scheduler.statistics.set(predicate, p=rng.random(), cost=10 ** rng.uniform(-1, 2))
        for _ in range(3):
            most = min(len(clauses.clauses), 25)
            survivors = rng.sample(list(clauses.clauses), rng.randint(0, most))
            outcome = random_outcome(rng, clauses.predicates, rng.random())
            check_event(clauses, scheduler, survivors, outcome)
        scheduler.check()


@_check
def agrees_with_many_clauses_over_few_predicates(make: MakeScheduler) -> None:
    rng = random.Random(2)
    for owners in (7, 150, 10_000):
        clauses = random_clauses(rng, 600, 90, owners)
        scheduler = clauses.load(make())
        scheduler.statistics.set(range(90), p=[rng.random() for _ in range(90)])
        for true in (0.1, 0.5, 0.9):
            survivors = rng.sample(list(clauses.clauses), 500)
            check_event(clauses, scheduler, survivors, random_outcome(rng, 90, true))


@_check
def agrees_where_one_call_answers_several_predicates(make: MakeScheduler) -> None:
    rng = random.Random(5)
    sizes = [(rng.randint(1, 40), rng.randint(1, 20), rng.choice([1, 99])) for _ in range(150)]
    for size in [*sizes, (600, 90, 7), (600, 90, 10_000)]:
        clauses = random_clauses(rng, *size)
        scheduler = clauses.load(make())
        calls = [rng.randrange(max(1, clauses.predicates // 3)) for _ in range(clauses.predicates)]
        for predicate, call in enumerate(calls):
            scheduler.assign_call(predicate, call)
        survivors = rng.sample(list(clauses.clauses), rng.randint(0, len(clauses.clauses)))
        outcome = random_outcome(rng, clauses.predicates, rng.random())
        run = scheduler.run(np.array(survivors, np.int64))
        called: set[int] = set()
        matched: list[int] = []
        while (predicate := run.next()) >= 0:
            assert calls[predicate] not in called, "an earlier call has answered it"
            called.add(calls[predicate])
            answered = [t for t, call in enumerate(calls) if call == calls[predicate]]
            outcomes = np.array([outcome[t] for t in answered], np.int8)
            # Some of these predicates are in no survivor.
            for clause in run.record_all(np.array(answered, np.int64), outcomes).tolist():
                matched.append(clause)
                run.settle(clause, matched=True)
        assert run.undecided == 0
        clauses.check_matches(matched, survivors, outcome)
        scheduler.check()


@_check
def a_match_decides_alternatives_and_a_failed_join_does_not(make: MakeScheduler) -> None:
    scheduler = make()
    scheduler.add(0, [0], [ON_FALSE], owner=7)
    scheduler.add(1, [1], [ON_FALSE], owner=7)
    for matched, evaluated in ((True, 1), (False, 2)):
        run = scheduler.run(np.array([0, 1]))
        first = run.next()
        (clause,) = run.record(first, TRUE)
        run.settle(int(clause), matched)
        assert (run.next() < 0) == (evaluated == 1)
        assert run.undecided == evaluated - 1


@_check
def a_fault_kills_every_literal(make: MakeScheduler) -> None:
    scheduler = make()
    for clause, kill in enumerate((ON_FALSE, ON_TRUE, NEVER)):
        scheduler.add(clause, [0], [kill], owner=clause)
    for outcome, complete in ((FALSE, [1, 2]), (TRUE, [0, 2]), (FAULT, [])):
        run = scheduler.run(np.arange(3))
        assert run.next() == 0
        assert run.record(0, outcome).tolist() == complete
        assert run.next() == -1


@_check
def a_predicate_and_its_negation_never_match(make: MakeScheduler) -> None:
    scheduler = make()
    scheduler.add(0, [3, 3], [ON_FALSE, ON_TRUE], owner=0)
    for outcome in (FALSE, TRUE, FAULT):
        simulated = scheduler.simulate(np.array([0]), np.full(4, outcome, np.int8))
        assert (simulated.evaluated, len(simulated.matched)) == (1, 0)


@_check
def runs_are_independent_while_clauses_are_removed(make: MakeScheduler) -> None:
    rng = random.Random(3)
    clauses = random_clauses(rng, 30, 10, 1000)
    scheduler = clauses.load(make())
    survivors = list(clauses.clauses)
    outcomes = [random_outcome(rng, 10) for _ in range(3)]
    wanted = [clauses.owners(survivors, outcome) for outcome in outcomes]
    runs = [scheduler.run(np.array(survivors, np.int64)) for _ in outcomes]
    found: list[set[int]] = [set() for _ in runs]
    active = True
    while active:
        active = False
        for run, outcome, owners in zip(runs, outcomes, found, strict=True):
            predicate = run.next()
            if predicate >= 0:
                active = True
                for clause in run.record(predicate, outcome[predicate]).tolist():
                    owners.add(clauses.clauses[clause].owner)
                    run.settle(clause, True)
        if survivors:
            scheduler.remove(survivors.pop())
            scheduler.simulate(np.array(survivors, np.int64), np.array(outcomes[0], np.int8))
    assert found == wanted


@_check
def results_that_were_not_asked_for_count(make: MakeScheduler) -> None:
    rng = random.Random(4)
    for _ in range(60):
        clauses = random_clauses(rng, 20, 8, 1000)
        scheduler = clauses.load(make())
        survivors = list(clauses.clauses)
        outcome = random_outcome(rng, 8)
        run = scheduler.run(np.array(survivors, np.int64))
        assert run.record(10**6, TRUE).tolist() == [], "no clause contains it"
        early = rng.randrange(8)
        matched = run.record(early, outcome[early]).tolist()
        while (predicate := run.next()) >= 0:
            assert predicate != early, "its result is known"
            assert run.next() == predicate, "a second call of `next` changes nothing"
            matched += run.record(predicate, outcome[predicate]).tolist()
        clauses.check_matches(matched, survivors, outcome)
