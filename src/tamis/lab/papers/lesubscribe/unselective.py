"""LS-qual: equalities that are not selective.

The paper names the case without a measurement. The attributes a1 to a3, which occur in equalities
only, have 200 values in its other experiments. Here they have fewer and fewer, and a4 to a6 occur
in inequalities only (p = 0), so that no other equality is selective.
"""

from __future__ import annotations

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, Observations
from tamis.lab.papers.checks import NOISE, curves, figure, judge
from tamis.lab.papers.lesubscribe.setting import PREFERRED, QUARANTINE, LeSubscribeExperiment
from tamis.lab.papers.matcher_experiment import ExperimentSize, given, small_and_paper

TIME = "batch_ms"
VALUES = (1, 2, 5, 20, 200)


def preferred_wins(seen: Observations) -> Judgement:
    """Whether equality-preferred beats quarantine where attributes have one value."""
    both = curves(seen, (QUARANTINE, PREFERRED), TIME)
    least = VALUES[0]
    ratios = {x: both[QUARANTINE][x] / both[PREFERRED][x] for x in both[QUARANTINE]}
    verified = curves(seen, (QUARANTINE,), "partial")[QUARANTINE]
    listed = ", ".join(f"{x}: {figure(ratio)}" for x, ratio in ratios.items())
    return judge(
        ratios[least] > 1 + NOISE,
        f"quarantine's time over equality-preferred's by values: {listed}; it verifies "
        f"{figure(verified[least])} subscriptions an event with {least} value, "
        f"{figure(verified[VALUES[-1]])} with {VALUES[-1]}",
        "Quarantine verifies all subscriptions whose equalities hold. That costs less than the "
        "sums of equality-preferred as long as a verification stops at its first false predicate "
        "and reads a single line of the cache.",
        opposite=ratios[least] < 1 - NOISE,
    )


class LsUnselective(LeSubscribeExperiment):
    """The counter-example in the text on figure 9."""

    id = "LS-qual"
    title = "Equalities that are not selective"
    source = "section 4, on figure 9"
    matchers = (QUARANTINE, PREFERRED)
    fixed = given(p=0.0)
    varied = ("texts", VALUES)
    plots = (
        Axes("values of an equality attribute", "processing time (ms an event)", TIME, True, True),
        Axes(
            "values of an equality attribute", "partially satisfied subscriptions", "partial", True
        ),
    )
    sizes = small_and_paper(
        ExperimentSize((50_000,), 500, 0.3),
        ExperimentSize((800_000,), 500, 3.0),
    )
    claims = (
        Claim(
            "LS-qual.preferred",
            "If equalities are not selective, equality-preferred beats quarantining.",
            preferred_wins,
        ),
    )
