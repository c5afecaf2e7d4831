"""The number of slots, τ (section 4): the paper says what it does, and shows no figure.

DEXIN alone, at the default workload, τ from 50 to 5000.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabScale,
    LabStep,
    Mode,
    Observations,
)
from tamis.lab.papers.checks import judge
from tamis.lab.papers.dexin.checks import TIME, CurveReading, growth
from tamis.lab.papers.dexin.curves import OURS, paper_curve
from tamis.lab.papers.dexin.scenario import DexinExperiment, time_plots

AXIS = "slots, τ"
_ALL = (50, 150, 500, 1500, 5000)
_SLOTS = {LabScale.SMALL: _ALL, LabScale.PAPER: _ALL}
_LEAST_GAIN = 0.97
_LOSS = 1.1


def _faster(seen: Observations) -> Judgement:
    points = TIME.points(seen, "dexin")
    factor = growth(list(points.values()))
    said = f"{factor:.2f}-fold from τ = {min(points):g} to {max(points):g}"
    why = (
        "The first end that a value violates is found by bisection in a sorted slot, so the size "
        "of a slot hardly matters to the search. More slots estimate the matching rates better, "
        "but they spread the ends over more memory."
    )
    return judge(factor <= _LEAST_GAIN, said, why, opposite=factor >= _LOSS)


def _larger(seen: Observations) -> Judgement:
    points = CurveReading("memory_mb", unit="MB").points(seen, "dexin")
    steps = [after - before for before, after in pairwise(points.values())]
    said = ", ".join(f"τ = {x:g}: {memory:.2f} MB" for x, memory in points.items())
    why = (
        "A slot is a few numbers in an array here, not a tree, so slots are small beside the ends "
        "that they hold. Arrays grow in steps, which can hide them."
    )
    holds = bool(steps) and all(step > 0 for step in steps)
    return judge(holds, said, why, opposite=bool(steps) and all(step < 0 for step in steps))


class SlotsExperiment(DexinExperiment):
    """DEXIN with 50 to 5000 slots."""

    id = "DX-tau"
    title = "Matching time and memory by number of slots"
    source = "section 4"
    values = _SLOTS
    plots = (*time_plots(AXIS, log_x=True), Axes(AXIS, "memory (MB)", "memory_mb", log_x=True))
    claims = (
        Claim("DX-tau.time", "More slots make DEXIN slightly faster.", _faster, stated="slightly"),
        Claim("DX-tau.memory", "More slots take more memory.", _larger),
    )

    def step(self, x: float, scale: LabScale, panel: str, fixed: Mapping[str, Any]) -> LabStep:
        curves = (paper_curve("dexin", slots=int(x)), Curve(OURS, Mode.OURS))
        return replace(super().step(x, scale, panel, fixed), curves=curves)
