"""LS-processors: clusters spread over several processes.

Section 5: equality clusters can be deployed on several processors and processed separately. Each
process has whole clusters and a share of the subscriptions without an equality; it gets every event
and returns its own matches. Fair-predicate would spread its counters, which a last processor adds
up; none of our matchers returns counters, so it is not measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from statistics import median

import numpy as np
import pyarrow as pa

from tamis.errors import MatcherError, TamisError
from tamis.files.arrays import offsets
from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabStep,
    Observation,
    Observations,
    Standing,
)
from tamis.lab.instruments.agreement import differences
from tamis.lab.instruments.timing import timed
from tamis.lab.papers.checks import figure, judge, points
from tamis.lab.papers.lesubscribe.server import MatchingServer, Served, ServedWorkload
from tamis.lab.papers.lesubscribe.setting import PREFERRED, QUARANTINE, LeSubscribeExperiment
from tamis.lab.papers.matcher_experiment import (
    OURS,
    ExperimentSize,
    as_published,
    given,
    small_and_paper,
)
from tamis.match.base import Matches

EXECUTION = "execution_ms"
_SETS, _ROUNDS = 5, 3  # as in figure 9
_REFERENCE = "scan"
_PROCESSES = (1, 2)
_GAIN = 1.3  # two processes that share nothing but the pipe should gain as much at least


def two_are_faster(seen: Observations) -> Judgement:
    """Whether two processes answer faster than one."""
    one, two = _PROCESSES
    gains = {}
    for name in (QUARANTINE, PREFERRED):
        times = points(seen, name, EXECUTION)
        gains[name] = times[one] / times[two]
    processors = min(each.parameters["processors"] for each in seen.all)
    listed = ", ".join(f"{name} {figure(gain)}" for name, gain in gains.items())
    figures = f"two processes are so many times as fast as one: {listed}"
    if processors < two:
        return Judgement(
            Standing.UNTESTABLE,
            figures,
            "This machine has one processor. Two processes share it.",
        )
    return judge(
        min(gains.values()) >= _GAIN,
        figures,
        "The work divides evenly, but each process reads and encodes every event, and the client "
        "receives as many matches as before. Those parts do not get faster.",
        opposite=max(gains.values()) < 1,
    )


class LsProcessors(LeSubscribeExperiment):
    """Section 5, on several processors."""

    id = "LS-processors"
    title = "Clusters spread over processes"
    source = "section 5"
    matchers = (QUARANTINE, PREFERRED)
    fixed = given(p=0.5)
    varied = ("processes", _PROCESSES)
    plots = (Axes("processes", "execution time (ms an event)", EXECUTION),)
    sizes = small_and_paper(
        ExperimentSize((200_000,), 200, 1.5),
        ExperimentSize((1_600_000,), 200, 10.0),
    )
    claims = (
        Claim(
            "LS-processors.gain",
            "Clusters spread over several processors enhance the performance.",
            two_are_faster,
        ),
    )

    def curves(self) -> tuple[Curve, ...]:
        return (*as_published(self.matchers, self.published), OURS)

    def trial(self) -> Sequence[LabStep]:
        return super().trial()[-1:]  # a process takes a second to start

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        count = step.parameters["processes"]
        given = {"p": step.parameters["p"]}
        parts = [
            ServedWorkload(step.parameters["n"], seed, given, part, count) for part in range(count)
        ]
        sets = [
            parts[0].events(number, step.parameters["events"]) for number in range(1, _SETS + 1)
        ]
        processors = len(os.sched_getaffinity(0))
        step = replace(step, parameters={**step.parameters, "processors": processors})
        # Undivided, so that a wrong division is noticed.
        with MatchingServer(replace(parts[0], part=0, parts=1)) as whole:
            whole.load(_REFERENCE, {})
            trusted = _merged(_ask_all([whole], sets[0]))
        with ExitStack() as stack:
            servers = [stack.enter_context(MatchingServer(each)) for each in parts]
            for curve in step.curves:
                yield _observe(servers, step, curve, sets, trusted)


def _observe(
    servers: list[MatchingServer],
    step: LabStep,
    curve: Curve,
    sets: list[pa.Table],
    trusted: Matches,
) -> Observation:
    blank = step.observation(curve)
    try:
        loaded = [server.load(curve.name, curve.options) for server in servers]
    except MatcherError as why:
        return replace(blank, refusal=str(why))
    wrong = differences(_merged(_ask_all(servers, sets[0])), trusted)
    if any(wrong):
        raise TamisError(
            f"{curve.key} in {len(servers)} processes and {_REFERENCE} disagree: {wrong}"
        )
    execution = []
    begun = time.monotonic()
    for events in sets:
        rounds = [timed(partial(_ask_all, servers, events)) for _ in range(_ROUNDS)]
        execution.append(1e3 * median(rounds) / events.num_rows)
        if time.monotonic() - begun > step.parameters["seconds"]:
            break
    counts = {name: sum(each.counts[name] for each in loaded) for name in loaded[0].counts}
    return replace(blank, measured={EXECUTION: execution}, counts=counts)


def _ask_all(servers: list[MatchingServer], events: pa.Table) -> list[Served]:
    """Send events to all servers, then wait for all."""
    for server in servers:
        server.ask(events)
    return [server.answer() for server in servers]


def _merged(answers: list[Served]) -> Matches:
    events = np.concatenate([each.matches.events for each in answers])
    rows = np.concatenate([each.matches.slots for each in answers])
    by_event = np.argsort(events, kind="stable")
    counts = np.bincount(events, minlength=len(answers[0].matches))
    return Matches(offsets(counts), rows[by_event])
