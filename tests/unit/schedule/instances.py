"""A scheduler in Python, and the generator of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.schedule.base import ON_FALSE, Scheduler
from tamis.schedule.python_scheduler import EventState, PythonScheduler
from tamis.schedule.registry import schedulers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


NAMES = [*schedulers(), "in-python"]  # the last one is registered by `conftest`


class InPython(PythonScheduler):
    """The predicate that is expected to kill most for its cost."""

    def choose(self, state: EventState) -> int:
        def score(predicate: int) -> float:
            clauses = state.clauses(predicate)
            kills = sum(state.kill_probability(predicate, clause) for clause in clauses)
            return kills / max(state.cost(predicate), 1e-9)

        return max(state.open, key=score)


@dataclass
class Workload:
    """Liu et al., section 5.2: subscriptions over predicates, and how often each is true."""

    subscriptions: list[list[int]]
    p: Floats
    cost: Floats

    def load(self, scheduler: Scheduler) -> Scheduler:
        """Add all clauses to a scheduler, and set p and cost."""
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
