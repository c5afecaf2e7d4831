"""What the figures of the paper share: schedulers that count predicates, on draws of a setting.

The paper leaves open in which order a subscription lists its predicates, which matters most to
`naive`. As drawn, each subscription has its own order. As a Python set, numbers that are equal
modulo 8 (or 32) have the same place in all subscriptions. Subscriptions then tend to fail by the
same predicates, and naive evaluates fewer. Both orders are measured.

The paper also leaves open how its events come to match 0.2 % of the subscriptions. See
`tamis.workload.liu` for what was chosen.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, ClassVar

from tamis.lab.experiments.experiment import (
    Axes,
    Curve,
    Experiment,
    LabScale,
    LabStep,
    Mode,
    Observation,
)
from tamis.lab.papers.liu.draws import Contender, OperatorDraw, SchedulerRuns

NAIVE, NAIVE_SET = "naive", "naive, as a set"
SEQUENTIAL, SUB_ORDER, ADAPTIVE = "sequential", "sub-order", "adaptive"
CONTENDERS: Mapping[str, Contender] = {
    NAIVE: Contender("naive"),
    NAIVE_SET: Contender("naive", as_a_set=True),
    SEQUENTIAL: Contender("sequential"),
    SUB_ORDER: Contender("sub-order"),
    ADAPTIVE: Contender("adaptive"),
}
CURVES = (
    Curve(NAIVE),
    Curve(NAIVE_SET),
    Curve(SEQUENTIAL),
    Curve(SUB_ORDER),
    Curve(ADAPTIVE, Mode.OURS),
)
UNIFORM, ZIPF = "uniform", "Zipf 1"  # panels
_EVENTS = {LabScale.SMALL: 20, LabScale.PAPER: 1_000}
_MOST_DRAWS = 3
_ALL_DRAWS = 60_000  # subscriptions in all draws of a setting, about; large settings vary less
_LEAST = 12  # subscriptions or predicates of a reduced setting


class SchedulingExperiment(Experiment):
    """Predicates that each scheduler evaluates for an event, while one parameter varies."""

    paper = "liu"
    contenders: ClassVar[Mapping[str, Contender]] = CONTENDERS
    curves: ClassVar[tuple[Curve, ...]] = CURVES

    def __init__(self, shrink: int = 1, events: int | None = None) -> None:
        """`shrink` divides the numbers of subscriptions and predicates, for tests."""
        self._shrink, self._events = shrink, events

    @abstractmethod
    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        """The steps, made by `step`."""

    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        return () if scale is LabScale.CLUSTER else self.settings(scale)

    def step(
        self,
        scale: LabScale,
        x: float | str,
        *,
        subscriptions: int,
        predicates: int,
        longest: int = 5,
        exponent: float | None = None,
        panel: str = "",
        **others: Any,
    ) -> LabStep:
        """One setting. Popularity is uniform if there is no exponent of Zipf's law."""
        fewer, narrower = (
            max(_LEAST, size // self._shrink) for size in (subscriptions, predicates)
        )
        parameters = {
            "subscriptions": fewer,
            "predicates": narrower,
            "longest": longest,
            "popularity": "uniform" if exponent is None else "zipf",
            "exponent": 1.0 if exponent is None else exponent,
            "draws": max(1, min(_MOST_DRAWS, _ALL_DRAWS // subscriptions)),
            "events": self._events or _EVENTS[scale],
            **others,
        }
        return LabStep(x, self.curves, parameters, panel)

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        setting = dict(step.parameters)
        draws, events = setting.pop("draws"), setting.pop("events")
        few = OperatorDraw(30, seed, 2, predicates=20)
        drawn = [OperatorDraw(seed=seed + each, events=events, **setting) for each in range(draws)]
        facts = {
            "used": fmean(each.made.used for each in drawn),
            "fewest": fmean(each.fewest for each in drawn),
            "matches": fmean(len(found) for each in drawn for found in each.matching),
        }
        for curve in step.curves:
            contender = self.contenders[curve.name]
            few.run(contender, SchedulerRuns(), **curve.options)  # compiles the kernels
            runs = SchedulerRuns()
            for each in drawn:
                each.run(contender, runs, **curve.options)
            measured = {
                "evaluated": runs.evaluated,
                "schedule_ms": runs.schedule_ms,
                "prepare_ms": runs.prepare_ms,
            }
            if step.parameters.get("factor", 1.0) > 1:
                measured["cost"] = runs.cost
            yield step.observation(curve, measured, facts)


def evaluation_axes(x: str) -> tuple[Axes, ...]:
    """The counts, and the times that the schedulers themselves take."""
    return (
        Axes(x, "predicates evaluated an event", "evaluated"),
        Axes(x, "ms to schedule an event", "schedule_ms", log_y=True),
    )
