"""Experiments whose steps are workloads and whose curves are matchers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tamis.lab.experiments.experiment import Curve, Experiment, LabScale, LabStep, Mode, Observation
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort
from tamis.workload import Workload

Options = Mapping[str, Any]
OURS = Curve("tamis", Mode.OURS)
_SAMPLE = 20_000  # subscriptions on which the options of a tuned curve are chosen


@dataclass(frozen=True)
class ExperimentSize:
    """The sizes of an experiment at one scale.

    `events` is the most: a curve that takes longer than `seconds` for them is measured on fewer.
    An observation says on how many.
    """

    subscriptions: tuple[int, ...]
    events: int
    seconds: float


def small_and_paper(
    small: ExperimentSize, paper: ExperimentSize
) -> Mapping[LabScale, ExperimentSize]:
    """The sizes of an experiment that has nothing for a cluster."""
    return {LabScale.SMALL: small, LabScale.PAPER: paper}


def given(**parameters: Any) -> Options:
    """Parameters or options by name."""
    return parameters


class MatcherExperiment(Experiment):
    """A step is a number of subscriptions, or a value of the parameter that is `varied`.

    The matcher of a curve has the name of the curve. The options of a curve `as published` are
    those of `published`. A tuned curve has the options of `grids` that are fastest on a sample.
    """

    sizes: ClassVar[Mapping[LabScale, ExperimentSize]]
    tried: ClassVar[ExperimentSize] = ExperimentSize((200, 400), 5, 0.01)  # in tests
    matchers: ClassVar[Sequence[str]]
    published: ClassVar[Mapping[str, Options]]
    grids: ClassVar[Mapping[str, Sequence[Options]]]
    fixed: ClassVar[Options] = given()  # parameters of the workload that no step changes
    varied: ClassVar[tuple[str, Sequence[Any]] | None] = None  # by default, the subscriptions
    compared_by: ClassVar[str] = "batch_ms"  # the quantity that a tuned curve minimises

    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        return self._steps(self.sizes[scale]) if scale in self.sizes else ()

    def trial(self) -> Sequence[LabStep]:
        every = self._steps(self.tried)
        return [every[0], every[-1]]

    def _steps(self, size: ExperimentSize) -> list[LabStep]:
        name, values = self.varied or ("n", size.subscriptions)
        effort = {"events": size.events, "seconds": size.seconds}
        parameters = {"n": size.subscriptions[0], **self.fixed, **effort}
        return [LabStep(x, self.curves(), {**parameters, name: x}) for x in values]

    def curves(self) -> tuple[Curve, ...]:
        """All matchers as published, those with a grid tuned, and ours."""
        return (
            *as_published(self.matchers, self.published),
            *(Curve(name, Mode.TUNED) for name in self.matchers if name in self.grids),
            OURS,
        )

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        runs = MatcherRuns.of(self.workload(step, seed), self.effort(step))
        for curve in step.curves:
            yield self.observe(runs, step, self.settled(runs, curve))

    @abstractmethod
    def workload(self, step: LabStep, seed: int) -> Workload:
        """The workload of a step."""

    def effort(self, step: LabStep) -> RunEffort:
        """How much is measured at a step."""
        return RunEffort(
            events=step.parameters["events"],
            seconds=step.parameters["seconds"],
            batches=5,
            changes=0,
            counted=200,
        )

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        """Measure a curve that has all its options."""
        return runs.observe(step, curve)

    def settled(self, runs: MatcherRuns, curve: Curve) -> Curve:
        """The curve; if it is tuned, with its best options."""
        if curve.mode is not Mode.TUNED:
            return curve
        return tuned(runs, curve, self.grids[curve.name], self.compared_by)


def as_published(names: Iterable[str], published: Mapping[str, Options]) -> tuple[Curve, ...]:
    """Curves of matchers as their paper describes them."""
    return tuple(Curve(name, Mode.PAPER, dict(published[name])) for name in names)


def tuned(runs: MatcherRuns, curve: Curve, grid: Iterable[Options], quantity: str) -> Curve:
    """The curve with the options of a grid that are best on a part of the subscriptions."""
    few = runs.slots[:_SAMPLE]
    effort = replace(runs.effort, seconds=runs.effort.seconds / 4, passes=1, changes=0, counted=5)
    sample = MatcherRuns(runs.terms.take(few), runs.events, effort, runs.seed)
    best = sample.observe_best(LabStep(len(few), ()), curve, grid, quantity=quantity)
    return replace(curve, options=best.options)
