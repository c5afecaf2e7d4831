"""Figure 11: the time to match an event by the proportion of point constraints, λ.

λ is "the proportion of point-based constraints in a subscription", which reads two ways. In the
first panel each constraint is a point with probability λ; in the second each subscription has λM
points. The algorithms are tuned in the first panel only.
"""

from __future__ import annotations

from tamis.lab.experiments.experiment import Claim, Curve, LabScale
from tamis.lab.papers.dexin.checks import CurveCourse, CurveReading, courses, lowest
from tamis.lab.papers.dexin.curves import compared_curves, paper_curves
from tamis.lab.papers.dexin.scenario import DexinExperiment, time_plots

_CHANCE, _EXACT = "λ is a probability", "λ is an exact share"
_READINGS = {_CHANCE: {"reading": "probability"}, _EXACT: {"reading": "share"}}
_SHARES = {
    LabScale.SMALL: (0.1, 0.3, 0.6, 0.9),
    LabScale.PAPER: (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
}
_WHY_FALL = (
    "Points lie in one cell and match rarely, so fewer subscriptions are touched as λ grows. Where "
    "the time does not fall, most of it does not depend on the constraints: reading counters, or "
    "comparing whole lists."
)
_WHY_FLAT = (
    "A point is violated by nearly every event, so an exclusive attribute or a mark touches more "
    "subscriptions as λ grows: REIN's marks nearly double. DEXIN's plan costs one pass over the "
    "subscriptions in any case."
)
_WHY_BEST = (
    "With more points the trees and counters touch far fewer subscriptions than one pass over all, "
    "which is what DEXIN's first exclusive attribute costs. The crossing comes earlier than in the "
    "paper if touching is cheap in compiled loops."
)


def _claims(panel: str, suffix: str, note: str) -> tuple[Claim, ...]:
    reading = CurveReading(panel=panel)
    return (
        Claim(
            f"DX-11.best{suffix}",
            f"DEXIN is the fastest up to λ = 60 %{note}.",
            lowest(_WHY_BEST, reading, up_to=0.6),
            stated="λ up to 60 %",
        ),
        Claim(
            f"DX-11.fall{suffix}",
            f"The times of TAMA, H-Tree, BE-Tree and OpIndex fall as λ grows{note}.",
            courses(
                ("tama", "h-tree", "be-tree", "opindex"), CurveCourse.FALLS, _WHY_FALL, reading
            ),
        ),
        Claim(
            f"DX-11.flat{suffix}",
            f"The times of REIN and DEXIN hardly change with λ{note}.",
            courses(("rein", "dexin"), CurveCourse.FLAT, _WHY_FLAT, reading),
        ),
    )


class PointSharesExperiment(DexinExperiment):
    """All six algorithms, λ from 10 to 90 %, in both readings."""

    id = "DX-11"
    title = "Matching time by proportion of point constraints"
    source = "figure 11"
    varied = "points"
    values = _SHARES
    panels = _READINGS
    plots = time_plots("proportion of points, λ")
    claims = (*_claims(_CHANCE, "", ""), *_claims(_EXACT, ".exact", ", in exactly λM constraints"))

    def curves(self, panel: str) -> tuple[Curve, ...]:
        return compared_curves() if panel == _CHANCE else paper_curves()
