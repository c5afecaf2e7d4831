"""The checks that claims of DEXIN share, on made-up observations: each standing is reached."""

from __future__ import annotations

import pytest

from tamis.lab.experiments.experiment import Observations, Standing
from tamis.lab.papers.checks import Check
from tamis.lab.papers.dexin.checks import (
    DEVIATION,
    TIME,
    CurveCourse,
    CurveReading,
    Percentage,
    better_by,
    course,
    courses,
    fraction_of_largest,
    growth,
    lowest,
    lowest_slope,
    same_order,
    share_of,
    slightly_above,
)
from tamis.lab.papers.dexin.curves import ALGORITHMS, OTHERS
from tests.unit.lab.experiments.made_observations import Curves, deviating, level, observations

YES, NO, CONTRARY = Standing.CONFIRMED, Standing.NOT_CONFIRMED, Standing.CONTRARY
WHY = "Because. Really."
SLOW = {name: {1.0: 9.0, 2.0: 18.0} for name in OTHERS}


def judged(check: Check, seen: Observations) -> Standing:
    found = check(seen)
    assert found.seen
    assert bool(found.why) == (found.standing is not YES), "a reason unless it is confirmed"
    return found.standing


def test_growth_is_the_factor_from_first_to_last() -> None:
    assert growth([1, 2, 4, 8]) == pytest.approx(8)
    assert growth([3, 3]) == pytest.approx(1)
    with pytest.raises(KeyError):
        growth([3])


@pytest.mark.parametrize(
    ("values", "taken"),
    [
        ([1, 1.05], CurveCourse.FLAT),
        ([1, 1.2], CurveCourse.RISES),
        ([1.2, 1], CurveCourse.FALLS),
        ([1, 9, 1], CurveCourse.FLAT),
    ],
)
def test_course(values: list[float], taken: CurveCourse) -> None:
    assert course(values) is taken


def test_points_ascend_and_miss_no_curve() -> None:
    seen = observations({"rein": {2: 5, 1: 4}}, refused={"tama": [1, 2]})
    assert list(TIME.points(seen, "rein").items()) == [(1, 4), (2, 5)]
    for absent in ("dexin", "tama"):
        with pytest.raises(KeyError):
            TIME.points(seen, absent)


@pytest.mark.parametrize(
    ("wanted", "rein", "dexin", "standing"),
    [
        (CurveCourse.RISES, 2, 3, YES),
        (CurveCourse.RISES, 2, 1, NO),
        (CurveCourse.RISES, 0.5, 0.5, CONTRARY),
        (CurveCourse.FALLS, 0.5, 0.5, YES),
        (CurveCourse.FALLS, 2, 0.5, NO),
        (CurveCourse.FALLS, 2, 2, CONTRARY),
        (CurveCourse.FLAT, 1, 1.05, YES),
        (CurveCourse.FLAT, 1, 1.5, NO),
        (CurveCourse.FLAT, 0.3, 4, CONTRARY),
    ],
)
def test_courses(wanted: CurveCourse, rein: float, dexin: float, standing: Standing) -> None:
    seen = observations({"rein": {1: 1, 2: rein}, "dexin": {1: 1, 2: dexin}})
    assert judged(courses(("rein", "dexin"), wanted, WHY), seen) is standing


@pytest.mark.parametrize(
    ("dexin", "standing"), [({1: 1, 2: 2}, YES), ({1: 1, 2: 20}, NO), ({1: 10, 2: 20}, CONTRARY)]
)
def test_lowest(dexin: dict[float, float], standing: Standing) -> None:
    assert judged(lowest(WHY), observations({**SLOW, "dexin": dexin})) is standing


def test_lowest_looks_no_further_than_told_and_passes_refusals() -> None:
    curves = {**SLOW, "dexin": {1.0: 1.0, 2.0: 50.0}}
    assert judged(lowest(WHY, up_to=1), observations(curves)) is YES
    curves["tama"] = {1.0: 9.0}
    seen = observations({**curves, "dexin": {1: 1, 2: 2}}, refused={"tama": [2]})
    assert judged(lowest(WHY), seen) is YES


def test_a_step_without_a_rival_is_not_won() -> None:
    curves = {name: {1.0: 9.0} for name in OTHERS}
    refused: dict[str, list[float]] = {name: [2] for name in OTHERS}
    seen = observations({**curves, "dexin": {1: 1, 2: 1}}, refused=refused)
    assert judged(lowest(WHY), seen) is NO


