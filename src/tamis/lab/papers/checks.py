"""Checks that claims share: the order of curves, their growth, and figures in words.

A ratio is only believed if it differs from 1 by more than `NOISE`: two runs of the same code differ
by as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf, log
from statistics import median

import numpy as np

from tamis.lab.experiments.experiment import Judgement, Mode, Observations, Standing

Points = Mapping[float | str, float]
Check = Callable[[Observations], Judgement]
NOISE = 0.05
_TIMES = ("_ms", "_us", "_s")


def points(
    seen: Observations, name: str, quantity: str, mode: Mode = Mode.PAPER, panel: str = ""
) -> dict[float | str, float]:
    """A quantity by x. Raises `KeyError` if no step has it.

    Of repeated times it is the median, since one interruption spoils a mean of few.
    """
    found = seen.curve(name, quantity, mode, panel)
    if not found:
        raise KeyError(f"{name} ({mode}) has no {quantity}")
    if quantity.endswith(_TIMES):
        for each in seen.all:
            if (each.curve, each.mode, each.panel) == (name, mode, panel) and each.has(quantity):
                found[each.x] = median(each.measured[quantity])
    return found


def curves(
    seen: Observations, names: Sequence[str], quantity: str
) -> dict[str, dict[float | str, float]]:
    """The points of several curves by name. Raises `KeyError` if one is missing."""
    return {name: points(seen, name, quantity) for name in names}


def judge(holds: bool, seen: str, why: str, *, opposite: bool = False) -> Judgement:
    """A judgement: confirmed, contrary if the opposite holds, or not confirmed."""
    if holds:
        return Judgement(Standing.CONFIRMED, seen)
    return Judgement(Standing.CONTRARY if opposite else Standing.NOT_CONFIRMED, seen, why)


def judge_all(holds: Iterable[bool], seen: str, why: str) -> Judgement:
    """A judgement about several points: confirmed at all, or contrary at all."""
    found = list(holds)
    if not found:
        raise ValueError("no point to judge")
    return judge(all(found), seen, why, opposite=not any(found))


def untestable(seen: str, why: str) -> Judgement:
    """A claim that no run here can judge."""
    return Judgement(Standing.UNTESTABLE, seen, why)


def out_of_scale(seen: str, largest: float | str) -> Judgement:
    """The judgement on a claim about sizes that were not measured."""
    why = (
        f"The claim is about larger sizes than {place(largest)}, the largest measured one. The "
        "scale of the paper has them."
    )
    return untestable(seen, why)


def ordered(of: Mapping[str, Points], unit: str, why: str) -> Judgement:
    """Whether the curves lie above each other at every x; the first is the lowest.

    At one x, two curves may be as close as noise, but not at the last one. The opposite holds if
    two neighbours are the wrong way round at every x.
    """
    shared = shared_steps(of)
    ratios = [[high[x] / low[x] for x in shared] for low, high in pairwise(of.values())]
    holds = all(min(each) > 1 - NOISE and each[-1] > 1 + NOISE for each in ratios)
    opposite = any(max(each) < 1 - NOISE for each in ratios)
    return judge(holds, figures(of, unit), why, opposite=opposite)


def rising(of: Mapping[str, Points], unit: str, why: str) -> Judgement:
    """Whether every curve rises from the first x to the last."""
    changes = [_change(each) for each in of.values()]
    holds = all(change > 1 + NOISE for change in changes)
    opposite = all(change < 1 - NOISE for change in changes)
    return judge(holds, spans(of, unit), why, opposite=opposite)


def falling(of: Mapping[str, Points], unit: str, why: str) -> Judgement:
    """Whether every curve falls from each x to the next."""
    steps = [after / before for each in of.values() for before, after in pairwise(each.values())]
    changes = [_change(each) for each in of.values()]
    holds = max(steps) < 1 + NOISE and max(changes) < 1 - NOISE
    opposite = min(changes) > 1 + NOISE
    return judge(holds, spans(of, unit), why, opposite=opposite)


def exponent(of: Points) -> float:
    """The power of x by which a curve grows from its first x to its last: 1 is linear."""
    (low, first), *_, (high, last) = of.items()
    return log(last / first) / log(float(high) / float(low))


def growth_exponent(of: Points) -> float:
    """The slope of a line through the points on logarithmic axes: 1 is linear growth."""
    if len(of) < 2:
        raise ValueError("growth needs two points")
    x, y = (np.log([float(each) for each in part]) for part in (of.keys(), of.values()))
    return float(np.polyfit(x, y, 1)[0])


def ends(of: Points) -> tuple[float, float]:
    """The values at the smallest and at the largest x."""
    order = sorted(of, key=float)
    return of[order[0]], of[order[-1]]


def ratio(above: float, below: float) -> float:
    """A ratio of two counts; infinite if nothing was counted below."""
    return above / below if below else inf


def shared_steps(of: Mapping[str, Points]) -> list[float | str]:
    """The x that all curves have, in their order. Raises `KeyError` if they share no x."""
    first, *others = of.values()
    found = [x for x in first if all(x in each for each in others)]
    if not found:
        raise KeyError(f"{', '.join(of)} have no step in common")
    return found


def last_shared(of: Mapping[str, Points]) -> float | str:
    """The last x that all curves have."""
    return shared_steps(of)[-1]


def figures(of: Mapping[str, Points], unit: str) -> str:
    """The value of each curve at the last x: "at 800: fair 3.1, quarantine 0.2 ms"."""
    x = last_shared(of)
    listed = ", ".join(f"{name} {figure(each[x])}" for name, each in of.items())
    return f"at {place(x)}: {listed} {unit}".rstrip()


def spans(of: Mapping[str, Points], unit: str) -> str:
    """The first and the last value of each curve: "fair 0.1 to 3.1 ms"."""
    listed = ", ".join(
        f"{name} {figure(next(iter(each.values())))} to {figure(list(each.values())[-1])}"
        for name, each in of.items()
    )
    first = next(iter(of.values()))
    ends = f"from {place(next(iter(first)))} to {place(list(first)[-1])}"
    return f"{ends}: {listed} {unit}".rstrip()


def listed(points: Points, form: str = ",.0f") -> str:
    """The points in one line: `2,000: 31, 80,000: 40`."""
    return ", ".join(f"{place(x)}: {y:{form}}" for x, y in points.items())


def figure(value: float) -> str:
    """A number for people: three digits, or all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in percent: 61 %, 6.1 %, -3 %."""
    return f"{100 * share:.{1 if abs(share) < 0.095 else 0}f} %"


def place(x: float | str) -> str:
    """A value of x for people."""
    return x if isinstance(x, str) else f"{x:,g}" if x != int(x) else f"{int(x):,}"


def _change(of: Points) -> float:
    values = list(of.values())
    return values[-1] / values[0]
