"""Checks that several claims of DEXIN share.

A claim holds, or its opposite holds, or neither. Times vary by a few per cent from run to run, so a
curve rises or falls only if it changes by a tenth over its whole length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from statistics import fmean

import numpy as np

from tamis.lab.experiments.experiment import Judgement, Mode, Observations
from tamis.lab.papers.checks import Check, judge
from tamis.lab.papers.dexin.curves import ALGORITHMS, OTHERS

Points = dict[float, float]
_CHANGE = 1.1  # a factor over the length of a curve that is more than noise
_FAR = 2.0  # a curve that changes by this factor is the opposite of flat


class CurveCourse(StrEnum):
    """What a curve does from its first to its last point."""

    RISES = "rises"
    FLAT = "stays flat"
    FALLS = "falls"


@dataclass(frozen=True)
class CurveReading:
    """Which numbers of the observations a check looks at."""

    quantity: str = "match_ms"
    panel: str = ""
    deviation: bool = False
    mode: Mode = Mode.PAPER
    unit: str = "ms"

    def points(self, seen: Observations, name: str) -> Points:
        """The curve by ascending x. Raises `KeyError` if nothing was measured."""
        found = {
            float(each.x): (
                each.deviation(self.quantity) if self.deviation else each.value(self.quantity)
            )
            for each in seen.all
            if (each.curve, each.mode, each.panel) == (name, self.mode, self.panel)
            and each.has(self.quantity)
        }
        if not found:
            raise KeyError(f"{name} ({self.mode}) has no {self.quantity}")
        return dict(sorted(found.items()))

    def values(self, seen: Observations, name: str) -> list[float]:
        return list(self.points(seen, name).values())


TIME = CurveReading()
DEVIATION = CurveReading(deviation=True)


def growth(values: Sequence[float]) -> float:
    """The factor from the first to the last point, along a line through the logarithms."""
    if len(values) < 2:
        raise KeyError("a course needs two points")
    logs = np.log(np.maximum(values, 1e-12))
    slope = np.polyfit(np.arange(len(values)), logs, 1)[0]
    return float(np.exp(slope * (len(values) - 1)))


def course(values: Sequence[float]) -> CurveCourse:
    factor = growth(values)
    if factor >= _CHANGE:
        return CurveCourse.RISES
    return CurveCourse.FALLS if factor <= 1 / _CHANGE else CurveCourse.FLAT


def listed(figures: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {figure}" for name, figure in figures.items())


def shared(curves: Iterable[Points]) -> list[float]:
    """The x that all curves have: a curve that refused a step is not compared there."""
    common = set.intersection(*(set(each) for each in curves))
    if not common:
        raise KeyError("the curves share no step")
    return sorted(common)


def factors(curves: Mapping[str, Sequence[float]]) -> str:
    return listed({name: f"{growth(values):.2f}-fold" for name, values in curves.items()})


def courses(
    names: Iterable[str], wanted: CurveCourse, why: str, reading: CurveReading = TIME
) -> Check:
    """All these curves take the same course."""
    names = tuple(names)

    def check(seen: Observations) -> Judgement:
        curves = {name: reading.values(seen, name) for name in names}
        taken = [course(values) for values in curves.values()]
        if wanted is CurveCourse.FLAT:
            ends = [growth(values) for values in curves.values()]
            opposite = all(each >= _FAR or each <= 1 / _FAR for each in ends)
        else:
            other = CurveCourse.FALLS if wanted is CurveCourse.RISES else CurveCourse.RISES
            opposite = all(each is other for each in taken)
        holds = all(each is wanted for each in taken)
        return judge(holds, f"from first to last: {factors(curves)}", why, opposite=opposite)

    return check


def lowest(
    why: str,
    reading: CurveReading = TIME,
    *,
    others: Iterable[str] = OTHERS,
    up_to: float = float("inf"),
) -> Check:
    """DEXIN's curve is below all others at every x, up to some x. The opposite: it is so at no x.

    A curve that refused a step is not compared there. A step that all others refused is not won.
    """
    others = tuple(others)

    def check(seen: Observations) -> Judgement:
        own = reading.points(seen, "dexin")
        rivals = {name: reading.points(seen, name) for name in others}
        xs = [x for x in own if x <= up_to]
        theirs = {x: [points[x] for points in rivals.values() if x in points] for x in xs}
        won = [x for x in xs if theirs[x] and own[x] <= min(theirs[x])]
        figures = {"dexin": f"{fmean(own[x] for x in xs):.3g}"}
        for name, points in rivals.items():
            common = [points[x] for x in xs if x in points]
            figures[name] = f"{fmean(common):.3g}" if common else "refused"
        said = (
            f"lowest at {len(won)} of {len(xs)} steps; means in {reading.unit}: {listed(figures)}"
        )
        return judge(len(won) == len(xs), said, why, opposite=not won)

    return check


def lowest_slope(why: str, reading: CurveReading = TIME) -> Check:
    """DEXIN's curve has the lowest slope."""

    def check(seen: Observations) -> Judgement:
        slopes = {}
        for name in ALGORITHMS:
            points = reading.points(seen, name)
            if len(points) < 2:
                raise KeyError(f"{name} has one step only")
            slopes[name] = float(np.polyfit(list(points), list(points.values()), 1)[0])
        unit = max(abs(each) for each in slopes.values()) or 1.0
        said = listed({name: f"{each / unit:.1%}" for name, each in slopes.items()})
        least, most = min(slopes, key=slopes.__getitem__), max(slopes, key=slopes.__getitem__)
        text = f"slopes, in parts of the steepest: {said}"
        return judge(least == "dexin", text, why, opposite=most == "dexin")

    return check


