"""Figure 17: DEXIN, and DEXIN with the inclusive or the exclusive method alone, by matching rate ξ.

Section 4.4 interchanges the two words in the sentences after formulas (8) and (9), and formula (9)
lacks the first term, 1. The claims are those of the formulas: the exclusive method alone costs less
as matching rates rise, and the inclusive method alone costs more. The cost μ of the plans, in units
of the number of subscriptions, is counted beside the times.
"""

from __future__ import annotations

from typing import Any

from tamis.lab.experiments.experiment import Axes, Claim, Curve, Judgement, Mode, Observations
from tamis.lab.papers.checks import judge
from tamis.lab.papers.dexin.checks import (
    TIME,
    CurveCourse,
    CurveReading,
    course,
    courses,
    factors,
    listed,
)
from tamis.lab.papers.dexin.curves import OURS, paper_curve
from tamis.lab.papers.dexin.matching_rates import AXIS, RATES
from tamis.lab.papers.dexin.scenario import DexinExperiment, time_plots

INCLUSIVE, EXCLUSIVE = "dexin, inclusive only", "dexin, exclusive only"
_COST = CurveReading("cost", unit="N")
_CLOSE = 0.1
_WHY = (
    "In the paper's own generator an event meets the subscriptions of other events at about the "
    "same rates for any ξ, so the formulas change little. What is touched changes more: the "
    "subscriptions of the event itself match on all attributes, and the formulas take attributes "
    "for independent."
)


def opposite(reading: CurveReading, why: str) -> Any:
    """The exclusive method's curve falls, and the inclusive one's rises."""

    def check(seen: Observations) -> Judgement:
        curves = {name: reading.values(seen, name) for name in (EXCLUSIVE, INCLUSIVE)}
        down, up = (course(values) for values in curves.values())
        said = f"from ξ = 0.1 to 20 %: {factors(curves)}"
        holds = down is CurveCourse.FALLS and up is CurveCourse.RISES
        return judge(
            holds, said, why, opposite=down is CurveCourse.RISES and up is CurveCourse.FALLS
        )

    return check


def _formulas(seen: Observations) -> Judgement:
    """The subscriptions touched are those that the cost model predicts."""
    gaps = {}
    for name in ("dexin", EXCLUSIVE, INCLUSIVE):
        mine = [each for each in seen.all if each.curve == name and each.has("cost")]
        if not mine:
            raise KeyError(name)
        gaps[name] = max(
            abs(each.value("subscriptions") / each.parameters["n"] / each.value("cost") - 1)
            for each in mine
        )
    said = "largest gap between touched and predicted: " + listed(
        {name: f"{gap:.1%}" for name, gap in gaps.items()}
    )
    why = (
        "The model takes attributes for independent and counts the slot of a value as a whole. In "
        "this generator the constraints of a subscription all cover one event: a share ξ of the "
        "subscriptions passes every attribute and is touched by each."
    )
    holds = all(gap <= _CLOSE for gap in gaps.values())
    return judge(holds, said, why, opposite=all(gap > 1 for gap in gaps.values()))


class SingleMethodsExperiment(DexinExperiment):
    """DEXIN's plans against plans with one method, ξ from 0.1 to 20 %."""

    id = "DX-17"
    title = "DEXIN with one of its methods only, by matching rate"
    source = "figure 17"
    varied = "matching"
    values = RATES
    plots = (
        *time_plots(AXIS, log_x=True),
        Axes(AXIS, "cost of the plan, μ (subscriptions / N)", "cost", log_x=True),
    )
    claims = (
        Claim(
            "DX-17.opposite",
            "As the matching rate grows, the exclusive method alone gets faster and the inclusive "
            "method alone slower.",
            opposite(TIME, _WHY),
        ),
        Claim(
            "DX-17.cost",
            "As the matching rate grows, formula (8) falls and formula (9) rises.",
            opposite(_COST, _WHY),
        ),
        Claim(
            "DX-17.stable",
            "DEXIN with both methods hardly changes with the matching rate.",
            courses(
                ("dexin",),
                CurveCourse.FLAT,
                "The predicted cost of DEXIN's plans hardly changes, but each match is touched by "
                "every inclusive attribute, and is returned. At ξ = 20 % a fifth of all "
                "subscriptions match.",
            ),
        ),
        Claim(
            "DX-17.formulas",
            "Formulas (6), (8) and (9) tell how many subscriptions are touched, within a tenth.",
            _formulas,
        ),
    )

    def curves(self, panel: str) -> tuple[Curve, ...]:
        return (
            paper_curve("dexin"),
            paper_curve("dexin", "inclusive only", plan="inclusive"),
            paper_curve("dexin", "exclusive only", plan="exclusive"),
            Curve(OURS, Mode.OURS),
        )
