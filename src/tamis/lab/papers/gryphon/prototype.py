"""The time of the paper's prototype in Java, whose figures are lost from our copy."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.lab.experiments.experiment import (
    Claim,
    Curve,
    Judgement,
    LabScale,
    LabStep,
    Mode,
    Observations,
)
from tamis.lab.papers.checks import listed, untestable
from tamis.lab.papers.gryphon.simulation import SIMULATED, ConstantMatches
from tamis.lab.papers.gryphon.trees import OURS, TREE, tree_axes

_SIZES = (10_000, 25_000, 50_000)


def _prototype(found: Observations) -> Judgement:
    return untestable(
        f"our tree, ms an event: {listed(found.curve(TREE, 'match_ms'), '.3f')}",
        "The number of subscriptions and the milliseconds are lost from our copy of the paper. "
        "Its machine, a Pentium, and its Java code are not at hand either, so that our time on "
        "another machine says nothing about theirs.",
    )


class JavaPrototype(ConstantMatches):
    """Tens of thousands of subscriptions, as the abstract has them, on our machine."""

    id = "AG-java"
    title = "The prototype in Java"
    source = "section 7, measurements of the prototype"
    plots = tree_axes("subscriptions")
    claims = (
        Claim(
            "AG-java.time",
            "A prototype in Java matches an event with tens of thousands of subscriptions in a few "
            "milliseconds.",
            _prototype,
            stated="figures lost",
        ),
    )

    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        curves = (Curve(TREE, Mode.PAPER, SIMULATED), OURS)
        return [self.load_step(scale, n, curves) for n in _SIZES]
