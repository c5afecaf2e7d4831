"""What the experiments share: matchers on a drawn workload, and the sizes of their trees.

Nodes visited are the paper's measure of time, and edges plus successors its measure of space. Both
are counted beside the times of our machine. The numbers of the paper's schema are lost from our
copy of its text. Chosen are 30 attributes of 5 values (see `tamis.workload.gryphon`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import process_time
from typing import Any, ClassVar

from tamis.encode.batch import EventBatch
from tamis.lab.experiments.experiment import (
    Axes,
    Curve,
    Experiment,
    LabScale,
    LabStep,
    Mode,
    Observation,
)
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort, finish_plan, singles
from tamis.match import registry
from tamis.match.base import Matcher
from tamis.match.gryphon.aguilera import Aguilera
from tamis.workload import Workload

TREE = "aguilera"
LEVELS = {"tree": "equality"}  # a level for each attribute, as the theorem has it
COLLAPSED = {**LEVELS, "collapse": True}
ANNOTATED = {**COLLAPSED, "successors": True}
PLAIN_TREE = Curve(TREE, Mode.PAPER, LEVELS)
OURS = Curve("tamis", Mode.OURS)
_EFFORTS = {
    LabScale.SMALL: RunEffort(events=200, seconds=0.3, batches=25, changes=0, counted=200),
    LabScale.PAPER: RunEffort(events=1_000, seconds=2.0, batches=25, changes=0, counted=1_000),
}
_LEAST = 20  # subscriptions of a reduced setting


class TreeExperiment(Experiment):
    """Matchers on workloads of equalities. A curve's name begins with the name of its matcher."""

    paper = "gryphon"
    grid: ClassVar[Sequence[Mapping[str, Any]]] = ()  # options of the tuned curve

    def __init__(self, shrink: int = 1, effort: RunEffort | None = None) -> None:
        """`shrink` divides the numbers of subscriptions, for tests."""
        self._shrink, self._effort = shrink, effort

    def fewer(self, subscriptions: int) -> int:
        """The number of subscriptions to draw."""
        return max(_LEAST, subscriptions // self._shrink)

    @abstractmethod
    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        """The steps of one of the two scales; each has the scale as `effort`."""

    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        return () if scale is LabScale.CLUSTER else self.settings(scale)

    @abstractmethod
    def draw(self, step: LabStep, seed: int) -> Workload:
        """The workload of a step."""

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        effort = self._effort or _EFFORTS[LabScale(step.parameters["effort"])]
        runs = MatcherRuns.of(self.draw(step, seed), effort)
        for curve in step.curves:
            yield self.observe(runs, step, curve)

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        """One curve, with the nodes of its tree if it has one."""
        matcher = curve.name.partition(",")[0]
        if curve.mode is Mode.TUNED:
            # In batches, because a call takes more than most events.
            found = runs.observe_best(step, curve, self.grid, matcher, "batch_ms")
        else:
            found = runs.observe(step, curve, matcher)
        if found.refusal:
            return found
        made = registry.create(matcher, **found.options)
        measured = {**found.measured, **cpu_times(made, runs)}
        counts = dict(found.counts)
        if isinstance(made, Aguilera):
            measured["visited_nodes"] = [float(each) for each in visited_nodes(made, runs.events)]
            edges = len(made.match_tree) - int((made.match_tree.view.roots >= 0).sum())
            counts["tree_nodes"] = float(len(made.match_tree))
            counts["successors"] = float(made.space - edges)
            counts["space"] = float(made.space)
        return replace(found, measured=measured, counts=counts)


def cpu_times(matcher: Matcher, runs: MatcherRuns) -> dict[str, list[float]]:
    """The time of the processor to build an empty matcher and to match batches.

    Other processes on the machine add to the time of a clock, and more to long runs than to short
    ones. This would look like growth.
    """
    begun = process_time()
    matcher.add(runs.slots, runs.terms)
    matcher.match(runs.events[:1])
    built = process_time() - begun
    finish_plan(matcher, runs.events)
    batches = []
    for _ in range(max(1, runs.effort.batches)):
        begun = process_time()
        matcher.match(runs.events)
        batches.append(1e3 * (process_time() - begun) / len(runs.events))
        if sum(batches) * len(runs.events) > 1e3 * runs.effort.seconds:
            break
    return {"build_cpu_s": [built], "batch_cpu_ms": batches}


def visited_nodes(tree: Aguilera, events: EventBatch) -> Iterator[int]:
    """The nodes that each event visits."""
    for event in singles(events):
        tree.tally.reset()
        tree.match(event)
        yield tree.tally.nodes


def tree_axes(x: str) -> tuple[Axes, ...]:
    """Nodes visited, time and space."""
    return (
        Axes(x, "nodes visited an event", "visited_nodes", log_x=True, log_y=True),
        Axes(x, "CPU ms an event, in batches", "batch_cpu_ms", log_x=True, log_y=True),
        Axes(x, "edges and successors", "space", log_x=True, log_y=True),
    )