def test_lowest_deviation() -> None:
    assert judged(lowest(WHY, DEVIATION), deviating({**SLOW, "dexin": {1: 1, 2: 2}})) is YES
    assert judged(lowest(WHY, DEVIATION), deviating({**SLOW, "dexin": {1: 10, 2: 9}})) is NO


@pytest.mark.parametrize(("last", "standing"), [(2, YES), (11, NO), (99, CONTRARY)])
def test_lowest_slope(last: float, standing: Standing) -> None:
    curves: Curves = {**SLOW, "rein": {1: 1, 2: 50}, "dexin": {1: 1, 2: last}}
    assert judged(lowest_slope(WHY), observations(curves)) is standing


@pytest.mark.parametrize(("dexin", "standing"), [(4, YES), (8, NO), (11, CONTRARY)])
def test_share_of(dexin: float, standing: Standing) -> None:
    seen = observations(level([1, 2], rein=10, dexin=dexin))
    assert judged(share_of("rein", 0.5, WHY), seen) is standing


def test_two_readings_of_a_percentage() -> None:
    assert Percentage.REDUCTION.of(1, 4) == 0.75
    assert Percentage.SPEEDUP.of(1, 4) == 3
    seen = observations(level([1, 2], be_tree=15, dexin=10))
    assert judged(better_by(0.4, Percentage.REDUCTION, ["be-tree"], WHY), seen) is NO
    assert judged(better_by(0.4, Percentage.SPEEDUP, ["be-tree"], WHY), seen) is YES
    slower = observations(level([1, 2], be_tree=9, dexin=10))
    assert judged(better_by(0.4, Percentage.SPEEDUP, ["be-tree"], WHY), slower) is CONTRARY


def test_the_worst_of_all_steps_and_others() -> None:
    seen = observations({"rein": {1: 20, 2: 30}, "tama": {1: 90, 2: 11}, "dexin": {1: 10, 2: 10}})
    reduction = Percentage.REDUCTION
    assert judged(better_by(0.3, reduction, ["rein", "tama"], WHY), seen) is YES
    worst = better_by(0.3, reduction, ["rein", "tama"], WHY, worst=True)
    assert judged(worst, seen) is NO
    slow = observations({"rein": {1: 20, 2: 30}, "tama": {1: 9, 2: 9}, "dexin": {1: 10, 2: 10}})
    assert judged(worst, slow) is CONTRARY
    once = observations({"rein": {1: 20, 2: 30}, "tama": {1: 9, 2: 99}, "dexin": {1: 10, 2: 10}})
    assert judged(worst, once) is NO


def test_a_step_of_the_paper_in_small() -> None:
    xs = [12_500, 37_500, 50_000, 87_500]
    assert fraction_of_largest(0.75 / 1.75)(xs) == [37_500]
    assert fraction_of_largest(1 / 1.75)(xs) == [50_000]


@pytest.mark.parametrize(
    ("rein", "dexin", "standing"), [(5, 1, YES), (30, 1, NO), (5, 6, NO), (5, 9, CONTRARY)]
)
def test_same_order(rein: float, dexin: float, standing: Standing) -> None:
    """Contrary only if more pairs are turned than not: 9 > 7 and 9 > 5, for example."""
    stated = {"tama": 27.0, "rein": 11.0, "dexin": 1.5}
    seen = deviating(level([1, 2], tama=7, rein=rein, dexin=dexin))
    assert judged(same_order(stated, WHY, DEVIATION), seen) is standing


@pytest.mark.parametrize(("dexin", "standing"), [(11, YES), (20, NO), (9, CONTRARY)])
def test_slightly_above(dexin: float, standing: Standing) -> None:
    memory = CurveReading("memory_mb", unit="MB")
    seen = observations(level([1, 2], rein=10, dexin=dexin), "memory_mb")
    assert judged(slightly_above("rein", 1.5, WHY, memory), seen) is standing


def test_checks_miss_curves() -> None:
    nothing = Observations([])
    for check in (
        lowest(WHY),
        lowest_slope(WHY),
        share_of("rein", 0.5, WHY),
        courses(ALGORITHMS, CurveCourse.RISES, WHY),
        better_by(0.5, Percentage.REDUCTION, OTHERS, WHY),
    ):
        with pytest.raises(KeyError):
            check(nothing)
