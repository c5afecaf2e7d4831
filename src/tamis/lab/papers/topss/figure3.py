"""TO-3: time of the second stage: byte matrix, bit matrix, lists.

`stage2_ms` is the time to count the predicates that the first stage found, one number an event. The
paper's regular matching is the byte matrix, its bit-wise matching the bit matrix with a byte for
each counter.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from statistics import median
from time import perf_counter

from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabStep,
    Observation,
    Observations,
)
from tamis.lab.instruments.matcher_runs import MatcherRuns, singles
from tamis.lab.instruments.timing import timed
from tamis.lab.papers.checks import (
    curves,
    figure,
    figures,
    judge,
    last_shared,
    ordered,
    out_of_scale,
    place,
)
from tamis.lab.papers.matcher_experiment import ExperimentSize, small_and_paper
from tamis.lab.papers.topss.setting import BIT, BYTE, LIST, TopssExperiment
from tamis.match.base import Matcher
from tamis.match.topss.counting import CountingMatcher

STAGE_2 = "stage2_ms"
_PASSES = 3
_ENTIRE = 5_000_000  # subscriptions of the paper's entire data set


def lists_win(seen: Observations) -> Judgement:
    """Whether lists are faster than the bit matrix, and that faster than the byte matrix."""
    return ordered(
        curves(seen, (LIST, BIT, BYTE), STAGE_2),
        "ms",
        "A byte matrix adds whole rows with vector instructions, sixteen and more counters at "
        "once, which the paper's processor had not. A bit matrix with byte counters raises them "
        "one by one, as lists do, and reads its zero words besides.",
    )


def three_times_faster(seen: Observations) -> Judgement:
    """Whether the bit matrix is about three times as fast as the byte matrix."""
    both = curves(seen, (BIT, BYTE), STAGE_2)
    x = last_shared(both)
    ratio = both[BYTE][x] / both[BIT][x]
    return judge(
        2 <= ratio <= 4.5,
        f"{figures(both, 'ms')}: {figure(ratio)} times",
        "The ratio is that of reading eight times fewer bytes against expanding bits to counters. "
        "On this processor vector instructions add a row of bytes at the speed of memory, and "
        "expanding bits has no such instruction.",
        opposite=ratio < 1,
    )


def byte_matrix_runs_out(seen: Observations) -> Judgement:
    """Whether the byte matrix cannot be run at the largest sizes."""
    refused = seen.refusals(BYTE)
    reached = seen.curve(BYTE, STAGE_2)
    if not reached and not refused:
        raise KeyError(BYTE)
    last = place(max(reached, key=float)) if reached else "none"
    if not refused and max(map(float, reached)) < _ENTIRE:
        return out_of_scale(f"largest size of the byte matrix: {last}", max(reached, key=float))
    return judge(
        bool(refused),
        f"largest size of the byte matrix: {last}"
        + (f"; refused at {place(min(refused, key=float))}" if refused else ""),
        "The matrix takes 400 bytes a subscription: 2 GB at 5 million. The paper's machine had "
        "1.5 GB; memory of today holds it.",
    )


class TopssFigure3(TopssExperiment):
    """Figure 3."""

    id = "TO-3"
    title = "Time of the second stage on W4"
    source = "figure 3"
    matchers = (BYTE, BIT, LIST)
    compared_by = "match_ms"
    plots = (
        Axes("subscriptions", "time of the second stage (ms an event)", STAGE_2, True, True),
        Axes("subscriptions", "counters raised an event", "subscriptions", True, True),
    )
    sizes = small_and_paper(
        ExperimentSize((1_000, 10_000, 100_000), 20, 0.3),
        ExperimentSize(
            (1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000), 20, 5.0
        ),
    )
    claims = (
        Claim(
            "TO-3.order",
            "Matching with lists takes least, with a byte matrix most time.",
            lists_win,
        ),
        Claim(
            "TO-3.bits",
            "Bit-wise matching outperforms the byte matrix by a factor of three.",
            three_times_faster,
            stated="about 3",
        ),
        Claim(
            "TO-3.memory",
            "The byte matrix cannot be run over the entire data set.",
            byte_matrix_runs_out,
            stated="memory contention",
        ),
    )

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        return runs.observe(step, curve, inspect=partial(_second_stage, runs, step))


def _second_stage(runs: MatcherRuns, step: LabStep, matcher: Matcher) -> Mapping[str, list[float]]:
    """Milliseconds of the second stage by event; of the whole match for a matcher without it.

    Each is the median of some passes.
    """
    taken: list[float] = []
    begun = perf_counter()
    for single in singles(runs.events):
        run = partial(matcher.match, single)
        if isinstance(matcher, CountingMatcher):
            bits = matcher.evaluate_predicates(single).copy()
            run = partial(matcher.count_predicates, bits)
        taken.append(median(timed(run) for _ in range(_PASSES)))
        if perf_counter() - begun > step.parameters["seconds"]:
            break
    return {STAGE_2: [1e3 * each for each in taken]}
