"""LS-hanson: one indexed predicate of each subscription, selective or not.

The paper describes the case without a measurement. The attributes a1 to a3 have fewer and fewer
values. With p = 0 the other attributes occur in inequalities only, so that no predicate is
selective in the end. With p = 1 they occur in equalities on 5,000 values, so that most
subscriptions keep a selective predicate, which has to be known. The curve `hanson-first` does not
know it: it indexes the first predicate.
"""

from __future__ import annotations

from dataclasses import replace

from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabStep,
    Mode,
    Observation,
    Observations,
)
from tamis.lab.instruments.matcher_runs import MatcherRuns
from tamis.lab.papers.checks import NOISE, figure, judge, points
from tamis.lab.papers.lesubscribe.setting import (
    FAIR,
    GRIDS,
    NAIVE,
    PUBLISHED,
    LeSubscribeExperiment,
)
from tamis.lab.papers.matcher_experiment import ExperimentSize, small_and_paper

HANSON, FIRST = "hanson", "hanson-first"
TIME, CANDIDATES = "batch_ms", "subscriptions"
INEQUALITIES, EQUALITIES = "p = 0", "p = 1"
VALUES = (1, 2, 20, 200)
_PUBLISHED = {**PUBLISHED, HANSON: {"access": "selective"}}
_GRIDS = {**GRIDS, HANSON: ({"access": "selective"}, {"access": "first"})}


def poor_if_unselective(seen: Observations) -> Judgement:
    """Whether hanson loses its advantage over naive when nothing is selective."""
    times = points(seen, HANSON, TIME, panel=INEQUALITIES)
    naive = points(seen, NAIVE, TIME, panel=INEQUALITIES)
    candidates = points(seen, HANSON, CANDIDATES, panel=INEQUALITIES)
    good, poor = VALUES[-1], VALUES[0]
    slower = times[poor] / times[good]
    gain = {x: naive[x] / times[x] for x in (good, poor)}
    return judge(
        slower > 3 and gain[poor] < gain[good] / 3,
        f"from {good} values to {poor}: {figure(candidates[good])} to "
        f"{figure(candidates[poor])} candidates, {figure(times[good])} to {figure(times[poor])} "
        f"ms; {figure(gain[good])} and {figure(gain[poor])} times as fast as naive",
        "Each candidate is verified, and the candidates follow from the least selective of the "
        "best predicates. A small loss means that most subscriptions kept a selective predicate.",
        opposite=slower < 1 - NOISE,
    )


def needs_to_know(seen: Observations) -> Judgement:
    """Whether indexing the first predicate is far slower than indexing the most selective one."""
    known, unknown = (
        points(seen, name, TIME, panel=EQUALITIES)[VALUES[0]] for name in (HANSON, FIRST)
    )
    ratio = unknown / known
    return judge(
        ratio > 2,
        f"with {VALUES[0]} value and p = 1: {figure(known)} ms with the most selective predicate, "
        f"{figure(unknown)} ms with the first",
        "The first predicate is unselective in three of four subscriptions here. Its candidates "
        "are many, but each is dismissed at its next predicate.",
        opposite=ratio < 1 - NOISE,
    )


class LsHanson(LeSubscribeExperiment):
    """Section 3.1, on the hanson algorithm."""

    id = "LS-hanson"
    title = "One indexed predicate, selective or not"
    source = "section 3.1, hanson"
    matchers = (HANSON, NAIVE, FAIR)
    published = _PUBLISHED
    grids = _GRIDS
    varied = ("texts", VALUES)
    plots = (
        Axes("values of a text attribute", "processing time (ms an event)", TIME, True, True),
        Axes("values of a text attribute", "subscriptions touched", CANDIDATES, True, True),
    )
    sizes = small_and_paper(
        ExperimentSize((20_000,), 500, 0.2),
        ExperimentSize((800_000,), 500, 2.0),
    )
    claims = (
        Claim(
            "LS-hanson.unselective",
            "Hanson performs poorly if predicates are not selective.",
            poor_if_unselective,
        ),
        Claim(
            "LS-hanson.knowledge",
            "Hanson needs to know the selectivity of predicates.",
            needs_to_know,
        ),
    )

    def curves(self) -> tuple[Curve, ...]:
        return (*super().curves(), Curve(FIRST, Mode.PAPER, {"access": "first"}))

    def _steps(self, size: ExperimentSize) -> list[LabStep]:
        return [
            replace(step, panel=panel, parameters={**step.parameters, "p": p})
            for panel, p in ((INEQUALITIES, 0.0), (EQUALITIES, 1.0))
            for step in super(LsHanson, self)._steps(size)
        ]

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        return runs.observe(step, curve, HANSON if curve.name == FIRST else None)
