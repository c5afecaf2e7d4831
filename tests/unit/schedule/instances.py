"""Random instances, an oracle that evaluates everything, and the generator of the paper."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tamis.schedule.base import FALSE, FAULT, NEVER, ON_FALSE, ON_TRUE, TRUE, Run, Scheduler

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass
class Clause:
    """As it is given to `Scheduler.add`."""

    predicates: list[int]
    kills: list[int]
    owner: int


@dataclass
class Instance:
    """Clauses by number, over predicates."""

    clauses: dict[int, Clause] = field(default_factory=dict)
    predicates: int = 0

    def load(self, scheduler: Scheduler) -> Scheduler:
        """Give all clauses to a scheduler."""
        for number, clause in self.clauses.items():
            scheduler.add(number, clause.predicates, clause.kills, clause.owner)
        return scheduler

    def complete(self, number: int, outcome: list[int]) -> bool:
        """Whether all literals of a clause come out right."""
        clause = self.clauses[number]
        return all(
            _right(outcome[predicate], kill)
            for predicate, kill in zip(clause.predicates, clause.kills, strict=True)
        )

    def owners(self, survivors: list[int], outcome: list[int]) -> set[int]:
        """The owners of a survivor that completes: evaluate everything, and look."""
        return {self.clauses[s].owner for s in survivors if self.complete(s, outcome)}


def _right(outcome: int, kill: int) -> bool:
    if outcome == FAULT or kill == NEVER:
        return outcome != FAULT
    return outcome == (TRUE if kill == ON_FALSE else FALSE)


def random_clause(rng: random.Random, predicates: int, owners: int) -> Clause:
    """Mostly positive literals; now and then the same predicate twice."""
    chosen = [rng.randrange(predicates) for _ in range(rng.randint(1, 5))]
    kills = [rng.choices([ON_FALSE, ON_TRUE, NEVER], [6, 3, 1])[0] for _ in chosen]
    return Clause(chosen, kills, rng.randrange(owners))


def random_instance(rng: random.Random, clauses: int, predicates: int, owners: int) -> Instance:
    """Clauses with numbers that are not in a row."""
    numbers = rng.sample(range(2 * clauses + 1), clauses)
    made = {number: random_clause(rng, predicates, owners) for number in numbers}
    return Instance(made, predicates)


def random_outcome(rng: random.Random, predicates: int, true: float = 0.5) -> list[int]:
    """What becomes of the predicates: now and then a fault."""
    return [FAULT if rng.random() < 0.05 else int(rng.random() < true) for _ in range(predicates)]


def walk(run: Run, outcome: list[int] | NDArray[np.int8]) -> tuple[list[int], list[int]]:
    """Go through a run step by step; all that completes matches. What it evaluated and matched."""
    trail: list[int] = []
    matched: list[int] = []
    while (predicate := run.next()) >= 0:
        trail.append(predicate)
        complete = run.tell(predicate, int(outcome[predicate])).tolist()
        matched += complete
        for clause in complete:
            run.settle(clause, True)
    return trail, matched


@dataclass
class Workload:
    """Liu et al., section 5.2: subscriptions over predicates, and how often each is true."""

    subscriptions: list[list[int]]
    p: Floats
    cost: Floats

    def load(self, scheduler: Scheduler) -> Scheduler:
        """Give it to a scheduler that knows p and cost."""
        for number, predicates in enumerate(self.subscriptions):
            scheduler.add(number, predicates, [ON_FALSE] * len(predicates), number)
        scheduler.statistics.set(np.arange(len(self.p)), p=self.p, cost=self.cost)
        return scheduler

    def outcomes(self, events: int, seed: int = 0) -> list[NDArray[np.int8]]:
        """Predicates are true independently of each other."""
        rng = np.random.default_rng(seed)
        return [(rng.random(len(self.p)) < self.p).astype(np.int8) for _ in range(events)]


def workload(
    subscriptions: int,
    predicates: int,
    *,
    longest: int = 5,
    zipf: float | None = None,
    equal: bool = False,
    dear: float = 1.0,
    seed: int = 0,
) -> Workload:
    """The generator: popularity uniform or Zipf, p equal or u^gamma such that 0.2 % match, costs
    log-uniform from 1 to `dear`."""
    rng = np.random.default_rng(seed)
    popularity = rng.random(predicates)
    if zipf is not None:
        popularity[:] = np.arange(1, predicates + 1) ** -zipf
    cumulative = np.cumsum(popularity)
    made: list[list[int]] = []
    for length in rng.integers(3, longest, subscriptions, endpoint=True):
        chosen: dict[int, None] = {}
        while len(chosen) < length:
            drawn = np.searchsorted(cumulative, rng.random() * cumulative[-1], "right")
            chosen[min(int(drawn), predicates - 1)] = None
        made.append(list(chosen))
    score = np.full(predicates, -1.0) if equal else np.log1p(-rng.random(predicates))
    sums = np.array([score[chosen].sum() for chosen in made])
    low, high = 0.0, 100.0
    for _ in range(60):
        gamma = (low + high) / 2
        if np.exp(gamma * sums).mean() > 0.002:
            low = gamma
        else:
            high = gamma
    return Workload(made, np.exp(low * score), dear ** rng.random(predicates))
