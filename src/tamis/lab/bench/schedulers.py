"""How many predicates each scheduler evaluates, in the settings of Liu et al. (DEBS 2007).

The paper counts the predicates evaluated for an event while the number of subscriptions, the number
of predicates, the length of subscriptions or the skew of popularity varies. Its counts cannot come
from the generator it describes. So results are compared with the counts of an independent
simulation of that generator, listed in `CASES`. The simulation drew each workload once and averaged
over few events. Under Zipf a handful of predicates decides much, and two draws of one setting
differ by a tenth, so small settings are drawn several times here.

The paper leaves open the order in which a subscription lists its predicates, which matters most to
`naive`. As drawn, each subscription has its own order. The counts listed for naive come out if a
subscription is a Python set, in Python's order of iteration: within half a percent for uniform
popularity, and within a tenth under Zipf, where two draws differ by as much. Numbers that are equal
modulo 8, or modulo 32 in a larger set, have the same place in all such sets; so subscriptions tend
to fail by the same predicates, and naive evaluates fewer. Both orders are measured.

Outcomes are known beforehand, and schedulers get the probability and the cost of each predicate. So
this measures their orders, not how fast they learn. Where costs differ, a second run hides the
costs, as for a scheduler that assumes equal ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import mean, median
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.errors import TamisError
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.timing import timed
from tamis.lab.results.records import AS_A_SET, AS_DRAWN, COSTS, SCHEDULERS, Goal, SchedulerResult
from tamis.schedule.base import ON_FALSE, Scheduler, Simulation
from tamis.schedule.registry import create
from tamis.workload import liu

SCHEDULE = "schedule"
_CONTENDERS = (
    ("naive", AS_DRAWN),
    ("naive", AS_A_SET),
    *((name, AS_DRAWN) for name in SCHEDULERS[1:]),
)
_LARGEST = 80_000  # subscriptions of the largest setting
_ALL_DRAWS = 100_000  # subscriptions in all draws of a setting, about
_EVENTS = 20  # of each draw
_LEAST = 12  # subscriptions or predicates of a reduced setting
_MS_GOAL = Goal(5.0, at_most=True)  # an event, with 80,000 subscriptions over 40,000 predicates
_COST_SHARE = 0.5  # of the cost of sub-order, where costs differ
_COST_STREAM = 7  # of random numbers; 0 and 1 are subscriptions and events


class SchedulerCase(NamedTuple):
    """A setting, and the counts of an independent simulation in the order of SCHEDULERS."""

    figure: str
    subscriptions: int
    predicates: int
    longest: int = 5
    exponent: float | None = None  # of Zipf's law; None: uniform popularity
    probabilities: str = "heterogeneous"
    listed: tuple[float, float, float, float] | None = None
    factor: float = 1.0  # of the largest cost to the smallest
    costs_known: bool = True  # to the schedulers
    chains: str = "cost"  # how sub-order orders chains

    @property
    def title(self) -> str:
        """Subscriptions over predicates, popularity, and other parameters that vary."""
        parts = [
            f"{self.subscriptions:,} / {self.predicates:,}",
            "uniform" if self.exponent is None else f"Zipf {self.exponent:g}",
        ]
        if self.figure == "LI-7":
            parts.append(f"to {self.longest}")
        if self.figure == "table":
            parts.append("equal p" if self.probabilities == "equal" else "different p")
        if self.factor > 1:
            parts.append(f"×{self.factor:,g}" + ("" if self.costs_known else ", hidden"))
        if self.chains == "selectivity":
            parts.append("chains by p")
        return ", ".join(parts)

    def scaled(self, setting: BenchSetting) -> SchedulerCase:
        """The case at a smaller scale, without counts, if the setting wants fewer subscriptions."""
        if setting.most_subscriptions >= _LARGEST:
            return self
        share = setting.most_subscriptions / _LARGEST
        sizes = (max(_LEAST, int(size * share)) for size in (self.subscriptions, self.predicates))
        fewer, narrower = sizes
        return self._replace(subscriptions=fewer, predicates=narrower, listed=None)

    def draws(self, setting: BenchSetting) -> int:
        """The number of draws. Large settings vary less."""
        return max(1, min(setting.repeats, _ALL_DRAWS // self.subscriptions))


_LISTED_BY_SUBSCRIPTIONS = {
    2_000: (2304, 2205, 1760, 1884),
    10_000: (9248, 7919, 5865, 5654),
    20_000: (14973, 12170, 9054, 8386),
    40_000: (21635, 16696, 12730, 11697),
    80_000: (28001, 21007, 17093, 15333),
}
_LISTED_BY_PREDICATES = {
    2_000: (1590, 850, 782, 685),
    10_000: (3735, 1573, 1457, 1251),
    30_000: (5698, 2180, 2140, 1764),
}
_LISTED_BY_LENGTH = {
    5: (2767, 1284, 1219, 1055),
    7: (2530, 1135, 1054, 902),
    9: (2089, 832, 807, 653),
    11: (2052, 783, 716, 618),
}
_LISTED_BY_EXPONENT = {
    None: (4097, 3092, 2629, 2393),
    0.8: (3651, 2048, 1870, 1576),
    1.0: (2553, 1125, 1004, 898),
    1.2: (1589, 547, 531, 468),
}
CASES: tuple[SchedulerCase, ...] = (
    *(SchedulerCase("LI-4", n, 40_000, listed=it) for n, it in _LISTED_BY_SUBSCRIPTIONS.items()),
    *(SchedulerCase("LI-5", n, 40_000, exponent=1.0) for n in _LISTED_BY_SUBSCRIPTIONS),
    *(
        SchedulerCase("LI-6", 20_000, k, exponent=1.0, listed=it)
        for k, it in _LISTED_BY_PREDICATES.items()
    ),
    *(
        SchedulerCase("LI-7", 20_000, 5_000, most, exponent=1.0, listed=it)
        for most, it in _LISTED_BY_LENGTH.items()
    ),
    *(
        SchedulerCase("LI-8", 20_000, 5_000, exponent=a, listed=it)
        for a, it in _LISTED_BY_EXPONENT.items()
    ),
    SchedulerCase("table", 80_000, 40_000, 5, None, "equal", (28_000, 21_100, 16_600, 15_400)),
    SchedulerCase(
        "table", 80_000, 40_000, 5, None, "heterogeneous", (27_900, 21_000, 17_100, 15_300)
    ),
    SchedulerCase("table", 20_000, 30_000, 5, 1.0, "equal", (5_400, 2_000, 1_700, 1_650)),
    SchedulerCase("table", 20_000, 30_000, 5, 1.0, "heterogeneous", (6_200, 2_400, 2_300, 2_000)),
    SchedulerCase("table", 20_000, 5_000, 5, 1.0, "heterogeneous", (2_800, 1_280, 1_190, 1_040)),
    SchedulerCase(COSTS, 80_000, 40_000, factor=1_000),
    SchedulerCase(COSTS, 80_000, 40_000, factor=1_000, chains="selectivity"),
    SchedulerCase(COSTS, 80_000, 40_000, factor=1_000, costs_known=False),
    SchedulerCase(COSTS, 20_000, 5_000, exponent=1.0, factor=1_000),
    SchedulerCase(COSTS, 20_000, 5_000, exponent=1.0, factor=1_000, chains="selectivity"),
    SchedulerCase(COSTS, 20_000, 5_000, exponent=1.0, factor=1_000, costs_known=False),
)


def measure(setting: BenchSetting) -> Iterator[SchedulerResult | str]:
    """Each scheduler in each setting."""
    few = SchedulerCase("", 30, 20)
    for scheduler, written in _CONTENDERS:  # compiles the kernels
        _try(_Drawn(few, setting.seed, 2), scheduler, written, _ContenderRuns())
    for full in CASES:
        case = full.scaled(setting)
        yield f"{case.figure}: {case.title}"
        yield from _measured(setting, case)


def steps(setting: BenchSetting) -> int:
    """The number of results and steps."""
    return len(CASES) * (1 + len(_CONTENDERS))


@dataclass
class _ContenderRuns:
    """The figures of one contender over all draws."""

    evaluated: list[float] = field(default_factory=list)  # mean of each draw
    cost: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # of each event
    firsts: list[float] = field(default_factory=list)


class _Drawn:
    """A draw of a workload: subscriptions, and events with their outcomes."""

    def __init__(self, case: SchedulerCase, seed: int, events: int) -> None:
        self.made = liu.make(
            case.subscriptions,
            seed=seed,
            predicates=case.predicates,
            longest=case.longest,
            popularity="uniform" if case.exponent is None else "zipf",
            exponent=1.0 if case.exponent is None else case.exponent,
            probabilities=case.probabilities,
        )
        self.costs_known, self.chains = case.costs_known, case.chains
        self.probabilities = self.made.probabilities
        self.costs = _costs(seed, len(self.probabilities), case.factor)
        lists = self.made.subscriptions["predicates"]
        self.lengths = np.asarray(pc.list_value_length(lists))
        self.flat = np.asarray(pc.list_flatten(lists))
        truths = self.made.truths(events)
        self.outcomes = truths.astype(np.int8)
        starts = np.cumsum(self.lengths) - self.lengths
        self.matching = [
            np.flatnonzero(np.logical_and.reduceat(event[self.flat], starts)) for event in truths
        ]

    def fill(self, scheduler: Scheduler, written: str) -> None:
        """Add all subscriptions to a scheduler, as a clause each."""
        numbers, begin = self.flat.tolist(), 0
        for clause, length in enumerate(self.lengths.tolist()):
            kills = [ON_FALSE] * length
            mine = numbers[begin : begin + length]
            scheduler.add(clause, list(set(mine)) if written == AS_A_SET else mine, kills, clause)
            begin += length
        every = np.arange(len(self.probabilities))
        costs = self.costs if self.costs_known else np.ones(len(self.costs))
        scheduler.statistics.set(every, p=self.probabilities, cost=costs)


def _costs(seed: int, predicates: int, factor: float) -> NDArray[np.float64]:
    """Costs from 1 to `factor`, log-uniform."""
    rng = np.random.default_rng((seed, _COST_STREAM))
    costs: NDArray[np.float64] = np.exp(rng.random(predicates) * np.log(factor))
    return costs


def _measured(setting: BenchSetting, case: SchedulerCase) -> Iterator[SchedulerResult]:
    draws, events = case.draws(setting), min(_EVENTS, setting.batch)
    tried = {contender: _ContenderRuns() for contender in _CONTENDERS}
    used = []
    for draw in range(draws):
        drawn = _Drawn(case, setting.seed + draw, events)
        used.append(drawn.made.used)
        for contender in _CONTENDERS:
            _try(drawn, *contender, tried[contender])
    full = setting.most_subscriptions >= _LARGEST
    large = case.subscriptions == _LARGEST and case.exponent is None
    for (scheduler, written), it in tried.items():
        cost_goal = None
        if full and case.factor > 1 and case.costs_known and scheduler == "adaptive":
            limit = _COST_SHARE * mean(tried["sub-order", AS_DRAWN].cost)
            cost_goal = Goal(limit, at_most=True)
        goal = None
        if case.listed is not None and (scheduler, written) != ("naive", AS_DRAWN):
            goal = Goal(case.listed[SCHEDULERS.index(scheduler)], at_most=True)
        yield SchedulerResult(
            SCHEDULE,
            case.figure,
            case.title,
            scheduler,
            written,
            case.subscriptions,
            case.predicates,
            mean(used),
            mean(it.evaluated),
            min(it.evaluated),
            max(it.evaluated),
            mean(it.cost),
            median(it.seconds) * 1e3,
            median(it.firsts) * 1e3,
            draws,
            events,
            goal,
            cost_goal,
            _MS_GOAL if large else None,
            {
                "longest": case.longest,
                "exponent": case.exponent,
                "probabilities": case.probabilities,
                "factor": case.factor,
                "told": case.costs_known,
                "chains": case.chains,
            },
        )


def _try(drawn: _Drawn, name: str, written: str, into: _ContenderRuns) -> None:
    """Run a contender on a draw; raises if it matches the wrong clauses."""
    scheduler = create(name, **({"chains": drawn.chains} if name == "sub-order" else {}))
    drawn.fill(scheduler, written)
    every = np.arange(len(drawn.lengths))
    into.firsts.append(timed(partial(scheduler.simulate, every, drawn.outcomes[0])))
    found: list[Simulation] = []
    for event, outcome in enumerate(drawn.outcomes):
        begun = perf_counter()
        found.append(scheduler.simulate(every, outcome))
        into.seconds.append(perf_counter() - begun)
        if not np.array_equal(np.sort(found[-1].matched), drawn.matching[event]):
            raise TamisError(f"scheduler {name!r} matches the wrong clauses of event {event}")
    into.evaluated.append(mean(each.evaluated for each in found))
    into.cost.append(mean(float(drawn.costs[each.trail].sum()) for each in found))