def share_of(other: str, stated: float, why: str) -> Check:
    """DEXIN's mean over all steps is at most the stated share of another's."""

    def check(seen: Observations) -> Judgement:
        share = mean_ratio(seen, "dexin", other, TIME)
        said = f"{share:.1%} of {other}"
        return judge(share <= _CHANGE * stated, said, why, opposite=share > 1)

    return check


class Percentage(StrEnum):
    """What "better by p per cent" can mean."""

    REDUCTION = "reduction"  # 1 - own / other
    SPEEDUP = "speedup"  # other / own - 1

    @property
    def formula(self) -> str:
        return "1 - own/other" if self is Percentage.REDUCTION else "other/own - 1"

    def of(self, own: float, other: float) -> float:
        return 1 - own / other if self is Percentage.REDUCTION else other / own - 1


def better_by(
    stated: float,
    percentage: Percentage,
    others: Iterable[str],
    why: str,
    *,
    at: Callable[[Sequence[float]], Sequence[float]] = list,
    worst: bool = False,
) -> Check:
    """DEXIN is better than others by a percentage, on average over the steps that `at` picks.

    With `worst`, the percentage holds against each other at each step, not on average; the opposite
    is that another is faster at all steps.
    """
    others = tuple(others)

    def check(seen: Observations) -> Judgement:
        own = TIME.points(seen, "dexin")
        gains: dict[str, float] = {}
        opposite = False
        for name in others:
            theirs = TIME.points(seen, name)
            each = [percentage.of(own[x], theirs[x]) for x in at(shared([own, theirs]))]
            gains[name] = min(each) if worst else fmean(each)
            opposite |= (max(each) if worst else fmean(each)) < 0
        least = min(gains.values())
        what = "least" if worst else "mean"
        said = listed({name: f"{gain:.1%}" for name, gain in gains.items()})
        text = f"{percentage}, {what} over the steps: {said}"
        return judge(least >= stated, text, why, opposite=opposite)

    return check


def fraction_of_largest(share: float) -> Callable[[Sequence[float]], Sequence[float]]:
    """The step nearest to a share of the largest x: small runs have the paper's steps in small."""

    def pick(xs: Sequence[float]) -> Sequence[float]:
        return [min(xs, key=lambda x: abs(x - share * max(xs)))]

    return pick


def same_order(stated: Mapping[str, float], why: str, reading: CurveReading) -> Check:
    """The means over all steps are in the order of the stated ones.

    The opposite: more pairs of curves are the other way round than as stated.
    """

    def check(seen: Observations) -> Judgement:
        means = {name: fmean(reading.values(seen, name)) for name in stated}
        ours = sorted(means, key=means.__getitem__)
        theirs = sorted(stated, key=stated.__getitem__)
        said = f"means in {reading.unit}: " + listed({name: f"{means[name]:.3g}" for name in ours})
        pairs = list(combinations(theirs, 2))
        turned = sum(means[low] > means[high] for low, high in pairs)
        said += f"; {turned} of {len(pairs)} pairs the other way round"
        return judge(turned == 0, said, why, opposite=2 * turned > len(pairs))

    return check


def slightly_above(other: str, most: float, why: str, reading: CurveReading) -> Check:
    """DEXIN's mean is above another's, by at most a factor."""

    def check(seen: Observations) -> Judgement:
        ratio = mean_ratio(seen, "dexin", other, reading)
        said = f"{ratio:.2f} times {other}"
        return judge(1 < ratio <= most, said, why, opposite=ratio < 1)

    return check


def mean_ratio(seen: Observations, own: str, other: str, reading: CurveReading) -> float:
    """The mean of one curve in parts of another's, over the steps that both have."""
    ours, theirs = reading.points(seen, own), reading.points(seen, other)
    common = shared([ours, theirs])
    return fmean(ours[x] for x in common) / fmean(theirs[x] for x in common)
