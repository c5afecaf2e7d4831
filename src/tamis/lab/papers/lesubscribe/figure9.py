"""LS-9a and LS-9b: processing time and execution time by the number of subscriptions.

One experiment for both parts of the figure: an event that is sent, matched and returned has both
times. The paper does not state the sizes that it plots, only that 400,000 are among them. We take
powers of two up to the 3.2 million of its test of insertions. How many events are in a set is open:
200.

The paper's results travel from K to Java as lists. Ours travel as arrays through a pipe between two
Python processes, which is cheaper for each subscription.
"""

from __future__ import annotations

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, Observations
from tamis.lab.papers.checks import (
    NOISE,
    curves,
    figure,
    judge,
    last_shared,
    ordered,
    place,
    points,
    ratio,
    rising,
    spans,
)
from tamis.lab.papers.lesubscribe.setting import FAIR, NAIVE, QUARANTINE, THREE
from tamis.lab.papers.lesubscribe.two_processes import TwoProcessExperiment

PROCESSING, EXECUTION, TRANSFER = "processing_ms", "execution_ms", "transfer_ms"


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


def same_order(seen: Observations) -> Judgement:
    """Whether the order of figure 9.a stays, with the results returned."""
    return ordered(
        curves(seen, THREE, EXECUTION),
        "ms",
        "Returning the results costs all three the same, since they find the same subscriptions. "
        "It hides their difference where it takes most of the time.",
    )


def transfer_grows_slightly(seen: Observations) -> Judgement:
    """Whether returning results takes longer with more subscriptions, but not much of the time."""
    transfer = points(seen, FAIR, TRANSFER)
    execution = points(seen, FAIR, EXECUTION)
    values = list(transfer.values())
    share = values[-1] / list(execution.values())[-1]
    return judge(
        values[-1] > values[0] * (1 + NOISE) and share < 0.5,
        f"{spans({'returning results': transfer}, 'ms')}, {figure(100 * share)} % of "
        "fair-predicate's execution at the end",
        "The number of matches is proportional to the subscriptions, so their transfer is too. It "
        "is slight only as long as matching takes longer than copying the numbers of the matches.",
        opposite=values[-1] < values[0] * (1 - NOISE),
    )


class LsFigure9(TwoProcessExperiment):
    """Both parts of figure 9."""

    id = "LS-9a"
    title = "Processing and execution time by subscriptions, p = 0.5"
    source = "figure 9, a and b"
    matchers = (*THREE, NAIVE)
    plots = (
        Axes("subscriptions", "processing time (ms an event)", PROCESSING, True, True),
        Axes("subscriptions", "execution time (ms an event)", EXECUTION, True, True),
        Axes("subscriptions", "time to return the results (ms an event)", TRANSFER, True, True),
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
        Claim(
            "LS-9b.order",
            "With the results returned, the order of the three algorithms is the same.",
            same_order,
        ),
        Claim(
            "LS-9b.transfer",
            "The time to return the results increases slightly with the subscriptions.",
            transfer_grows_slightly,
        ),
    )
