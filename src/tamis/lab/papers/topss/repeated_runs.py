"""TO-var: how much repeated runs differ.

The paper reports no variances, since they were below 0.1 %. A run matches the same events in a
loaded matcher; `run_ms` has a number for each run. What the percentage refers to is open: we give
the standard deviation, and the variance of runs that are divided by their mean.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tamis.encode.batch import EventBatch
from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabStep,
    Mode,
    Observation,
    Observations,
)
from tamis.lab.instruments.matcher_runs import MatcherRuns, finish_plan, singles
from tamis.lab.instruments.timing import timed
from tamis.lab.papers.checks import figure, judge
from tamis.lab.papers.matcher_experiment import ExperimentSize, small_and_paper
from tamis.lab.papers.topss.setting import BIT, LIST, TopssExperiment
from tamis.match.base import Matcher

RUN = "run_ms"
_RUNS = 10
_STATED = 0.001


def runs_hardly_differ(seen: Observations) -> Judgement:
    """Whether the deviation of repeated runs is below a thousandth of their mean."""
    found = [
        each
        for each in seen.all
        if each.curve in (BIT, LIST) and each.mode is Mode.PAPER and each.has(RUN)
    ]
    if not found:
        raise KeyError(RUN)
    deviation = max(each.deviation(RUN) / each.value(RUN) for each in found)
    return judge(
        deviation < _STATED,
        f"standard deviation up to {figure(100 * deviation)} % of the mean, variance up to "
        f"{figure(100 * deviation**2)} %",
        "Milliseconds on a machine that also does other things differ by percents. The variance of "
        f"normalised runs is {'below' if deviation**2 < _STATED else 'above'} 0.1 %, which may be "
        "what the paper means.",
        opposite=deviation**2 >= _STATED,
    )


class TopssRepeatedRuns(TopssExperiment):
    """Section 5.1, on variances."""

    id = "TO-var"
    title = "Repeated runs"
    source = "section 5.1"
    matchers = (BIT, LIST)
    plots = (
        Axes("subscriptions", "standard deviation of runs (ms)", RUN, True, True, deviation=True),
        Axes("subscriptions", "mean of runs (ms)", RUN, True, True),
    )
    sizes = small_and_paper(
        ExperimentSize((10_000, 50_000), 50, 0.5),
        ExperimentSize((10_000, 100_000, 1_000_000), 100, 10.0),
    )
    claims = (
        Claim(
            "TO-var.small",
            "Repeated runs do not differ significantly.",
            runs_hardly_differ,
            stated="variances below 0.1 %",
        ),
    )

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        taken: list[float] = []
        found = runs.observe(step, curve)
        if found.refusal:
            return found
        each = singles(runs.events)
        while len(taken) < _RUNS:
            matcher = runs.build(curve.name, curve.options).matcher
            finish_plan(matcher, runs.events)
            taken.append(timed(partial(_match_all, matcher, each)))
            if len(taken) > 2 and sum(taken) > step.parameters["seconds"]:
                break
        per_event = [1e3 * run / len(each) for run in taken]
        return replace(found, measured={**found.measured, RUN: per_event})


def _match_all(matcher: Matcher, events: list[EventBatch]) -> None:
    for each in events:
        matcher.match(each)
