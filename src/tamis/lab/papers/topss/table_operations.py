"""TO-ops: insertion and deletion of predicates in tables take constant time.

The paper states it without a measurement. All predicates are on one attribute of 100,000 values,
and a subscription has one predicate. We remove random subscriptions and add them again, one by one.
Both look the predicate up first.
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
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort
from tamis.lab.papers.checks import curves, figure, judge, spans
from tamis.lab.papers.matcher_experiment import OURS, ExperimentSize, small_and_paper
from tamis.lab.papers.topss.setting import LINEAR_LIST, LIST, TABLE, TopssExperiment
from tamis.workload import Workload
from tamis.workload.topss import TopssSetting, make

ADD, REMOVE = "add_us", "remove_us"
TABLES, LISTS = "counting-list", "counting-list-linear"
_CONSTANT = 2.0  # caches make a larger table slower, too
_ONE_ATTRIBUTE = TopssSetting(1, 1, 1, ((1, 100_000),), 1, 1)


def tables_take_constant_time(seen: Observations) -> Judgement:
    """Whether adding and removing takes the same with a hundred times as many predicates."""
    growths = {}
    for what, quantity in (("add", ADD), ("remove", REMOVE)):
        values = list(curves(seen, (TABLES,), quantity)[TABLES].values())
        growths[what] = values[-1] / values[0]
    added = curves(seen, (TABLES, LISTS), ADD)
    listed = ", ".join(f"{what} {figure(growth)}" for what, growth in growths.items())
    return judge(
        max(growths.values()) <= _CONSTANT,
        f"{spans(added, 'µs')} to add; growth with tables: {listed}",
        "A cell is reached by its number, whatever the other cells hold. Growth comes from memory "
        "that leaves the cache, and from other parts of the matcher.",
        opposite=min(growths.values()) > 10,
    )


class TopssTableOperations(TopssExperiment):
    """Section 3.2."""

    id = "TO-ops"
    title = "Insertion and deletion of predicates"
    source = "section 3.2"
    matchers = (LIST,)
    plots = (
        Axes("subscriptions of one predicate", "time to add one (µs)", ADD, True, True),
        Axes("subscriptions of one predicate", "time to remove one (µs)", REMOVE, True, True),
    )
    sizes = small_and_paper(
        ExperimentSize((2_000, 20_000, 200_000), 5, 0.3),
        ExperimentSize((2_000, 20_000, 200_000, 400_000), 5, 2.0),
    )
    claims = (
        Claim(
            "TO-ops.constant",
            "A table inserts, deletes and finds a predicate in constant time.",
            tables_take_constant_time,
            stated="O(1)",
        ),
    )

    def curves(self) -> tuple[Curve, ...]:
        return (
            Curve(TABLES, Mode.PAPER, dict(TABLE)),
            Curve(LISTS, Mode.PAPER, dict(LINEAR_LIST)),
            Curve(TABLES, Mode.TUNED),
            OURS,
        )

    def workload(self, step: LabStep, seed: int) -> Workload:
        return make(step.parameters["n"], seed=seed, setting=_ONE_ATTRIBUTE)

    def effort(self, step: LabStep) -> RunEffort:
        return replace(super().effort(step), batches=0, changes=300, counted=5, compared=5)

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        return runs.observe(step, curve, LIST if curve.name == LISTS else None)
