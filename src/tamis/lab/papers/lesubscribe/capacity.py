"""LS-capacity: millions of subscriptions and several million events a day, on one machine."""

from __future__ import annotations

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, Observations
from tamis.lab.papers.checks import figure, judge, place, points
from tamis.lab.papers.lesubscribe.setting import QUARANTINE, LeSubscribeExperiment
from tamis.lab.papers.matcher_experiment import ExperimentSize, given, small_and_paper

TIME = "match_ms"
_DAY_MS = 24 * 60 * 60 * 1000
MILLIONS, SEVERAL_MILLIONS = 1_000_000, 3_000_000


def holds_the_load(seen: Observations) -> Judgement:
    """Whether one core matches several million events a day against millions."""
    times = seen.curve(QUARANTINE, TIME)  # means: some events take far longer than others
    if not times:
        raise KeyError(QUARANTINE)
    n = list(times)[-1]
    a_day = _DAY_MS / times[n]
    memory = points(seen, QUARANTINE, "memory_mb")[n]
    return judge(
        float(n) >= MILLIONS and a_day >= SEVERAL_MILLIONS,
        f"{place(n)} subscriptions in {figure(memory)} MB, {figure(times[n])} ms an event: "
        f"{figure(a_day / 1e6)} million events a day on one core",
        "The claim is about millions of subscriptions, so a smaller step cannot confirm it. The "
        "time of an event is proportional to the subscriptions.",
        opposite=float(n) >= MILLIONS and a_day < SEVERAL_MILLIONS,
    )


class LsCapacity(LeSubscribeExperiment):
    """The contributions in section 1."""

    id = "LS-capacity"
    title = "Millions of subscriptions on one machine"
    source = "section 1"
    matchers = (QUARANTINE,)
    fixed = given(p=0.5)
    plots = (
        Axes("subscriptions", "time of an event alone (ms)", TIME, True),
        Axes("subscriptions", "memory (MB)", "memory_mb", True),
    )
    sizes = small_and_paper(
        ExperimentSize((250_000, 1_000_000), 100, 0.5),
        ExperimentSize((1_000_000, 2_000_000, 3_200_000), 200, 3.0),
    )
    claims = (
        Claim(
            "LS-capacity.load",
            "The system handles millions of subscriptions and several million events a day.",
            holds_the_load,
            stated="several millions of both",
        ),
    )
