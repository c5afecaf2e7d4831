"""An experiment on a user's own data: all matchers that fit, and which one to take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from tamis.lab.experiments.experiment import (
    Axes,
    Curve,
    Experiment,
    LabScale,
    LabStep,
    Mode,
    Observation,
)
from tamis.lab.instruments.matcher_runs import MatcherRuns
from tamis.match import registry

_CLOSE = 1.1  # times; closer ones are equally fast
_MUCH = 10  # times; a matcher that is so much worse in another respect is named


class DataComparison(Experiment):
    """Matchers on clauses and events that somebody has."""

    id = "compare"
    paper = ""
    title = "matchers on your data"
    source = ""
    plots = (
        Axes("", "ms for an event alone, mean", "match_ms", log_y=True),
        Axes("", "ms an event in batches, mean", "batch_ms", log_y=True),
        Axes("", "memory in MB", "memory_mb", log_y=True),
    )
    claims = ()

    def __init__(
        self, runs: MatcherRuns, matchers: Sequence[str], parameters: dict[str, Any]
    ) -> None:
        self._runs, self._matchers, self._parameters = runs, matchers, parameters

    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        curves = tuple(Curve(name, Mode.OURS) for name in self._matchers)
        return [LabStep("your data", curves, self._parameters)]

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        for curve in step.curves:
            yield self._runs.observe(step, curve)


def recommendation(observations: Sequence[Observation]) -> list[str]:
    """The matcher to take, with reasons: sentences."""
    fit = [each for each in observations if not each.refusal and registry.entry(each.curve).exact]
    if not fit:
        return ["No exact matcher takes this data."]
    alone, batch = _best(fit, "match_ms"), _best(fit, "batch_ms")
    if _typical(alone, "match_ms") * _CLOSE >= _typical(batch, "match_ms"):
        alone = batch  # as good for single events, and the best in batches
    said = [_fastest(alone, fit, "match_ms", "for single events")]
    if alone is batch:
        said = [f"Take {alone.curve}.", *said]
    else:
        said = [
            f"Take {alone.curve} for events that come one at a time, {batch.curve} for batches.",
            *said,
        ]
    said.append(_fastest(batch, fit, "batch_ms", "in batches"))
    for each in dict.fromkeys((alone.curve, batch.curve)):
        chosen = next(one for one in fit if one.curve == each)
        said += _drawbacks(chosen, fit)
    return said


def _best(fit: Sequence[Observation], quantity: str) -> Observation:
    return min(fit, key=lambda each: _typical(each, quantity))


def _typical(observation: Observation, quantity: str) -> float:
    return median(observation.measured[quantity])


def _fastest(chosen: Observation, fit: Sequence[Observation], quantity: str, when: str) -> str:
    mine = _typical(chosen, quantity)
    others = [each for each in fit if each is not chosen]
    if not others:
        return f"It takes {1e3 * mine:.3g} µs an event {when}."
    second = _best(others, quantity)
    times = _typical(second, quantity) / mine
    compared = f"takes {times:.2g} times that" if times >= _CLOSE else "is about as fast"
    return f"{chosen.curve} takes {1e3 * mine:.3g} µs an event {when}; {second.curve} {compared}."


def _drawbacks(chosen: Observation, fit: Sequence[Observation]) -> Iterator[str]:
    for quantity, what in (("memory_mb", "memory"), ("add_us", "time to add a clause")):
        least = _best(fit, quantity)
        times = _typical(chosen, quantity) / max(_typical(least, quantity), 1e-9)
        if times >= _MUCH:
            yield f"{chosen.curve} takes {times:.0f} times the {what} of {least.curve}."
