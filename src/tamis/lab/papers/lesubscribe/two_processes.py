"""Client and server in two processes, for both parts of figure 9."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

import pyarrow as pa

from tamis.errors import MatcherError, TamisError
from tamis.lab.experiments.experiment import Curve, LabStep, Mode, Observation
from tamis.lab.instruments.agreement import differences
from tamis.lab.instruments.matcher_runs import MatcherRuns
from tamis.lab.papers.lesubscribe.server import MatchingServer, ServedWorkload
from tamis.lab.papers.lesubscribe.setting import LeSubscribeExperiment
from tamis.lab.papers.matcher_experiment import ExperimentSize, given, small_and_paper
from tamis.match.base import Matches

_SETS = 5  # of events, sent one after the other: a number for each
_ROUNDS = 3  # of each set, whose median counts: two processes wait for each other and others
_REFERENCE = "scan"
_SAMPLE = 20_000  # subscriptions on which tuned curves are settled, in this process


class TwoProcessExperiment(LeSubscribeExperiment):
    """Measures what a client sees, in milliseconds an event.

    `processing_ms` ends when the server has matched, and includes sending the events. `transfer_ms`
    is the rest, until the client has all matches. `execution_ms` is both.
    """

    fixed = given(p=0.5)
    tried = ExperimentSize((300,), 5, 0.01)
    sizes = small_and_paper(
        ExperimentSize((12_500, 25_000, 50_000, 100_000), 200, 1.0),
        ExperimentSize((100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000), 200, 10.0),
    )

    def trial(self) -> Sequence[LabStep]:
        return super().trial()[:1]  # a process takes a second to start

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        served = ServedWorkload(step.parameters["n"], seed, {"p": step.parameters["p"]})
        sets = [served.events(number, step.parameters["events"]) for number in range(1, _SETS + 1)]
        with MatchingServer(served) as server:
            server.load(_REFERENCE, {})
            server.ask(sets[0])
            trusted = server.answer().matches
            for curve in self._all_settled(step, seed):
                yield _observe(server, step, curve, sets, trusted)

    def _all_settled(self, step: LabStep, seed: int) -> list[Curve]:
        if not any(curve.mode is Mode.TUNED for curve in step.curves):
            return list(step.curves)
        parameters = {**step.parameters, "n": min(step.parameters["n"], _SAMPLE)}
        few = replace(step, parameters=parameters)
        runs = MatcherRuns.of(self.workload(few, seed), self.effort(few))
        return [self.settled(runs, curve) for curve in step.curves]


def _observe(
    server: MatchingServer, step: LabStep, curve: Curve, sets: list[pa.Table], trusted: Matches
) -> Observation:
    blank = step.observation(curve)
    try:
        loaded = server.load(curve.name, curve.options)
    except MatcherError as why:
        return replace(blank, refusal=str(why))
    server.ask(sets[0])
    wrong = differences(server.answer().matches, trusted)
    if any(wrong):
        raise TamisError(f"{curve.key} and {_REFERENCE} disagree: {wrong}")
    processing: list[float] = []
    transfer: list[float] = []
    begun = time.monotonic()
    for events in sets:
        rounds = [_round_trip(server, events) for _ in range(_ROUNDS)]
        each_ms = 1e3 / events.num_rows
        processing.append(each_ms * median(matched for matched, _ in rounds))
        transfer.append(each_ms * median(returned for _, returned in rounds))
        if time.monotonic() - begun > step.parameters["seconds"]:
            break
    measured = {
        "processing_ms": processing,
        "transfer_ms": transfer,
        "execution_ms": [a + b for a, b in zip(processing, transfer, strict=True)],
        "build_s": [loaded.seconds],
        "memory_mb": [loaded.memory_mb],
    }
    return replace(blank, measured=measured, counts=loaded.counts)


def _round_trip(server: MatchingServer, events: pa.Table) -> tuple[float, float]:
    """Seconds until the server has matched, and from then until the client has the matches."""
    began = time.monotonic()
    server.ask(events)
    finished, _ = server.answer()
    return finished - began, time.monotonic() - finished
