"""How many predicates each scheduler evaluates, on the settings of the paper of operators.

Liu et al. (DEBS 2007) count predicates evaluated an event while the number of subscriptions, the
number of predicates, the length of subscriptions or the skew of popularity varies. Their counts
cannot come from the generator that they describe, so what a run is compared with are counts of an
independent simulation of that generator; `CASES` lists them. That simulation drew a workload once
and took the mean of few events. Under Zipf a handful of predicates decides much, and two draws of
one setting differ by a tenth: here small settings are drawn several times.

One thing the paper leaves open matters to `naive` above all: the order in which a subscription
names its predicates. As they are drawn, each has an order of its own. The counts listed for naive
come out where a subscription is a set of Python, gone through as Python does: within half a percent
for uniform popularity, and within a tenth under Zipf, where two draws differ by as much. Numbers
that are equal modulo 8, or modulo 32 in a larger set, stand at the same place in all such sets; so
subscriptions tend to fail by the same predicates, and naive evaluates fewer. Both are measured.

Outcomes are known beforehand, and schedulers are told how often each predicate is true and what it
costs; so this shows what their orders are worth, and not how fast they learn. Where costs differ,
the same is measured again without telling the costs, as a scheduler for equal costs would have it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean, median
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.errors import TamisError
from tamis.lab.progress import Step
from tamis.lab.records import Goal, Schedule
from tamis.lab.setting import Setting
from tamis.schedule.base import ON_FALSE, Scheduler, Simulation
from tamis.schedule.registry import create
from tamis.workload import OperatorWorkload, liu

SCHEDULE = "schedule"
SCHEDULERS = ("naive", "sequential", "sub-order", "adaptive")  # the later, the fewer evaluations
COSTS = "costs"
AS_DRAWN, AS_A_SET = "as drawn", "as a set"
_CONTENDERS = (
    ("naive", AS_DRAWN),
    ("naive", AS_A_SET),
    *((name, AS_DRAWN) for name in SCHEDULERS[1:]),
)
_LARGEST = 80_000  # subscriptions of the largest setting
_IN_ALL = 100_000  # subscriptions in all draws of a setting, about
_EVENTS = 20  # of each draw
_LEAST = 12  # subscriptions or predicates of a setting made smaller
_MS_GOAL = Goal(5.0, at_most=True)  # an event, with 80,000 subscriptions over 40,000 predicates
_COST_SHARE = 0.5  # of what sub-order takes, where costs differ
_COST_STREAM = 7  # below the seed; 0 and 1 are subscriptions and events


class Case(NamedTuple):
    """One setting, and what an independent simulation evaluated: in the order of SCHEDULERS."""

    figure: str
    subscriptions: int
    predicates: int
    longest: int = 5
    exponent: float | None = None  # of Zipf's law; None: popularity is uniform
    probabilities: str = "heterogeneous"
    listed: tuple[float, float, float, float] | None = None
    factor: float = 1.0  # between the least and the largest cost
    told: bool = True  # whether schedulers know the costs
    chains: str = "cost"  # by what sub-order orders chains

    @property
    def title(self) -> str:
        """Subscriptions over predicates, popularity, and what else is not the same everywhere."""
        parts = [
            f"{self.subscriptions:,} / {self.predicates:,}",
            "uniform" if self.exponent is None else f"Zipf {self.exponent:g}",
        ]
        if self.figure == "LI-7":
            parts.append(f"to {self.longest}")
        if self.figure == "table":
            parts.append("equal p" if self.probabilities == "equal" else "different p")
        if self.factor > 1:
            parts.append(f"×{self.factor:,g}" + ("" if self.told else ", not told"))
        if self.chains == "selectivity":
            parts.append("chains by p")
        return ", ".join(parts)

    def scaled(self, setting: Setting) -> Case:
        """The same on a smaller scale, where fewer subscriptions are wanted; nothing is listed."""
        if setting.most_subscriptions >= _LARGEST:
            return self
        share = setting.most_subscriptions / _LARGEST
        sizes = (max(_LEAST, int(size * share)) for size in (self.subscriptions, self.predicates))
        fewer, narrower = sizes
        return self._replace(subscriptions=fewer, predicates=narrower, listed=None)

    def draws(self, setting: Setting) -> int:
        """How often it is drawn; what is large varies less."""
        return max(1, min(setting.repeats, _IN_ALL // self.subscriptions))


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
CASES: tuple[Case, ...] = (
    *(Case("LI-4", n, 40_000, listed=it) for n, it in _LISTED_BY_SUBSCRIPTIONS.items()),
    *(Case("LI-5", n, 40_000, exponent=1.0) for n in _LISTED_BY_SUBSCRIPTIONS),
    *(Case("LI-6", 20_000, k, exponent=1.0, listed=it) for k, it in _LISTED_BY_PREDICATES.items()),
    *(
        Case("LI-7", 20_000, 5_000, most, exponent=1.0, listed=it)
        for most, it in _LISTED_BY_LENGTH.items()
    ),
    *(Case("LI-8", 20_000, 5_000, exponent=a, listed=it) for a, it in _LISTED_BY_EXPONENT.items()),
    Case("table", 80_000, 40_000, 5, None, "equal", (28_000, 21_100, 16_600, 15_400)),
    Case("table", 80_000, 40_000, 5, None, "heterogeneous", (27_900, 21_000, 17_100, 15_300)),
    Case("table", 20_000, 30_000, 5, 1.0, "equal", (5_400, 2_000, 1_700, 1_650)),
    Case("table", 20_000, 30_000, 5, 1.0, "heterogeneous", (6_200, 2_400, 2_300, 2_000)),
    Case("table", 20_000, 5_000, 5, 1.0, "heterogeneous", (2_800, 1_280, 1_190, 1_040)),
    Case(COSTS, 80_000, 40_000, factor=1_000),
    Case(COSTS, 80_000, 40_000, factor=1_000, chains="selectivity"),
    Case(COSTS, 80_000, 40_000, factor=1_000, told=False),
    Case(COSTS, 20_000, 5_000, exponent=1.0, factor=1_000),
    Case(COSTS, 20_000, 5_000, exponent=1.0, factor=1_000, chains="selectivity"),
    Case(COSTS, 20_000, 5_000, exponent=1.0, factor=1_000, told=False),
)


def schedules(setting: Setting) -> Iterator[Schedule | Step]:
    """Each setting, and each scheduler on it."""
    few = Case("", 30, 20)
    for scheduler, written in _CONTENDERS:  # what is compiled on first use is compiled here
        _try(_Drawn(few, setting.seed, 2), scheduler, written, _Tried())
    for full in CASES:
        case = full.scaled(setting)
        yield Step(SCHEDULE, f"{case.figure}: {case.title}")
        yield from _measured(setting, case)


def steps(setting: Setting) -> int:
    """How many results and steps there will be."""
    return len(CASES) * (1 + len(_CONTENDERS))


def exceptions(found: Sequence[Schedule]) -> list[str]:
    """Where a scheduler that should do better does worse, by what it evaluates or what it costs."""
    said = []
    for each in by_setting(found):
        drawn = {one.scheduler: one for one in each if one.written == AS_DRAWN}
        for worse, better in pairwise(name for name in SCHEDULERS if name in drawn):
            less, more = (_spent(drawn[name]) for name in (worse, better))
            if more > less:
                said.append(
                    f"{each[0].figure}, {each[0].title}: {better} {more:,.0f}, {worse} {less:,.0f}"
                )
    return said


def by_setting(found: Sequence[Schedule]) -> list[list[Schedule]]:
    """The results of each setting."""
    groups: dict[tuple[str, str], list[Schedule]] = defaultdict(list)
    for each in found:
        groups[each.figure, each.title].append(each)
    return list(groups.values())


def _spent(found: Schedule) -> float:
    return found.cost if found.figure == COSTS else found.evaluated


@dataclass
class _Tried:
    """What became of one contender, over all draws."""

    evaluated: list[float] = field(default_factory=list)  # the mean of a draw
    cost: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # each event
    firsts: list[float] = field(default_factory=list)


class _Drawn:
    """One draw of a workload: its subscriptions in both orders, and events with their answers."""

    def __init__(self, case: Case, seed: int, events: int) -> None:
        self.made, self.told, self.chains = _make(case, seed), case.told, case.chains
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
        """Give a scheduler all subscriptions, a clause each."""
        numbers, begin = self.flat.tolist(), 0
        for clause, length in enumerate(self.lengths.tolist()):
            kills = [ON_FALSE] * length
            mine = numbers[begin : begin + length]
            scheduler.add(clause, list(set(mine)) if written == AS_A_SET else mine, kills, clause)
            begin += length
        every = np.arange(len(self.probabilities))
        costs = self.costs if self.told else np.ones(len(self.costs))
        scheduler.statistics.set(every, p=self.probabilities, cost=costs)


def _make(case: Case, seed: int) -> OperatorWorkload:
    return liu.make(
        case.subscriptions,
        seed=seed,
        predicates=case.predicates,
        longest=case.longest,
        popularity="uniform" if case.exponent is None else "zipf",
        exponent=1.0 if case.exponent is None else case.exponent,
        probabilities=case.probabilities,
    )


def _costs(seed: int, predicates: int, factor: float) -> NDArray[np.float64]:
    """From 1 to `factor`, each order of magnitude as likely as the others."""
    rng = np.random.default_rng((seed, _COST_STREAM))
    costs: NDArray[np.float64] = np.exp(rng.random(predicates) * np.log(factor))
    return costs


def _measured(setting: Setting, case: Case) -> Iterator[Schedule]:
    draws, events = case.draws(setting), min(_EVENTS, setting.batch)
    tried = {contender: _Tried() for contender in _CONTENDERS}
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
        if full and case.factor > 1 and case.told and scheduler == "adaptive":
            limit = _COST_SHARE * mean(tried["sub-order", AS_DRAWN].cost)
            cost_goal = Goal(limit, at_most=True)
        goal = None
        if case.listed is not None and (scheduler, written) != ("naive", AS_DRAWN):
            goal = Goal(case.listed[SCHEDULERS.index(scheduler)], at_most=True)
        yield Schedule(
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
                "told": case.told,
                "chains": case.chains,
            },
        )


def _try(drawn: _Drawn, name: str, written: str, into: _Tried) -> None:
    """One contender on one draw; raises if its answers are not those of the outcomes."""
    scheduler = create(name, **({"chains": drawn.chains} if name == "sub-order" else {}))
    drawn.fill(scheduler, written)
    every = np.arange(len(drawn.lengths))
    begun = perf_counter()
    scheduler.simulate(every, drawn.outcomes[0])
    into.firsts.append(perf_counter() - begun)
    found: list[Simulation] = []
    for event, outcome in enumerate(drawn.outcomes):
        begun = perf_counter()
        found.append(scheduler.simulate(every, outcome))
        into.seconds.append(perf_counter() - begun)
        if not np.array_equal(np.sort(found[-1].matched), drawn.matching[event]):
            raise TamisError(f"{name} matches other clauses of event {event} than it should")
    into.evaluated.append(mean(each.evaluated for each in found))
    into.cost.append(mean(float(drawn.costs[each.trail].sum()) for each in found))
