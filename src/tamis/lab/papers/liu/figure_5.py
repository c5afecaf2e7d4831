"""Evaluations over the number of subscriptions, under Zipf's law and uniform popularity."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.lab.experiments.experiment import Claim, Judgement, LabScale, LabStep, Observations
from tamis.lab.papers.checks import judge_all, percent
from tamis.lab.papers.liu.checks import fewer, grow_slower, naive_is_linear, saving, sublinear
from tamis.lab.papers.liu.figure_4 import PREDICATES, SIZES
from tamis.lab.papers.liu.scheduling import (
    NAIVE,
    SEQUENTIAL,
    SUB_ORDER,
    UNIFORM,
    ZIPF,
    SchedulingExperiment,
    evaluation_axes,
)


def _larger_gains(found: Observations) -> Judgement:
    holds, seen = [], []
    for name in (SEQUENTIAL, SUB_ORDER):
        skewed, even = (saving(found, name, panel) for panel in (ZIPF, UNIFORM))
        holds += [skewed[x] > even[x] for x in even]
        last = max(even, key=float)
        seen.append(
            f"{name} saves {percent(skewed[last])}, with uniform popularity {percent(even[last])}"
        )
    return judge_all(
        holds,
        "; ".join(seen) + f" at {last:,g}",
        "With few subscriptions a popular predicate rules out few of them, so that skew saves "
        "little. The gain then differs with the number of subscriptions.",
    )


class ZipfSubscriptions(SchedulingExperiment):
    """As figure 4, but popularity follows Zipf's law with exponent 1.

    The settings of figure 4 are drawn again beside it, because the paper compares the two.
    """

    id = "LI-5"
    title = "Evaluations and subscriptions, Zipf popularity"
    source = "figure 5, section 5.3.1"
    plots = evaluation_axes("subscriptions")
    claims = (
        Claim(
            "LI-5.better",
            "Sequential evaluates fewer predicates than naive, as with uniform popularity.",
            fewer(
                SEQUENTIAL,
                NAIVE,
                "With few subscriptions naive loses little. Sequential goes on with predicates "
                "that others need, which costs more than it saves here.",
                ZIPF,
            ),
        ),
        Claim(
            "LI-5.order",
            "Sub-Order evaluates fewer predicates than Sequential, as with uniform popularity.",
            fewer(
                SUB_ORDER,
                SEQUENTIAL,
                "Chains of subscriptions with a popular predicate all begin with the same few. "
                "Their order then matters little, and Sequential meets them early by chance.",
                ZIPF,
            ),
        ),
        Claim(
            "LI-5.linear",
            "Naive's evaluations grow linearly with the subscriptions.",
            naive_is_linear(ZIPF),
            stated="exactly the same trend",
        ),
        Claim(
            "LI-5.flat",
            "Evaluations of Sequential and Sub-Order grow much more slowly than those of naive.",
            grow_slower("subscriptions", ZIPF),
            stated="exactly the same trend",
        ),
        Claim(
            "LI-5.sublinear",
            "The evaluation cost is sublinear in the number of subscriptions.",
            sublinear(ZIPF),
        ),
        Claim(
            "LI-5.gains",
            "The two algorithms save more than with uniform popularity.",
            _larger_gains,
        ),
    )

    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        return [
            self.step(
                scale,
                n,
                subscriptions=n,
                predicates=PREDICATES,
                exponent=exponent,
                panel=panel,
            )
            for panel, exponent in ((ZIPF, 1.0), (UNIFORM, None))
            for n in SIZES
        ]
