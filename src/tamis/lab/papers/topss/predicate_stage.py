"""What the six parts of figure 2 share: predicates in tables and in lists, without subscriptions.

A step is a number of distinct predicates under one of the workloads W0 to W3, and a curve is a
structure under a workload, as in the figure. `stage1_ms` is the time to find the predicates that an
event satisfies, `predicates_mb` the memory of the structure. The paper measures the resident memory
of its process.

As published, a table has a cell for every value between the lowest and the highest constant of an
attribute, and every cell is visited; a list is searched from its head. The paper's lists are
linked. Ours are arrays, which a processor reads far faster. The curve of `tamis` is its whole match
on W3, since it has no stage of its own for predicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import ClassVar

from tamis.encode.batch import EventBatch
from tamis.errors import MatcherError, TamisError
from tamis.lab.experiments.experiment import Curve, Experiment, LabScale, LabStep, Mode, Observation
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort, batch_times, finish_plan
from tamis.lab.instruments.timing import timed
from tamis.lab.papers.matcher_experiment import OURS, ExperimentSize, Options, small_and_paper
from tamis.lab.papers.topss.setting import LINEAR_LIST, LIST, TABLE
from tamis.match.base import Matcher
from tamis.match.topss.counting import CountingMatcher
from tamis.workload import topss

STAGE_1, MEMORY = "stage1_ms", "predicates_mb"
TABLES, LISTS = "table", "list"
SETTINGS = ("W0", "W1", "W2", "W3")
_PUBLISHED: dict[str, Options] = {TABLES: TABLE, LISTS: LINEAR_LIST}
_GRIDS: dict[str, tuple[Options, ...]] = {
    TABLES: ({}, {"domain": 100_001}, {"skip_empty": False}),
    LISTS: ({"predicates": "ordered-list"}, LINEAR_LIST),
}
_REPEATS = 5
_PLANNED = 500  # events from which `tamis` makes its plan; fewer are measured


def curve_name(structure: str, setting: str) -> str:
    """The name of a curve: "table, W0"."""
    return f"{structure}, {setting}"


class PredicateStageExperiment(Experiment):
    """A part of figure 2."""

    paper: ClassVar[str] = "topss"
    structures: ClassVar[Sequence[str]]
    settings: ClassVar[Sequence[str]] = SETTINGS
    quantity: ClassVar[str]
    # Subscriptions stand for predicates here.
    sizes: ClassVar[Mapping[LabScale, ExperimentSize]] = small_and_paper(
        ExperimentSize((1_000, 10_000, 80_000), 10, 0.2),
        ExperimentSize((1_000, 10_000, 100_000, 1_000_000, 4_000_000), 100, 5.0),
    )

    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        return self._steps(self.sizes[scale]) if scale in self.sizes else ()

    def trial(self) -> Sequence[LabStep]:
        return self._steps(ExperimentSize((200,), 2, 0.01))

    def _steps(self, size: ExperimentSize) -> list[LabStep]:
        effort = {"events": size.events, "seconds": size.seconds}
        return [
            LabStep(
                predicates,
                tuple(self._curves(setting)),
                {"predicates": predicates, "setting": setting, **effort},
            )
            for predicates in size.subscriptions
            for setting in self.settings
        ]

    def _curves(self, setting: str) -> Iterator[Curve]:
        for structure in self.structures:
            name = curve_name(structure, setting)
            yield Curve(name, Mode.PAPER, dict(_PUBLISHED[structure]))
            yield Curve(name, Mode.TUNED)
        if setting == SETTINGS[-1]:
            yield OURS

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        wanted, setting = step.parameters["predicates"], step.parameters["setting"]
        try:
            made = topss.make_predicates(wanted, seed=seed, setting=setting)
        except TamisError as why:  # W0 has few different predicates
            for curve in step.curves:
                yield step.observation(curve, refusal=str(why))
            return
        runs = MatcherRuns.of(made, RunEffort(events=_PLANNED, compared=5))
        parameters = {**step.parameters, "n": runs.terms.clauses}
        for curve in step.curves:
            yield self._observe(runs, replace(step, parameters=parameters), curve)

    def _observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        blank = step.observation(curve)
        if curve.mode is not Mode.TUNED:
            return self._measured(runs, step, blank)
        grid = _GRIDS[curve.name.split(",")[0]]
        tried = [self._measured(runs, step, replace(blank, options=dict(each))) for each in grid]
        fit = [each for each in tried if not each.refusal]
        return min(fit, key=lambda each: each.value(self.quantity)) if fit else tried[0]

    def _measured(self, runs: MatcherRuns, step: LabStep, blank: Observation) -> Observation:
        ours = blank.mode is Mode.OURS
        name = OURS.name if ours else LIST
        try:
            matcher = runs.build(name, blank.options).matcher
            runs.check(matcher, name)
        except MatcherError as why:
            return replace(blank, refusal=str(why))
        finish_plan(matcher, runs.events)
        events = runs.events[: step.parameters["events"]]
        counts, memory = _counted(matcher, events)
        measured = {MEMORY: [memory / 1e6]}
        if self.quantity == STAGE_1:
            measured[STAGE_1] = _times(matcher, events, step.parameters["seconds"])
        return replace(blank, measured=measured, counts=counts)


def _counted(matcher: Matcher, events: EventBatch) -> tuple[dict[str, float], int]:
    """Operations an event, and the bytes of the predicates."""
    matcher.tally.reset()
    if isinstance(matcher, CountingMatcher):
        matcher.evaluate_predicates(events)
        memory = matcher.part_sizes.predicates
    else:
        matcher.match(events)
        memory = matcher.nbytes - matcher.clauses.nbytes
    work = asdict(matcher.tally)
    del work["events"]
    return {name: amount / len(events) for name, amount in work.items()}, memory


def _times(matcher: Matcher, events: EventBatch, seconds: float) -> list[float]:
    """Milliseconds an event, one number for each repetition of the batch."""
    if not isinstance(matcher, CountingMatcher):
        return batch_times(matcher, events, seconds, _REPEATS)
    counting = matcher
    taken: list[float] = []
    while len(taken) <= _REPEATS and (len(taken) < 2 or sum(taken) < seconds):
        taken.append(timed(lambda: counting.evaluate_predicates(events)))
    return [1e3 * each / len(events) for each in taken[1:]]  # the first warms the cache
