"""Figures 4 and 5: the time to match an event, and its deviation, by the number of attributes.

One experiment for two figures, as for figures 2 and 3.
"""

from __future__ import annotations

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, LabScale, Observations
from tamis.lab.papers.checks import judge
from tamis.lab.papers.dexin.checks import (
    DEVIATION,
    TIME,
    CurveCourse,
    CurveReading,
    courses,
    growth,
    lowest,
    same_order,
)
from tamis.lab.papers.dexin.curves import OTHERS
from tamis.lab.papers.dexin.scenario import DexinExperiment, time_plots

AXIS = "attributes"
ATTRIBUTES = {
    LabScale.SMALL: (2, 6, 10, 22),
    LabScale.PAPER: (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22),
}
TURN = 6  # M at which the courses of DEXIN and H-Tree change
_SLIGHT = 1.5  # a factor up to the turn that is still a slight rise
_EVEN = 0.25  # a curve varies by no more than this part of its mean
_DEVIATIONS = {
    "tama": 28.13,
    "h-tree": 39.32,
    "be-tree": 6.17,
    "opindex": 11.38,
    "rein": 11.47,
    "dexin": 1.7,
}
_WHY_GROW = (
    "An algorithm that counts or marks pays for each further attribute, but one that leaves a "
    "subscription at its first false term does not. Our trees verify that way, and the compiled "
    "loops make a further attribute cheap."
)
_WHY_DEVIATION = (
    "Our deviation is over events, and follows the number of subscriptions that an event touches: "
    "few matches at many attributes make it small, large results at two attributes make it large. "
    "The paper does not say whether its deviations are of events or of repeated runs."
)


def _dexin(seen: Observations) -> Judgement:
    points = TIME.points(seen, "dexin")
    before = [points[x] for x in points if x <= TURN]
    after = [points[x] for x in points if x >= TURN]
    spread = (max(after) - min(after)) / (sum(after) / len(after))
    rise = before[-1] / before[0]
    said = f"{rise:.2f}-fold from M = 2 to 6; then within {spread:.0%} of the mean"
    why = (
        "After the first exclusive attribute few subscriptions are left, but the rate of each "
        "further attribute is still looked up and planned with. With few subscriptions these fixed "
        "costs show."
    )
    return judge(1 <= rise <= _SLIGHT and spread <= _EVEN, said, why, opposite=growth(after) >= 2)


def _h_tree(seen: Observations) -> Judgement:
    points = TIME.points(seen, "h-tree")
    before = growth([points[x] for x in points if x <= TURN])
    after = growth([points[x] for x in points if x >= TURN])
    said = f"{before:.2f}-fold from M = 2 to 6, {after:.2f}-fold from there to {max(points):g}"
    why = (
        "The levels of our H-Tree are the attributes that rule out the most, a fixed number of "
        "them, so further attributes add no branches. The paper's tree seems to have a level for "
        "each attribute, whose paths multiply."
    )
    return judge(before < 1 < after, said, why, opposite=before > 1 > after)


class AttributesExperiment(DexinExperiment):
    """All six algorithms, M from 2 to 22."""

    id = "DX-4"
    title = "Matching time and its deviation by number of attributes"
    source = "figures 4 and 5"
    varied = "attributes"
    values = ATTRIBUTES
    plots = (
        *time_plots(AXIS),
        Axes(AXIS, "standard deviation over events (ms)", "match_ms", log_y=True, deviation=True),
    )
    claims = (
        Claim(
            "DX-4.dexin",
            "DEXIN's time rises slightly up to six attributes and hardly changes beyond.",
            _dexin,
        ),
        Claim("DX-4.h-tree", "H-Tree's time falls up to six attributes and rises beyond.", _h_tree),
        Claim(
            "DX-4.others",
            "The times of TAMA, BE-Tree, OpIndex and REIN keep growing with the attributes.",
            courses(("tama", "be-tree", "opindex", "rein"), CurveCourse.RISES, _WHY_GROW),
        ),
        Claim(
            "DX-4.matches",
            "Fewer subscriptions match an event as the attributes grow in number.",
            courses(
                ("dexin",),
                CurveCourse.FALLS,
                "Each attribute rules out some subscriptions, so matches must fall. If they do "
                "not, the workload is wrong.",
                CurveReading("matches"),
            ),
        ),
        Claim(
            "DX-5.lowest",
            "DEXIN has the lowest standard deviation at every number of attributes.",
            lowest(_WHY_DEVIATION, DEVIATION),
        ),
        Claim(
            "DX-5.dexin",
            "DEXIN's deviation falls slowly as the attributes grow in number.",
            courses(("dexin",), CurveCourse.FALLS, _WHY_DEVIATION, DEVIATION),
        ),
        Claim(
            "DX-5.others",
            "The deviations of the five other algorithms grow with the attributes.",
            courses(OTHERS, CurveCourse.RISES, _WHY_DEVIATION, DEVIATION),
        ),
        Claim(
            "DX-5.order",
            "Mean deviations rise from DEXIN over BE-Tree, OpIndex, REIN and TAMA to H-Tree.",
            same_order(_DEVIATIONS, _WHY_DEVIATION, DEVIATION),
            stated="1.7, 6.17, 11.38, 11.47, 28.13, 39.32 ms",
        ),
    )
