"""LS-neon: the predicates that NEONRules locates and evaluates for each event.

The paper says that they can be many, without a measurement.
"""

from __future__ import annotations

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, Observations
from tamis.lab.papers.checks import curves, exponent, figure, judge, last_shared, place
from tamis.lab.papers.lesubscribe.setting import FAIR, GRIDS, PUBLISHED, LeSubscribeExperiment
from tamis.lab.papers.matcher_experiment import ExperimentSize, given, small_and_paper

NEON = "neon"
TIME, LOCATED = "batch_ms", "predicates"
_PUBLISHED = {**PUBLISHED, NEON: {}}
_GRIDS = {**GRIDS, NEON: ({}, {"value_index": True})}


def located_grow(seen: Observations) -> Judgement:
    """Whether neon evaluates predicates in proportion to the subscriptions."""
    both = curves(seen, (NEON, FAIR), LOCATED)
    x = last_shared(both)
    powers = {name: exponent(each) for name, each in both.items()}
    return judge(
        powers[NEON] > 0.9,
        f"at {place(x)}: {figure(both[NEON][x])} located and evaluated, growing as "
        f"n^{powers[NEON]:.2f}; fair-predicate finds {figure(both[FAIR][x])} distinct ones "
        f"satisfied, growing as n^{powers[FAIR]:.2f}",
        "Neon stores a predicate for each subscription, and its index knows attribute and "
        "comparator only. A slower growth would mean that it evaluates fewer than it has.",
        opposite=powers[NEON] < 0.1,
    )


class LsNeon(LeSubscribeExperiment):
    """Section 3.1, on the neon algorithm."""

    id = "LS-neon"
    title = "Predicates that neon evaluates"
    source = "section 3.1, neon"
    matchers = (NEON, FAIR)
    published = _PUBLISHED
    grids = _GRIDS
    fixed = given(p=0.5)
    plots = (
        Axes("subscriptions", "processing time (ms an event)", TIME, True, True),
        Axes("subscriptions", "predicates evaluated an event", LOCATED, True, True),
    )
    sizes = small_and_paper(
        ExperimentSize((5_000, 20_000, 80_000), 500, 0.2),
        ExperimentSize((50_000, 200_000, 800_000), 500, 2.0),
    )
    claims = (
        Claim(
            "LS-neon.located",
            "The located predicates, all of which neon evaluates, grow with the subscriptions.",
            located_grow,
        ),
    )
