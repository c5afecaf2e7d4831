"""Draws of the workload of expensive operators, and schedulers that run on them.

Outcomes are known beforehand, and schedulers get the probability and the cost of each predicate. So
experiments measure their orders, not how fast they learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.errors import TamisError
from tamis.lab.instruments.timing import timed
from tamis.schedule.base import ON_FALSE, Scheduler
from tamis.schedule.registry import create
from tamis.workload import liu

_COST_STREAM = 7  # of random numbers; 0 and 1 are subscriptions and events


class Contender(NamedTuple):
    """A scheduler, and what it is given."""

    scheduler: str
    as_a_set: bool = False  # predicates in the order of a Python set, not as drawn
    costs_known: bool = True


@dataclass
class SchedulerRuns:
    """The figures of one contender over all draws. Costs and times are those of each event."""

    evaluated: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    schedule_ms: list[float] = field(default_factory=list)  # without the first event of a draw
    prepare_ms: list[float] = field(default_factory=list)  # the first event of each draw


class OperatorDraw:
    """Subscriptions over shared predicates, and events with their outcomes."""

    def __init__(
        self,
        subscriptions: int,
        seed: int,
        events: int,
        *,
        factor: float = 1.0,
        **parameters: Any,
    ) -> None:
        """`factor` is the largest cost over the smallest; `parameters` are those of `liu.make`."""
        self.made = liu.make(subscriptions, seed=seed, **parameters)
        self.probabilities = self.made.probabilities
        self.costs = draw_costs(seed, len(self.probabilities), factor)
        lists = self.made.subscriptions["predicates"]
        self.lengths = np.asarray(pc.list_value_length(lists))
        self.flat = np.asarray(pc.list_flatten(lists))
        truths = self.made.truths(events)
        self.outcomes = truths.view(np.int8)
        starts = np.cumsum(self.lengths) - self.lengths
        self.matching = [
            np.flatnonzero(np.logical_and.reduceat(event[self.flat], starts)) for event in truths
        ]

    @property
    def fewest(self) -> int:
        """Evaluations that no scheduler can save, whatever the event.

        Each subscription needs one at least, so those that have nothing in common are a lower
        bound. Short subscriptions with rare predicates come first, which finds many such.
        """
        starts = np.cumsum(self.lengths) - self.lengths
        rarity = np.add.reduceat(np.bincount(self.flat)[self.flat], starts)
        taken = bytearray(len(self.probabilities))
        numbers, begins = self.flat.tolist(), starts.tolist()
        lengths = self.lengths.tolist()
        found = 0
        for at in np.lexsort((rarity, self.lengths)).tolist():
            mine = numbers[begins[at] : begins[at] + lengths[at]]
            if not any(taken[each] for each in mine):
                found += 1
                for each in mine:
                    taken[each] = 1
        return found

    def run(self, contender: Contender, into: SchedulerRuns, **options: Any) -> None:
        """Run a contender on all events; raises if it matches the wrong clauses."""
        scheduler = create(contender.scheduler, **options)
        self._fill(scheduler, contender)
        every = np.arange(len(self.lengths))
        into.prepare_ms.append(1e3 * timed(partial(scheduler.simulate, every, self.outcomes[0])))
        for event, outcome in enumerate(self.outcomes):
            begun = perf_counter()
            found = scheduler.simulate(every, outcome)
            into.schedule_ms.append(1e3 * (perf_counter() - begun))
            if not np.array_equal(np.sort(found.matched), self.matching[event]):
                raise TamisError(
                    f"scheduler {contender.scheduler!r} matches the wrong clauses of event {event}"
                )
            into.evaluated.append(found.evaluated)
            into.cost.append(float(self.costs[found.trail].sum()))

    def _fill(self, scheduler: Scheduler, contender: Contender) -> None:
        """Add all subscriptions to a scheduler, as a clause each."""
        numbers, begin = self.flat.tolist(), 0
        for clause, length in enumerate(self.lengths.tolist()):
            kills = [ON_FALSE] * length
            mine: Sequence[int] = numbers[begin : begin + length]
            scheduler.add(clause, list(set(mine)) if contender.as_a_set else mine, kills, clause)
            begin += length
        every = np.arange(len(self.probabilities))
        costs = self.costs if contender.costs_known else np.ones(len(self.costs))
        scheduler.statistics.set(every, p=self.probabilities, cost=costs)


def draw_costs(seed: int, predicates: int, factor: float) -> NDArray[np.float64]:
    """Costs from 1 to `factor`, log-uniform."""
    rng = np.random.default_rng((seed, _COST_STREAM))
    costs: NDArray[np.float64] = np.exp(rng.random(predicates) * np.log(factor))
    return costs
