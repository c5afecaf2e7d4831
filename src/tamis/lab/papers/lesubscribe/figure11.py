"""LS-11: processing time by the number of subscriptions, with equalities only.

The paper plots one curve, since equality-preferred and quarantining are then the same algorithm.
The time of its figure includes sending the events between two processes; ours does not, so the
threshold at the beginning is that of the algorithm alone.
"""

from __future__ import annotations

from itertools import pairwise
from math import log

import numpy as np

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, Observations
from tamis.lab.papers.checks import exponent, figure, judge, points, spans
from tamis.lab.papers.lesubscribe.setting import PREFERRED, QUARANTINE, LeSubscribeExperiment
from tamis.lab.papers.matcher_experiment import ExperimentSize, given, small_and_paper

TIME = "batch_ms"


def threshold_at_the_beginning(seen: Observations) -> Judgement:
    """Whether a few subscriptions cost nearly as much as ten times as many."""
    times = points(seen, PREFERRED, TIME)
    (few, first), (more, second) = list(times.items())[:2]
    growth, expected = second / first, float(more) / float(few)
    look_ups = points(seen, PREFERRED, "nodes")
    share = first / list(times.values())[-1]
    return judge(
        growth < expected**0.5,
        f"{figure(1e3 * first)} µs at {int(few):,} and {figure(1e3 * second)} µs at "
        f"{int(more):,}: {figure(100 * share)} % of the last size; "
        f"{figure(next(iter(look_ups.values())))} look-ups an event from the start",
        "The look-ups of schema subsets do not depend on the subscriptions, as the counts show. If "
        "the time does, the memory that a look-up reads has left the cache.",
        opposite=growth > expected,
    )


def grows_like_a_logarithm(seen: Observations) -> Judgement:
    """Whether the time grows far slower than the subscriptions, closer to log n than to n."""
    times = points(seen, PREFERRED, TIME)
    power = exponent(times)
    x = np.array([float(each) for each in times])
    y = np.array(list(times.values()))
    by_log, by_n = _misfit(np.log(x), y), _misfit(x, y)
    last = [log(b / a) / log(float(n) / float(m)) for (m, a), (n, b) in pairwise(times.items())][-1]
    return judge(
        power < 0.5 and by_log < by_n,
        f"{spans({PREFERRED: {n: 1e3 * t for n, t in times.items()}}, 'µs')}: as n^{power:.2f}, at "
        f"the end as n^{last:.2f}; {'log n' if by_log < by_n else 'n'} fits better",
        "The look-ups are constant, but the matches are proportional to the subscriptions, and an "
        "event has to list them. From some hundred thousand subscriptions on, they and the misses "
        "of the cache outweigh the look-ups.",
        opposite=power > 0.9,
    )


def _misfit(x: np.ndarray, y: np.ndarray) -> float:
    """The squared distance of the best straight line."""
    slope, start = np.polyfit(x, y, 1)
    return float(((slope * x + start - y) ** 2).sum())


class LsFigure11(LeSubscribeExperiment):
    """Figure 11."""

    id = "LS-11"
    title = "Processing time by subscriptions, equalities only"
    source = "figure 11"
    matchers = (PREFERRED, QUARANTINE)
    fixed = given(p=1.0)
    plots = (
        Axes("subscriptions", "processing time (ms an event)", TIME, log_x=True),
        Axes("subscriptions", "clusters looked up an event", "nodes", log_x=True),
    )
    sizes = small_and_paper(
        ExperimentSize((100, 1_000, 10_000, 100_000, 400_000), 1_000, 0.3),
        ExperimentSize(
            (1_000, 10_000, 100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000), 2_000, 2.0
        ),
    )
    claims = (
        Claim(
            "LS-11.threshold",
            "A few subscriptions already cost a threshold: finding the clusters of the event.",
            threshold_at_the_beginning,
        ),
        Claim(
            "LS-11.logarithm",
            "After the threshold the time increases slightly, like a logarithm.",
            grows_like_a_logarithm,
        ),
    )
