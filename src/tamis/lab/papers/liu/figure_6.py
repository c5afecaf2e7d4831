"""Evaluations over the number of predicates."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.lab.experiments.experiment import Claim, Judgement, LabScale, LabStep, Observations
from tamis.lab.papers.checks import ends, judge_all
from tamis.lab.papers.liu.checks import evaluated, fewer, grow_slower, stated_counts
from tamis.lab.papers.liu.scheduling import (
    NAIVE,
    SEQUENTIAL,
    SUB_ORDER,
    UNIFORM,
    ZIPF,
    SchedulingExperiment,
    evaluation_axes,
)
from tamis.lab.papers.liu.simulation import BY_PREDICATES, simulated

SIZES = (2_000, 5_000, 10_000, 20_000, 30_000)
SUBSCRIPTIONS = 20_000


def _similar(found: Observations) -> Judgement:
    """The order of the three curves, and the order of their growth, are those under Zipf."""
    holds, seen = [], []
    for panel in (ZIPF, UNIFORM):
        curves = [evaluated(found, name, panel) for name in (NAIVE, SEQUENTIAL, SUB_ORDER)]
        growth = [last - first for first, last in map(ends, curves)]
        naive, sequential, ordered = curves
        holds += [naive[x] > sequential[x] > ordered[x] for x in naive]
        holds.append(growth[0] > growth[1] > growth[2])
        last = max(naive, key=float)
        counts = ", ".join(f"{curve[last]:,.0f}" for curve in curves)
        seen.append(f"{panel}: naive, Sequential, Sub-Order {counts} at {last:,g}")
    return judge_all(
        holds,
        "; ".join(seen),
        "The curves have another order, or another order of growth, at some number of predicates. "
        "Popularity decides how many subscriptions one result can rule out.",
    )


class SharedPredicates(SchedulingExperiment):
    """20,000 subscriptions of 3 to 5 predicates; Zipf's popularity as plotted, and uniform."""

    id = "LI-6"
    title = "Evaluations and predicates"
    source = "figure 6, section 5.3.2"
    plots = evaluation_axes("predicates")
    claims = (
        Claim(
            "LI-6.counts",
            "Counts with 30,000 predicates.",
            stated_counts(
                {
                    (NAIVE, 30_000): 16_251,
                    (SEQUENTIAL, 30_000): 3_267,
                    (SUB_ORDER, 30_000): 1_977,
                },
                simulated(BY_PREDICATES, 30_000),
                ZIPF,
            ),
            stated="naive 16,251, Sequential 3,267, Sub-Order 1,977",
        ),
        Claim(
            "LI-6.flat",
            "With more predicates, Sequential and Sub-Order grow much more slowly than naive.",
            grow_slower("predicates", ZIPF),
            stated="3,267 and 1,977 beside 16,251",
        ),
        Claim(
            "LI-6.order",
            "Sub-Order evaluates fewer predicates than Sequential at every number of predicates.",
            fewer(
                SUB_ORDER,
                SEQUENTIAL,
                "Under Zipf's law the chains of most subscriptions begin with the same few "
                "predicates. The order of chains then matters little.",
                ZIPF,
            ),
            stated="1,977 and 3,267 at 30,000",
        ),
        Claim("LI-6.uniform", "Results with uniform popularity are similar.", _similar),
    )

    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        return [
            self.step(
                scale, n, subscriptions=SUBSCRIPTIONS, predicates=n, exponent=exponent, panel=panel
            )
            for panel, exponent in ((ZIPF, 1.0), (UNIFORM, None))
            for n in SIZES
        ]
