"""LS-9a: processing time by the number of subscriptions.

The paper does not state the sizes that it plots, only that 400,000 are among them. We take powers
of two up to the 3.2 million of its test of insertions. How many events are in a set is open: 200.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, LabStep, Observations
from tamis.lab.papers.checks import (
    curves,
    figure,
    judge,
    last_shared,
    ordered,
    place,
    ratio,
    rising,
)
from tamis.lab.papers.lesubscribe.setting import NAIVE, QUARANTINE, THREE
from tamis.lab.papers.lesubscribe.two_processes import TwoProcessExperiment

PROCESSING = "processing_ms"


def quarantine_wins(seen: Observations) -> Judgement:
    """Whether quarantine < equality-preferred < fair-predicate at every size."""
    return ordered(
        curves(seen, THREE, PROCESSING),
        "ms",
        "Equality-preferred raises nearly as many counters as fair-predicate, and only its last "
        "pass is shorter. So the two may lie within the noise where sending the events takes most "
        "of the time.",
    )


def all_grow(seen: Observations) -> Judgement:
    """Whether the times of all three rise with the subscriptions."""
    return rising(
        curves(seen, THREE, PROCESSING),
        "ms",
        "The work of an event is proportional to the subscriptions, as the counts show. A time "
        "that does not rise is dominated by the cost of sending events between the processes.",
    )


def naive_is_far_slower(seen: Observations) -> Judgement:
    """Whether naive takes thousands of times as long as quarantine."""
    both = curves(seen, (QUARANTINE, NAIVE), PROCESSING)
    x = last_shared(both)
    slower = both[NAIVE][x] / both[QUARANTINE][x]
    tests, counts = (
        next(o.counts for o in seen.all if (o.curve, o.x) == (name, x) and o.counts)
        for name in (NAIVE, QUARANTINE)
    )
    operations = ratio(tests["predicates"], counts["subscriptions"] + counts["predicates"])
    return judge(
        slower >= 5_000,
        f"at {place(x)}: {figure(slower)} times; {figure(operations)} times the operations",
        "In one language the ratio of operations bounds the ratio of times: naive tests about one "
        "predicate of each subscription, and the first test nearly always fails. The rest of the "
        "paper's factor is K, which interprets naive's loop over the subscriptions but runs whole "
        "vectors of additions as one operation.",
        opposite=slower < 1,
    )


class LsFigure9a(TwoProcessExperiment):
    """Figure 9.a."""

    id = "LS-9a"
    title = "Processing time by subscriptions, p = 0.5"
    source = "figure 9.a"
    matchers = (*THREE, NAIVE)
    plots = (
        Axes("subscriptions", "processing time (ms an event)", PROCESSING, True, True),
        Axes("subscriptions", "subscriptions touched an event", "subscriptions", True, True),
    )
    claims = (
        Claim(
            "LS-9a.order",
            "Quarantining is faster than equality-preferred, which is faster than fair-predicate.",
            quarantine_wins,
        ),
        Claim(
            "LS-9a.growth",
            "The processing time of all three grows with the subscriptions.",
            all_grow,
        ),
        Claim(
            "LS-9a.naive",
            "Naive takes almost ten thousand times as long as quarantining.",
            naive_is_far_slower,
            stated="almost 10,000 times at 400,000 subscriptions",
        ),
    )

    def trial(self) -> Sequence[LabStep]:
        return ()  # LS-9b runs the same code, and a process takes a second to start
