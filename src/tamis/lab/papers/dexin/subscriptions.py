"""Figures 2 and 3: the time to match an event, and its deviation, by the number of subscriptions.

One experiment for two figures: both show the same measurements. The paper leaves open what its
deviations are of; here they are over events, each the median of three passes. Beyond the paper, the
scale `cluster` continues figure 2 to ten million subscriptions in shards on Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tamis.lab.experiments.experiment import Axes, Claim, LabScale, LabStep, Observation
from tamis.lab.papers.dexin.checks import (
    DEVIATION,
    CurveCourse,
    Percentage,
    better_by,
    courses,
    fraction_of_largest,
    lowest,
    lowest_slope,
    same_order,
    share_of,
)
from tamis.lab.papers.dexin.cluster import SHARD, observe_shards
from tamis.lab.papers.dexin.curves import ALGORITHMS, paper_curves
from tamis.lab.papers.dexin.scenario import DexinExperiment, time_plots

AXIS = "subscriptions"
SHARES = {  # of the default N = 10^6
    LabScale.SMALL: (0.25, 0.75, 1.0, 1.75),
    LabScale.PAPER: (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75),
}
_ALL_SHARES = {**SHARES, LabScale.CLUSTER: (2.5, 5.0, 10.0)}
_PARTS = {"tama": 0.2018, "h-tree": 0.6428, "be-tree": 0.6836, "opindex": 0.264, "rein": 0.3849}
_DEVIATIONS = {
    "tama": 27.49,
    "h-tree": 36.02,
    "be-tree": 5.74,
    "opindex": 13.39,
    "rein": 11.87,
    "dexin": 1.52,
}
_AT_750_000, _AT_1_000_000 = fraction_of_largest(0.75 / 1.75), fraction_of_largest(1 / 1.75)
_WHY_TIME = (
    "TAMA and REIN touch about five subscriptions for each one that DEXIN touches, but they read "
    "long lists in order, which compiled loops do faster than DEXIN's random accesses. BE-Tree and "
    "H-Tree touch fewer, each at several random accesses, so times and counts rank differently."
)
_WHY_DEVIATION = (
    "The number of subscriptions that DEXIN's first attribute leaves varies from event to event, "
    "while the marks of REIN and the counters of TAMA are sums over ten attributes, which vary "
    "little. The paper does not say whether its deviations are of events or of repeated runs."
)


class SubscriptionsExperiment(DexinExperiment):
    """All six algorithms, N from 0.25 to 1.75 million."""

    id = "DX-2"
    title = "Matching time and its deviation by number of subscriptions"
    source = "figures 2 and 3"
    varied = "n"
    values = _ALL_SHARES
    plots = (
        *time_plots(AXIS),
        Axes(AXIS, "standard deviation over events (ms)", "match_ms", log_y=True, deviation=True),
    )
    claims = (
        Claim(
            "DX-2.best",
            "DEXIN is the fastest of the six algorithms at every number of subscriptions.",
            lowest(_WHY_TIME),
            stated="fastest at all steps",
        ),
        Claim(
            "DX-2.slope",
            "DEXIN's time grows more slowly with the number of subscriptions than any other.",
            lowest_slope(_WHY_TIME),
        ),
        Claim(
            "DX-2.grow",
            "The times of all six algorithms grow with the number of subscriptions.",
            courses(ALGORITHMS, CurveCourse.RISES, _WHY_TIME),
        ),
        *(
            Claim(
                f"DX-2.{name}",
                f"On average over the steps, DEXIN takes {part:.2%} of the time of {name}, or less "
                "(within a tenth).",
                share_of(name, part, _WHY_TIME),
                stated=f"{part:.2%}",
            )
            for name, part in _PARTS.items()
        ),
        Claim(
            "DX-2.tama-1M",
            "DEXIN takes 82.13 % less time than TAMA at a million subscriptions (4/7 of the most).",
            better_by(0.8213, Percentage.REDUCTION, ["tama"], _WHY_TIME, at=_AT_1_000_000),
            stated="82.13 %",
        ),
        *(
            Claim(
                f"DX-2.be-tree-0.75M.{reading}",
                "DEXIN is 63.01 % better than BE-Tree at 750,000 subscriptions (3/7 of the most), "
                f"read as {reading.formula}.",
                better_by(0.6301, reading, ["be-tree"], _WHY_TIME, at=_AT_750_000),
                stated="63.01 %",
            )
            for reading in Percentage
        ),
        Claim(
            "DX-3.lowest",
            "DEXIN has the lowest standard deviation at every number of subscriptions.",
            lowest(_WHY_DEVIATION, DEVIATION),
            stated="lowest at all steps",
        ),
        Claim(
            "DX-3.flattest",
            "DEXIN's deviation grows more slowly with the number of subscriptions than any other.",
            lowest_slope(_WHY_DEVIATION, DEVIATION),
            stated="nearly flat",
        ),
        Claim(
            "DX-3.grow",
            "The deviations of all six algorithms grow with the number of subscriptions.",
            courses(ALGORITHMS, CurveCourse.RISES, _WHY_DEVIATION, DEVIATION),
        ),
        Claim(
            "DX-3.order",
            "Mean deviations rise from DEXIN over BE-Tree, REIN, OpIndex and TAMA to H-Tree.",
            same_order(_DEVIATIONS, _WHY_DEVIATION, DEVIATION),
            stated="1.52, 5.74, 11.87, 13.39, 27.49, 36.02 ms",
        ),
    )

    def step(self, x: float, scale: LabScale, panel: str, fixed: Mapping[str, Any]) -> LabStep:
        made = super().step(x, scale, panel, fixed)
        if scale is not LabScale.CLUSTER:
            return made
        shards = max(2, -(-made.parameters["n"] // SHARD))
        parameters = {**made.parameters, "shards": shards}
        return replace(made, curves=paper_curves(), parameters=parameters)

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        if "shards" in step.parameters:
            return observe_shards(step, seed)
        return super().measure(step, seed)
