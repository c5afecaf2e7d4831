"""Figure 6: the time to match an event by the width of ranges, θ from 0.1 to 0.9.

All ranges of a step have the same width. The paper gives the mean deviations in the text.
"""

from __future__ import annotations

import numpy as np

from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Judgement,
    LabScale,
    Observations,
    Standing,
)
from tamis.lab.papers.checks import judge
from tamis.lab.papers.dexin.checks import (
    DEVIATION,
    TIME,
    CurveCourse,
    courses,
    factors,
    growth,
    same_order,
    shared,
)
from tamis.lab.papers.dexin.curves import ALGORITHMS
from tamis.lab.papers.dexin.scenario import DexinExperiment, time_plots

AXIS = "width of ranges, θ"
WIDTHS = {
    LabScale.SMALL: (0.1, 0.3, 0.5, 0.7, 0.9),
    LabScale.PAPER: (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
}
_NARROW = 0.3
_FAST, _SLOW = 3.0, 3.0  # factors from θ = 0.1 to 0.9: at least, at most
_DEVIATIONS = {
    "tama": 23.25,
    "h-tree": 35.64,
    "be-tree": 8.13,
    "opindex": 12.02,
    "rein": 7.33,
    "dexin": 1.09,
}


def _slow_growth(seen: Observations) -> Judgement:
    curves = {name: TIME.values(seen, name) for name in ("be-tree", "opindex")}
    changes = [growth(values) for values in curves.values()]
    why = (
        "OpIndex compares every range of every subscription, whatever its width. BE-Tree verifies "
        "until the first false term, so wide ranges make each verification longer."
    )
    said = f"from θ = 0.1 to 0.9: {factors(curves)}"
    holds = all(1 <= each <= _SLOW for each in changes)
    return judge(holds, said, why, opposite=all(each < 1 / 1.1 for each in changes))


def _tama(seen: Observations) -> Judgement:
    points = {name: TIME.points(seen, name) for name in ALGORITHMS}
    change = growth(list(points["tama"].values()))
    narrow = shared(points.values())[0]
    rank = 1 + sum(points[name][narrow] < points["tama"][narrow] for name in ALGORITHMS)
    said = f"{change:.2f}-fold from θ = 0.1 to 0.9; rank {rank} of 6 at θ = {narrow:g}"
    why = (
        "TAMA raises a counter for each satisfied constraint, so its work follows θ: about nine "
        "times from 0.1 to 0.9. A fixed cost for all subscriptions, the look at every counter, "
        "makes the time grow less."
    )
    return judge(change >= _FAST and rank <= 3, said, why, opposite=change < 1)


def _h_tree_best(seen: Observations) -> Judgement:
    points = {name: TIME.points(seen, name) for name in ALGORITHMS}
    xs = [x for x in shared(points.values()) if x <= _NARROW]
    won = [x for x in xs if min(ALGORITHMS, key=lambda name: points[name][x]) == "h-tree"]
    said = ", ".join(
        f"θ = {x:g}: h-tree {points['h-tree'][x]:.3g} ms, dexin {points['dexin'][x]:.3g} ms"
        for x in xs
    )
    why = (
        "The paper does not give the cells of its H-Tree, and with other cells the turning point "
        "moves. The tuned curve shows how far."
    )
    return judge(len(won) == len(xs), said, why, opposite=not won)


def _h_tree_explodes(seen: Observations) -> Judgement:
    points = {x: y for x, y in TIME.points(seen, "h-tree").items() if x >= _NARROW}
    refused = seen.refusals("h-tree")
    values = list(points.values())
    if refused and len(values) < 3:  # a refusal is about memory, and says nothing about time
        reason = next(iter(refused.values()))
        return Judgement(Standing.UNTESTABLE, f"{len(refused)} steps refused", reason)
    steps = np.diff(np.log(values))
    change = growth(values)
    # An exponential curve grows by about the same factor at each step, and by a lot in all.
    holds = change >= _FAST and bool((steps > np.log(1.1)).all())
    said = f"{change:.2f}-fold from θ = 0.3 to {max(points):g}; {len(refused)} steps refused"
    why = (
        "Clones multiply with θ, but each event follows one or two cells of a level, so the time "
        "is bounded by a verification of all subscriptions. The memory grows as the paper says "
        "until ranges cover all cells; such ranges need no clones here."
    )
    return judge(holds, said, why, opposite=change < 1)


class RangeWidthsExperiment(DexinExperiment):
    """All six algorithms, all ranges of one width."""

    id = "DX-6"
    title = "Matching time by width of ranges"
    source = "figure 6"
    varied = "theta"
    values = WIDTHS
    plots = (
        *time_plots(AXIS),
        Axes(AXIS, "standard deviation over events (ms)", "match_ms", log_y=True, deviation=True),
        Axes(AXIS, "memory (MB)", "memory_mb", log_y=True),
    )
    claims = (
        Claim(
            "DX-6.dexin",
            "DEXIN's time hardly changes with the width of ranges.",
            courses(
                ("dexin",),
                CurveCourse.FLAT,
                "The plan costs one pass over the subscriptions for narrow ranges and a third more "
                "for wide ones. Wide ranges also leave more subscriptions to check and to return.",
            ),
        ),
        Claim(
            "DX-6.be-tree-opindex",
            "The times of BE-Tree and OpIndex grow slowly with the width.",
            _slow_growth,
        ),
        Claim("DX-6.tama", "TAMA's time grows fast with the width; it is good at θ = 0.1.", _tama),
        Claim("DX-6.h-tree-best", "H-Tree is the fastest up to θ = 0.3.", _h_tree_best),
        Claim(
            "DX-6.h-tree-explodes",
            "Beyond θ = 0.3, H-Tree's time grows exponentially.",
            _h_tree_explodes,
        ),
        Claim(
            "DX-6.rein",
            "REIN's time falls with the width.",
            courses(
                ("rein",),
                CurveCourse.FALLS,
                "REIN marks what an event violates, and wide ranges are violated less often. If "
                "its time does not fall, something else dominates it, such as reading the result.",
            ),
        ),
        Claim(
            "DX-6.deviations",
            "Mean deviations rise from DEXIN over REIN, BE-Tree, OpIndex and TAMA to H-Tree.",
            same_order(
                _DEVIATIONS,
                "Our deviation is over events and follows the number of subscriptions that an "
                "event touches. The paper does not say what its deviations are of.",
                DEVIATION,
            ),
            stated="1.09, 7.33, 8.13, 12.02, 23.25, 35.64 ms",
        ),
    )
