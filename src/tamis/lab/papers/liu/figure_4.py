"""Evaluations over the number of subscriptions, with uniform popularity."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.lab.experiments.experiment import Claim, LabScale, LabStep
from tamis.lab.papers.liu.checks import (
    fewer,
    grow_slower,
    naive_is_linear,
    reduction,
    stated_counts,
    sublinear,
)
from tamis.lab.papers.liu.scheduling import (
    NAIVE,
    SEQUENTIAL,
    SUB_ORDER,
    SchedulingExperiment,
    evaluation_axes,
)
from tamis.lab.papers.liu.simulation import BY_SUBSCRIPTIONS, simulated

SIZES = (2_000, 10_000, 20_000, 40_000, 80_000)
PREDICATES = 40_000


class UniformSubscriptions(SchedulingExperiment):
    """40,000 predicates of uniform popularity, subscriptions of 3 to 5."""

    id = "LI-4"
    title = "Evaluations and subscriptions, uniform popularity"
    source = "figure 4, section 5.3.1"
    plots = evaluation_axes("subscriptions")
    claims = (
        Claim(
            "LI-4.counts",
            "Sequential and Sub-Order evaluate a fifth of the predicates at 80,000 subscriptions.",
            stated_counts(
                {(SEQUENTIAL, 80_000): 7_761, (SUB_ORDER, 80_000): 7_037},
                simulated(BY_SUBSCRIPTIONS, 80_000),
            ),
            stated="Sequential 7,761, Sub-Order 7,037",
        ),
        Claim(
            "LI-4.reduction",
            "Both algorithms save almost 80 % of naive's evaluations at 80,000 subscriptions.",
            reduction(0.8, 80_000),
            stated="almost 80 %",
        ),
        Claim(
            "LI-4.better",
            "Sequential evaluates fewer predicates than naive at every number of subscriptions.",
            fewer(
                SEQUENTIAL,
                NAIVE,
                "Sequential evaluates all predicates of the subscription that it picks, also after "
                "it has died. Where few subscriptions share predicates, nobody else needs them.",
            ),
        ),
        Claim(
            "LI-4.order",
            "Sub-Order evaluates fewer predicates than Sequential at every number of "
            "subscriptions.",
            fewer(
                SUB_ORDER,
                SEQUENTIAL,
                "The order of chains compares pairs only. Where many subscriptions share "
                "predicates, the order that it finds may be no better than an arbitrary one.",
            ),
            stated="7,037 and 7,761 at 80,000",
        ),
        Claim(
            "LI-4.linear",
            "Naive's evaluations grow linearly with the subscriptions.",
            naive_is_linear(),
        ),
        Claim(
            "LI-4.flat",
            "Evaluations of Sequential and Sub-Order grow much more slowly than those of naive.",
            grow_slower("subscriptions"),
        ),
        Claim(
            "LI-4.sublinear",
            "The evaluation cost is sublinear in the number of subscriptions.",
            sublinear(),
        ),
    )

    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        return [self.step(scale, n, subscriptions=n, predicates=PREDICATES) for n in SIZES]
