"""What the experiments of DEXIN share: the workload of a step, and how its curves are measured.

The defaults of the paper are N = 10^6 subscriptions, M = 10 attributes, η = 10^4 values, λ = 10 %
points, θ from 0.2 to 0.8, uniform values, and 1000 events. `small` keeps all of these but N and the
number of events; numbers of subscriptions are 4 % of the paper's. At the paper's sizes an
algorithm that takes more than about two milliseconds an event is measured with fewer than 1000
events; the parameters of an observation say how many. An event's time is the median of three
passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tamis import workload
from tamis.lab.experiments.experiment import (
    Axes,
    Curve,
    Experiment,
    LabScale,
    LabStep,
    Mode,
    Observation,
)
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort
from tamis.lab.papers.dexin.curves import GRIDS, compared_curves

_SAMPLE = 5  # one clause in five is in the sample that options are chosen with ...
_MOST_SAMPLED = 50_000  # ... up to this many
_TRIED_EVENTS = 20
_TRIED_SECONDS = 0.3


@dataclass(frozen=True)
class DexinSizes:
    """The sizes of a run: N where it is not varied, events, and seconds for those of a curve."""

    subscriptions: int
    events: int
    seconds: float


SIZES: dict[LabScale, DexinSizes] = {
    LabScale.SMALL: DexinSizes(40_000, 100, 0.6),
    LabScale.PAPER: DexinSizes(1_000_000, 1_000, 6.0),
    LabScale.CLUSTER: DexinSizes(1_000_000, 100, 60.0),
}


class DexinExperiment(Experiment):
    """An experiment that varies one parameter of DEXIN's workload.

    `varied` is the name of the parameter, and `values` has its values by scale: its x in the plot.
    A scale without values has no steps. Values of `n` are shares of the default.
    """

    paper = "dexin"
    varied: ClassVar[str] = ""  # without a name, x is no parameter of the workload
    values: ClassVar[Mapping[LabScale, Sequence[float]]]
    panels: ClassVar[Mapping[str, Mapping[str, Any]]] = {"": {}}  # parameters by panel
    effort: ClassVar[RunEffort] = RunEffort(batches=0, changes=0)

    def __init__(self, sizes: Mapping[LabScale, DexinSizes] = SIZES) -> None:
        self.sizes = sizes

    def curves(self, panel: str) -> tuple[Curve, ...]:
        return compared_curves()

    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        return [
            self.step(x, scale, panel, fixed)
            for panel, fixed in self.panels.items()
            for x in self.values.get(scale, ())
        ]

    def step(self, x: float, scale: LabScale, panel: str, fixed: Mapping[str, Any]) -> LabStep:
        sizes = self.sizes[scale]
        parameters = {"n": sizes.subscriptions, **fixed}
        if self.varied == "n":
            x = parameters["n"] = round(x * sizes.subscriptions)
        elif self.varied:
            parameters[self.varied] = x
        run = {"events": sizes.events, "seconds": sizes.seconds}
        return LabStep(x, self.curves(panel), {**parameters, **run}, panel)

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        runs = prepare(step, seed, self.effort)
        for curve in step.curves:
            yield self.observe(runs, step, curve)

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        if curve.mode is Mode.TUNED:
            curve = tuned(runs, step, curve)
        return runs.observe(step, curve, matcher_of(curve))


def prepare(step: LabStep, seed: int, effort: RunEffort) -> MatcherRuns:
    """The clauses and events of a step."""
    parameters = dict(step.parameters)
    events, seconds = parameters.pop("events"), parameters.pop("seconds")
    made = workload.make("dexin", parameters.pop("n"), seed=seed, **parameters)
    return MatcherRuns.of(made, replace(effort, events=events, seconds=seconds))


def matcher_of(curve: Curve) -> str:
    """The matcher of a curve; what follows it in the name of the curve is how it is run."""
    return curve.name.split(",")[0]


def tuned(runs: MatcherRuns, step: LabStep, curve: Curve) -> Curve:
    """The curve with the options of its grid that are fastest on a sample of the clauses."""
    clauses = runs.terms.clauses
    size = min(max(clauses // _SAMPLE, 1), _MOST_SAMPLED)
    effort = RunEffort(_TRIED_EVENTS, _TRIED_SECONDS, batches=0, changes=0, counted=1, compared=1)
    sample = runs.terms.take(np.arange(size))
    tries = MatcherRuns(sample, runs.events[:_TRIED_EVENTS], effort, runs.seed)
    best = tries.observe_best(step, curve, GRIDS[curve.name])
    return replace(curve, options=best.options)


TIME_PLOT = "event matching time (ms)"


def time_plots(x: str, **how: Any) -> tuple[Axes, ...]:
    """The time of an event, and what no machine changes: the subscriptions touched for it."""
    return (
        Axes(x, TIME_PLOT, "match_ms", log_y=True, **how),
        Axes(x, "subscriptions touched per event", "subscriptions", log_y=True, **how),
    )
