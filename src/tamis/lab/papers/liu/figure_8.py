"""Evaluations under different distributions of popularity."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tamis.lab.experiments.experiment import Claim, Judgement, LabScale, LabStep, Observations
from tamis.lab.papers.checks import Points, judge, judge_all, listed, percent
from tamis.lab.papers.liu.checks import evaluated, saving
from tamis.lab.papers.liu.scheduling import (
    NAIVE,
    SEQUENTIAL,
    SUB_ORDER,
    SchedulingExperiment,
    evaluation_axes,
)

EXPONENTS = {"uniform": None, "Zipf 0.8": 0.8, "Zipf 1": 1.0, "Zipf 1.2": 1.2}
SUBSCRIPTIONS, PREDICATES = 20_000, 5_000
_MUCH_FEWER = 0.8  # of the evaluations under uniform popularity, at most
_SAME = 0.1  # naive "cannot benefit": it changes by no more


def _both(found: Observations) -> dict[str, Points]:
    return {name: evaluated(found, name) for name in (SEQUENTIAL, SUB_ORDER)}


def _better_than_uniform(found: Observations) -> Judgement:
    curves = _both(found)
    shares = [
        points[x] / points["uniform"]
        for points in curves.values()
        for x in points
        if x != "uniform"
    ]
    return judge(
        max(shares) <= _MUCH_FEWER,
        "; ".join(f"{name} {listed(points)}" for name, points in curves.items()),
        "A popular predicate helps only if it is often false. In some distribution the popular "
        "ones are true too often here.",
        opposite=min(shares) > 1,
    )


def _better_with_exponent(found: Observations) -> Judgement:
    curves = _both(found)
    holds = [
        points[after] < points[before]
        for points in curves.values()
        for before, after in pairwise(EXPONENTS)
    ]
    return judge_all(
        holds,
        "; ".join(f"{name} {listed(points)}" for name, points in curves.items()),
        "A popular predicate helps only if it is often false. Between some exponents the popular "
        "ones are true too often here.",
    )


def _naive_stays(found: Observations) -> Judgement:
    naive = evaluated(found, NAIVE)
    change = naive["Zipf 1.2"] / naive["uniform"] - 1
    best = min(points["Zipf 1.2"] / points["uniform"] - 1 for points in _both(found).values())
    used = found.curve(NAIVE, "used")
    return judge(
        change >= -_SAME,
        f"naive changes by {percent(change)}, the better of the two by {percent(best)}: "
        f"{listed(naive)}",
        "Under a steep law, popular predicates stand first in many subscriptions, and naive keeps "
        "their results. Fewer predicates are in use as well: "
        f"{used['Zipf 1.2']:,.0f} under Zipf 1.2, {used['uniform']:,.0f} if uniform.",
        opposite=change <= best,
    )


def _savings_rise(found: Observations) -> Judgement:
    holds, seen = [], []
    for name in (SEQUENTIAL, SUB_ORDER):
        saved = saving(found, name)
        holds += [saved[after] > saved[before] for before, after in pairwise(EXPONENTS)]
        seen.append(f"{name} {', '.join(f'{x}: {percent(each)}' for x, each in saved.items())}")
    return judge_all(
        holds,
        "; ".join(seen),
        "Naive gains from the smaller number of predicates in use too. Between some "
        "distributions it gains more than the other two.",
    )


class PredicatePopularity(SchedulingExperiment):
    """20,000 subscriptions of 3 to 5 over 5,000 predicates, of uniform and of Zipf's popularity."""

    id = "LI-8"
    title = "Evaluations and popularity"
    source = "figure 8, section 5.3.4"
    plots = evaluation_axes("popularity of predicates")
    claims = (
        Claim(
            "LI-8.zipf",
            "Both algorithms evaluate much fewer predicates under Zipf's law than under uniform "
            "popularity.",
            _better_than_uniform,
        ),
        Claim(
            "LI-8.exponent",
            "Both algorithms improve further as the exponent rises.",
            _better_with_exponent,
        ),
        Claim("LI-8.naive", "Naive cannot benefit from skewed popularity.", _naive_stays),
        Claim(
            "LI-8.savings",
            "The share that the algorithms save of naive's evaluations rises with the skew.",
            _savings_rise,
        ),
    )

    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        return [
            self.step(
                scale,
                name,
                subscriptions=SUBSCRIPTIONS,
                predicates=PREDICATES,
                exponent=exponent,
            )
            for name, exponent in EXPONENTS.items()
        ]
