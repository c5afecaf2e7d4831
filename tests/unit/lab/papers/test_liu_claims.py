"""Claims on expensive operators, judged on made results: every standing that each can reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tamis.lab.experiments.experiment import Mode, Observation, Standing
from tamis.lab.papers.liu.costs import DifferentCosts
from tamis.lab.papers.liu.figure_4 import UniformSubscriptions
from tamis.lab.papers.liu.figure_5 import ZipfSubscriptions
from tamis.lab.papers.liu.figure_6 import SharedPredicates
from tamis.lab.papers.liu.figure_7 import SubscriptionLengths
from tamis.lab.papers.liu.figure_8 import PredicatePopularity
from tamis.lab.papers.liu.reduction import StatedReduction
from tamis.lab.papers.liu.scheduling import (
    ADAPTIVE,
    NAIVE,
    NAIVE_SET,
    SEQUENTIAL,
    SUB_ORDER,
    UNIFORM,
    ZIPF,
    SchedulingExperiment,
)
from tests.unit.lab.papers.made import counted, judged, observed

CONFIRMED, NOT_CONFIRMED, CONTRARY, UNTESTABLE = Standing


def curve(
    name: str,
    points: Mapping[Any, float],
    panel: str = "",
    *,
    used: float = 1e6,
    fewest: float = 0.0,
) -> list[Observation]:
    values = {x: {"evaluated": [y], "used": used, "fewest": fewest} for x, y in points.items()}
    return observed(name, values, panel=panel)


@pytest.mark.parametrize(
    ("sequential", "ordered", "fewest", "standing"),
    [
        (7_800, 7_000, 5_000, CONFIRMED),
        (21_000, 17_000, 5_000, NOT_CONFIRMED),
        (21_000, 17_000, 9_000, CONTRARY),
    ],
)
def test_stated_counts(
    sequential: float, ordered: float, fewest: float, standing: Standing
) -> None:
    found = judged(
        UniformSubscriptions,
        "LI-4.counts",
        curve(SEQUENTIAL, {80_000: sequential}, fewest=fewest, used=40_000),
        curve(SUB_ORDER, {80_000: ordered}, fewest=fewest, used=40_000),
    )
    assert found.standing is standing
    assert f"possible {fewest:,.0f} to 40,000" in found.seen
    if found.why:
        assert "sequential 21,007" in found.why, "what an independent simulation counted"


def test_counts_above_the_predicates_in_use_are_impossible() -> None:
    curves = [
        curve(name, {30_000: 5_000}, ZIPF, used=14_500) for name in (NAIVE, SEQUENTIAL, SUB_ORDER)
    ]
    assert judged(SharedPredicates, "LI-6.counts", *curves).standing is CONTRARY


@pytest.mark.parametrize(
    ("saved", "standing"),
    [(0.79, CONFIRMED), (0.76, CONFIRMED), (0.4, NOT_CONFIRMED), (-0.1, CONTRARY)],
)
def test_reduction(saved: float, standing: Standing) -> None:
    found = judged(
        UniformSubscriptions,
        "LI-4.reduction",
        curve(NAIVE, {80_000: 1000}),
        curve(NAIVE_SET, {80_000: 900}),
        *(curve(name, {80_000: 1000 * (1 - saved)}) for name in (SEQUENTIAL, SUB_ORDER)),
    )
    assert found.standing is standing


@pytest.mark.parametrize(
    ("kind", "claim", "better", "worse", "panel"),
    [
        (UniformSubscriptions, "LI-4.better", SEQUENTIAL, NAIVE, ""),
        (UniformSubscriptions, "LI-4.order", SUB_ORDER, SEQUENTIAL, ""),
        (ZipfSubscriptions, "LI-5.better", SEQUENTIAL, NAIVE, ZIPF),
        (ZipfSubscriptions, "LI-5.order", SUB_ORDER, SEQUENTIAL, ZIPF),
        (SharedPredicates, "LI-6.order", SUB_ORDER, SEQUENTIAL, ZIPF),
    ],
)
def test_order(
    kind: type[SchedulingExperiment], claim: str, better: str, worse: str, panel: str
) -> None:
    def standing(first: float, second: float) -> Standing:
        low, high = {10: first, 20: second}, {10: 5.0, 20: 9.0}
        return judged(kind, claim, curve(better, low, panel), curve(worse, high, panel)).standing

    assert standing(4, 8) is CONFIRMED
    assert standing(5, 8) is NOT_CONFIRMED
    assert standing(6, 9) is CONTRARY


@pytest.mark.parametrize(("kind", "panel"), [(UniformSubscriptions, ""), (ZipfSubscriptions, ZIPF)])
def test_growth(kind: type[SchedulingExperiment], panel: str) -> None:
    def growing(name: str, power: float, scale: float = 1.0) -> list[Observation]:
        return curve(name, {x: scale * x**power for x in (100, 1_000, 10_000)}, panel)

    def standing(what: str, *curves: list[Observation]) -> Standing:
        return judged(kind, f"{kind.id}.{what}", *curves).standing

    assert standing("linear", growing(NAIVE, 1.0)) is CONFIRMED
    assert standing("linear", growing(NAIVE, 0.6)) is NOT_CONFIRMED
    assert standing("linear", growing(NAIVE, -0.1)) is CONTRARY
    for power, wanted in ((0.6, CONFIRMED), (1.0, NOT_CONFIRMED), (1.3, CONTRARY)):
        curves = (growing(name, power) for name in (SEQUENTIAL, SUB_ORDER))
        assert standing("sublinear", *curves) is wanted
    for scale, wanted in ((0.3, CONFIRMED), (0.8, NOT_CONFIRMED), (1.2, CONTRARY)):
        curves = (growing(name, 1.0, scale) for name in (SEQUENTIAL, SUB_ORDER))
        assert standing("flat", growing(NAIVE, 1.0), *curves) is wanted


@pytest.mark.parametrize(
    ("skewed", "standing"),
    [((5, 6), CONFIRMED), ((5, 9), NOT_CONFIRMED), ((8, 9), CONTRARY)],
)
def test_gains_under_zipf(skewed: tuple[float, float], standing: Standing) -> None:
    curves = [curve(NAIVE, {1: 10, 2: 10}, panel) for panel in (ZIPF, UNIFORM)]
    for name in (SEQUENTIAL, SUB_ORDER):
        curves += [
            curve(name, dict(zip((1, 2), skewed, strict=True)), ZIPF),
            curve(name, {1: 7, 2: 8}, UNIFORM),
        ]
    assert judged(ZipfSubscriptions, "LI-5.gains", *curves).standing is standing


def test_predicates_grow_and_uniform_is_similar() -> None:
    def curves(last: Sequence[float], panel: str) -> list[Observation]:
        names = (NAIVE, SEQUENTIAL, SUB_ORDER)
        starts = (30.0, 20.0, 10.0)
        return [
            each
            for name, first, end in zip(names, starts, last, strict=True)
            for each in curve(name, {2_000: first, 30_000: end}, panel)
        ]

    def standing(claim: str, zipf: Sequence[float], uniform: Sequence[float]) -> Standing:
        both = curves(zipf, ZIPF), curves(uniform, UNIFORM)
        return judged(SharedPredicates, claim, *both).standing

    steep, flat = (90.0, 40.0, 20.0), (50.0, 39.0, 19.0)
    assert standing("LI-6.flat", steep, steep) is CONFIRMED
    assert standing("LI-6.flat", flat, steep) is NOT_CONFIRMED
    assert standing("LI-6.flat", (40.0, 40.0, 20.0), steep) is CONTRARY
    assert standing("LI-6.uniform", steep, flat) is CONFIRMED
    assert standing("LI-6.uniform", steep, (50.0, 51.0, 19.0)) is NOT_CONFIRMED


@pytest.mark.parametrize(
    ("claim", "name"), [("LI-7.sequential", SEQUENTIAL), ("LI-7.naive", NAIVE)]
)
def test_length_changes_little(claim: str, name: str) -> None:
    for last, standing in (
        (112.0, CONFIRMED),
        (80.0, NOT_CONFIRMED),
        (60.0, CONTRARY),
        (150.0, CONTRARY),
    ):
        points = curve(name, {5: 100.0, 7: 100.0, 9: 100.0, 11: last})
        assert judged(SubscriptionLengths, claim, points).standing is standing


def test_naive_takes_almost_all() -> None:
    for count, standing in ((4_900, CONFIRMED), (3_800, NOT_CONFIRMED), (300, CONTRARY)):
        curves = [curve(name, {5: count, 11: count}, used=4_950) for name in (NAIVE, NAIVE_SET)]
        assert judged(SubscriptionLengths, "LI-7.all", *curves).standing is standing


def test_the_gap_between_the_two_algorithms() -> None:
    for last, standing in (
        ((100.0, 95.0), CONFIRMED),  # from 20 predicates or 20 %
        ((200.0, 175.0), NOT_CONFIRMED),  # more predicates, a smaller share
        ((200.0, 150.0), CONTRARY),
    ):
        sequential = curve(SEQUENTIAL, {5: 100.0, 11: last[0]})
        ordered = curve(SUB_ORDER, {5: 80.0, 11: last[1]})
        found = judged(SubscriptionLengths, "LI-7.gap", sequential, ordered)
        assert found.standing is standing


def _popularity(name: str, *counts: float) -> list[Observation]:
    return curve(
        name, dict(zip(("uniform", "Zipf 0.8", "Zipf 1", "Zipf 1.2"), counts, strict=True))
    )


@pytest.mark.parametrize(
    ("counts", "zipf", "exponent"),
    [
        ((90, 70, 60, 50), CONFIRMED, CONFIRMED),
        ((90, 50, 60, 70), CONFIRMED, NOT_CONFIRMED),
        ((90, 80, 70, 60), NOT_CONFIRMED, CONFIRMED),  # fewer, but not much fewer
        ((90, 95, 80, 70), NOT_CONFIRMED, NOT_CONFIRMED),
        ((60, 70, 80, 90), CONTRARY, CONTRARY),
    ],
)
def test_skew_helps(counts: Sequence[float], zipf: Standing, exponent: Standing) -> None:
    both = [_popularity(name, *counts) for name in (SEQUENTIAL, SUB_ORDER)]
    assert judged(PredicatePopularity, "LI-8.zipf", *both).standing is zipf
    assert judged(PredicatePopularity, "LI-8.exponent", *both).standing is exponent


def test_naive_and_skew() -> None:
    both = [_popularity(name, 90, 80, 70, 45) for name in (SEQUENTIAL, SUB_ORDER)]
    for last, standing in ((95, CONFIRMED), (70, NOT_CONFIRMED), (40, CONTRARY)):
        naive = _popularity(NAIVE, 100, 100, 100, last)
        assert judged(PredicatePopularity, "LI-8.naive", naive, *both).standing is standing
    for naive, standing in (
        (_popularity(NAIVE, 100, 100, 100, 100), CONFIRMED),
        (_popularity(NAIVE, 100, 80, 80, 80), NOT_CONFIRMED),
        (_popularity(NAIVE, 100, 80, 60, 30), CONTRARY),
    ):
        assert judged(PredicatePopularity, "LI-8.savings", naive, *both).standing is standing


def test_the_main_figure_cannot_be_tested() -> None:
    curves = [
        each
        for panel in (UNIFORM, ZIPF)
        for name, count in ((NAIVE, 100), (SEQUENTIAL, 60), (SUB_ORDER, 25))
        for each in curve(name, {"equal": count}, panel)
    ]
    ours = counted(ADAPTIVE, "evaluated", {"equal": 24.0}, panel=UNIFORM, mode=Mode.OURS)
    found = judged(StatedReduction, "LI-abs.reduction", curves, ours)
    assert found.standing is UNTESTABLE
    assert "uniform: 40 % to 75 %" in found.seen


def test_costs_in_the_weights() -> None:
    def costs(name: str, *values: float) -> list[Observation]:
        return counted(name, "cost", dict(zip(("uniform", "Zipf 1"), values, strict=True)))

    sequential, hidden = costs(SEQUENTIAL, 10, 10), costs("sub-order, costs hidden", 10, 10)
    for values, order, weights in (
        ((8, 9), CONFIRMED, CONFIRMED),
        ((8, 10.1), NOT_CONFIRMED, NOT_CONFIRMED),
        ((12, 11), CONTRARY, CONTRARY),
    ):
        mine = costs(SUB_ORDER, *values)
        assert judged(DifferentCosts, "LI-cost.order", mine, sequential).standing is order
        assert judged(DifferentCosts, "LI-cost.weights", mine, hidden).standing is weights
