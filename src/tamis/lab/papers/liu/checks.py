"""Checks that several figures of the paper share."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.lab.experiments.experiment import Judgement, Mode, Observations
from tamis.lab.papers.checks import (
    Check,
    Points,
    ends,
    growth_exponent,
    judge,
    judge_all,
    listed,
    percent,
)
from tamis.lab.papers.liu.scheduling import NAIVE, NAIVE_SET, SEQUENTIAL, SUB_ORDER

_NEAR = 0.15  # two draws of a setting differ by a tenth
_ALMOST = 0.05  # "almost 80 %" is 75 % or more
_MUCH = 0.5  # "much slower": at most half the growth
_LINEAR = (0.9, 1.1)  # exponents of linear growth
GENERATOR = (
    "The paper does not say how its events come to match 0.2 % of the subscriptions, "
    "and this decides how many predicates are evaluated."
)


def evaluated(found: Observations, curve: str, panel: str = "") -> Points:
    """Predicates evaluated an event, by x."""
    return found.curve(curve, "evaluated", panel=panel)


def saving(found: Observations, curve: str, panel: str = "", of: str = NAIVE) -> Points:
    """The share of the evaluations of `of` that a curve saves, by x."""
    whole = evaluated(found, of, panel)
    return {x: 1 - each / whole[x] for x, each in evaluated(found, curve, panel).items()}


def fewer(better: str, worse: str, why: str, panel: str = "") -> Check:
    """One curve is below another everywhere."""

    def check(found: Observations) -> Judgement:
        low, high = (evaluated(found, name, panel) for name in (better, worse))
        return judge_all(
            (low[x] < high[x] for x in high),
            f"{better} {listed(low)}; {worse} {listed(high)}",
            why,
        )

    return check


def stated_counts(
    stated: Mapping[tuple[str, float], float], simulation: str, panel: str = ""
) -> Check:
    """The paper's counts, by curve and x.

    They are contrary to our results if the subscriptions rule them out: no event takes fewer
    evaluations than there are subscriptions without a common predicate, or more than there are
    predicates in use.
    """

    def check(found: Observations) -> Judgement:
        near, impossible, seen = True, [], []
        for (curve, x), count in stated.items():
            ours = evaluated(found, curve, panel)[x]
            fewest, used = (found.curve(curve, what, panel=panel)[x] for what in ("fewest", "used"))
            near &= abs(ours / count - 1) <= _NEAR
            if count < fewest:
                impossible.append(
                    f"{count:,.0f} are too few: {fewest:,.0f} subscriptions have no predicate in "
                    "common, and each of them needs an evaluation."
                )
            elif count > used:
                impossible.append(
                    f"{count:,.0f} are too many: subscriptions use {used:,.0f} predicates."
                )
            seen.append(f"{curve} {ours:,.0f} at {x:,g}")
        seen.append(f"possible {fewest:,.0f} to {used:,.0f}")
        why = " ".join(impossible) or GENERATOR
        why += f" An independent simulation of the same parameters counts: {simulation}."
        return judge(near, ", ".join(seen), why, opposite=bool(impossible))

    return check


def naive_is_linear(panel: str = "") -> Check:
    """Naive grows in proportion to the subscriptions."""

    def check(found: Observations) -> Judgement:
        points = evaluated(found, NAIVE, panel)
        slope = growth_exponent(points)
        used = max(found.curve(NAIVE, "used", panel=panel).values())
        return judge(
            _LINEAR[0] <= slope <= _LINEAR[1],
            f"grows with exponent {slope:.2f}: {listed(points)}",
            "Naive keeps results, so that it evaluates no predicate twice. Its curve bends towards "
            f"the number of predicates in use, {used:,.0f} at the most.",
            opposite=slope <= 0,
        )

    return check


def grow_slower(what: str, panel: str = "") -> Check:
    """Sequential and Sub-Order grow much slower than naive."""

    def check(found: Observations) -> Judgement:
        growth = {}
        for name in (NAIVE, SEQUENTIAL, SUB_ORDER):
            first, last = ends(evaluated(found, name, panel))
            growth[name] = last - first
        shares = {name: growth[name] / growth[NAIVE] for name in (SEQUENTIAL, SUB_ORDER)}
        seen = ", ".join(f"{name} grows by {more:,.0f}" for name, more in growth.items())
        worst = max(shares.values())
        return judge(
            worst <= _MUCH,
            seen,
            f"With more {what}, Sequential adds {percent(shares[SEQUENTIAL])} and Sub-Order "
            f"{percent(shares[SUB_ORDER])} of what naive adds. {GENERATOR}",
            opposite=worst >= 1,
        )

    return check


def sublinear(panel: str = "") -> Check:
    """Both algorithms cost less than in proportion to the subscriptions."""

    def check(found: Observations) -> Judgement:
        slopes = {
            name: growth_exponent(evaluated(found, name, panel)) for name in (SEQUENTIAL, SUB_ORDER)
        }
        most = max(slopes.values())
        return judge(
            most < _LINEAR[0],
            ", ".join(f"{name} grows with exponent {slope:.2f}" for name, slope in slopes.items()),
            "The counts grow in proportion to the subscriptions, or faster. New subscriptions "
            "bring predicates that no earlier one has.",
            opposite=most > _LINEAR[1],
        )

    return check


def reduction(stated: float, x: float) -> Check:
    """Both algorithms save a share of naive's evaluations."""

    def check(found: Observations) -> Judgement:
        saved = {name: saving(found, name)[x] for name in (SEQUENTIAL, SUB_ORDER)}
        of_sets = {name: saving(found, name, of=NAIVE_SET)[x] for name in saved}
        low = min(saved.values())
        seen = ", ".join(
            f"{name} {percent(share)} ({percent(of_sets[name])} of naive as a set)"
            for name, share in saved.items()
        )
        return judge(
            low >= stated - _ALMOST,
            seen,
            "A saving is there, but a smaller one. " + GENERATOR,
            opposite=low <= 0,
        )

    return check


def adaptive(found: Observations, panel: str = "") -> Points:
    """Evaluations of the adaptive scheduler, which the paper does not have."""
    return found.curve("adaptive", "evaluated", Mode.OURS, panel)
