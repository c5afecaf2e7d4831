"""LS-ins: the time to add one subscription to many.

The paper adds subscriptions to 3.2 million. We remove random ones and add them again, one by one.
"""

from __future__ import annotations

from dataclasses import replace

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, LabStep, Observations, Standing
from tamis.lab.instruments.matcher_runs import RunEffort
from tamis.lab.papers.checks import NOISE, curves, figure, figures, judge, last_shared, place
from tamis.lab.papers.lesubscribe.setting import (
    FAIR,
    PREFERRED,
    QUARANTINE,
    THREE,
    LeSubscribeExperiment,
)
from tamis.lab.papers.matcher_experiment import ExperimentSize, given, small_and_paper

ADD = "add_us"


def similar_to_preferred(seen: Observations) -> Judgement:
    """Whether adding to quarantine and to equality-preferred costs about the same."""
    both = curves(seen, (QUARANTINE, PREFERRED), ADD)
    x = last_shared(both)
    ratio = both[PREFERRED][x] / both[QUARANTINE][x]
    return judge(
        0.5 <= ratio <= 2,
        figures(both, "µs"),
        "Both enter the subscription into a cluster. Equality-preferred also enters its "
        "inequalities into the lists of predicates, which quarantine leaves with the subscription.",
    )


def fair_is_faster(seen: Observations) -> Judgement:
    """Whether adding to fair-predicate is faster than to the other two."""
    all_three = curves(seen, THREE, ADD)
    x = last_shared(all_three)
    least = min(all_three[name][x] for name in (QUARANTINE, PREFERRED))
    ratio = least / all_three[FAIR][x]
    return judge(
        ratio > 1 + NOISE,
        figures(all_three, "µs"),
        "Fair-predicate enters every predicate into a list, quarantine most subscriptions into one "
        "cluster only. Which costs less depends on the price of a hash look-up against that of a "
        "search in a sorted list.",
        opposite=ratio < 1 - NOISE,
    )


def takes_as_long(seen: Observations) -> Judgement:
    """The paper's 32.2 ms, which belong to its machine and language."""
    ours = curves(seen, (QUARANTINE,), ADD)
    x = last_shared(ours)
    return Judgement(
        Standing.UNTESTABLE,
        f"{figure(ours[QUARANTINE][x] / 1e3)} ms at {place(x)}",
        "The figure is that of a K program on a Pentium of 500 MHz. Neither is here, and no ratio "
        "to another figure of the paper is stated.",
    )


class LsInsertion(LeSubscribeExperiment):
    """The last paragraph of section 4."""

    id = "LS-ins"
    title = "Time to add one subscription"
    source = "section 4, last paragraph"
    fixed = given(p=0.5)
    compared_by = "batch_ms"
    plots = (
        Axes("subscriptions", "time to add one (µs)", ADD, True, True),
        Axes("subscriptions", "time to remove one (µs)", "remove_us", True, True),
    )
    sizes = small_and_paper(
        ExperimentSize((10_000, 100_000), 50, 0.4),
        ExperimentSize((100_000, 800_000, 3_200_000), 50, 2.0),
    )
    claims = (
        Claim(
            "LS-ins.similar",
            "Equality-preferred takes a similar time to add a subscription as quarantining.",
            similar_to_preferred,
        ),
        Claim(
            "LS-ins.fair",
            "Fair-predicate adds a subscription faster, since its representation is simpler.",
            fair_is_faster,
        ),
        Claim(
            "LS-ins.time",
            "Quarantining takes some tens of milliseconds to add a subscription to 3.2 million.",
            takes_as_long,
            stated="32.2 ms",
        ),
    )

    def effort(self, step: LabStep) -> RunEffort:
        return replace(super().effort(step), changes=300, batches=1)
