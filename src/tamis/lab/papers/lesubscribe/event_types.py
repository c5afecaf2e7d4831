"""LS-types: several event types at once.

Section 5: the name of an attribute is joined with the name of its event type, so that each
attribute belongs to one type, and the algorithms need no change. The number of subscriptions stays;
they are divided over the types.
"""

from __future__ import annotations

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, Observations
from tamis.lab.papers.checks import NOISE, curves, figure, judge, ratio, spans
from tamis.lab.papers.lesubscribe.setting import PREFERRED, QUARANTINE, THREE, LeSubscribeExperiment
from tamis.lab.papers.matcher_experiment import ExperimentSize, given, small_and_paper

TIME = "batch_ms"
TYPES = (1, 2, 4, 8, 16)


def types_do_not_disturb(seen: Observations) -> Judgement:
    """Whether an event costs no more when other types share the matcher."""
    times = curves(seen, (QUARANTINE, PREFERRED), TIME)
    touched = curves(seen, (QUARANTINE, PREFERRED), "subscriptions")
    slower = max(each[TYPES[-1]] / each[TYPES[0]] for each in times.values())
    fewer = min(ratio(each[TYPES[0]], each[TYPES[-1]]) for each in touched.values())
    return judge(
        slower < 1 - NOISE and fewer > TYPES[-1] / 2,
        f"{spans(times, 'ms')} with {TYPES[-1]} types; {figure(fewer)} times fewer subscriptions "
        "touched",
        "An event touches the predicates of its own type only, as the counts show. What does not "
        "shrink with the types is the pass over all subscriptions at the end, of all types.",
        opposite=slower > 1 + NOISE,
    )


class LsEventTypes(LeSubscribeExperiment):
    """Section 5, last paragraph."""

    id = "LS-types"
    title = "Several event types at once"
    source = "section 5"
    matchers = THREE
    fixed = given(p=0.5)
    varied = ("types", TYPES)
    plots = (
        Axes("event types", "processing time (ms an event)", TIME, True, True),
        Axes("event types", "subscriptions touched an event", "subscriptions", True, True),
    )
    sizes = small_and_paper(
        ExperimentSize((50_000,), 1_000, 0.2),
        ExperimentSize((800_000,), 1_000, 2.0),
    )
    claims = (
        Claim(
            "LS-types.efficient",
            "The algorithms handle several event types at once efficiently.",
            types_do_not_disturb,
        ),
    )
