"""LS-9b: execution time by the number of subscriptions: processing, and returning the results.

The paper's results travel from K to Java as lists. Ours travel as arrays through a pipe between two
Python processes, which is cheaper for each subscription.
"""

from __future__ import annotations

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, Observations
from tamis.lab.papers.checks import NOISE, curves, figure, judge, ordered, points, spans
from tamis.lab.papers.lesubscribe.setting import FAIR, THREE
from tamis.lab.papers.lesubscribe.two_processes import TwoProcessExperiment

EXECUTION, TRANSFER = "execution_ms", "transfer_ms"


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


class LsFigure9b(TwoProcessExperiment):
    """Figure 9.b."""

    id = "LS-9b"
    title = "Execution time by subscriptions, p = 0.5"
    source = "figure 9.b"
    plots = (
        Axes("subscriptions", "execution time (ms an event)", EXECUTION, True, True),
        Axes("subscriptions", "time to return the results (ms an event)", TRANSFER, True, True),
        Axes("subscriptions", "matches an event", "matches", True, True),
    )
    claims = (
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
