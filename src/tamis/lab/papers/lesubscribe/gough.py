"""LS-gough: the deterministic tree of Gough and Smith against fair-predicate.

Section 3.1 compares the two without a measurement. It speaks of a tree; Gough and Smith build an
automaton, in which nodes for the same subscriptions are shared. `gough` is the automaton,
`gough-tree` the tree. Either is built from scratch at each change, so its change is a new build and
a match. Where it does not fit into a million nodes, the curve has a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

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
from tamis.lab.instruments.timing import timed
from tamis.lab.papers.checks import curves, exponent, figure, judge, ordered, place, points
from tamis.lab.papers.lesubscribe.setting import FAIR, GRIDS, PUBLISHED, LeSubscribeExperiment
from tamis.lab.papers.matcher_experiment import ExperimentSize, given, small_and_paper
from tamis.match.base import Matcher
from tamis.match.lesubscribe.gough import Gough

GOUGH, TREE = "gough", "gough-tree"
TIME, NODES, CHANGE = "batch_ms", "graph_nodes", "change_ms"
_LARGEST = {"overflow": "error", "max_nodes": 1_000_000}
_PUBLISHED = {**PUBLISHED, GOUGH: _LARGEST}
_GRIDS = {
    **GRIDS,
    GOUGH: tuple({**_LARGEST, "order": order} for order in ("selective", "popular")),
}


def faster_than_fair(seen: Observations) -> Judgement:
    """Whether gough is faster at every size that fits."""
    return ordered(
        curves(seen, (GOUGH, FAIR), TIME),
        "ms",
        "An event follows one path, whatever the number of subscriptions, as the counts show. If "
        "fair-predicate is faster all the same, its few counters stay in the cache and the nodes "
        "of the path do not.",
    )


def nodes_explode(seen: Observations) -> Judgement:
    """Whether the automaton grows faster than the subscriptions; and the tree, where it fits."""
    nodes = points(seen, GOUGH, NODES)
    power = exponent(nodes) if len(nodes) > 1 else inf
    last = list(nodes)[-1]
    unfit = [
        f"; the {what} does not fit at {place(min(refused, key=float))}"
        for what, refused in (("automaton", seen.refusals(GOUGH)), ("tree", seen.refusals(TREE)))
        if refused
    ]
    return judge(
        power > 1.2,
        f"{figure(nodes[last])} nodes at {place(last)} subscriptions, as n^{power:.2f}"
        f"{''.join(unfit)}",
        "The growth is combinatorial as long as subscriptions without an equality meet all others "
        "on their way down. Measured sizes may be too small to show it.",
        opposite=power < 1,
    )


def change_costs_a_tree(seen: Observations) -> Judgement:
    """Whether a change of gough costs far more than one of fair-predicate."""
    gough, added = points(seen, GOUGH, CHANGE), points(seen, FAIR, "add_us")
    x = [each for each in gough if each in added][-1]
    ratio = 1e3 * gough[x] / added[x]
    return judge(
        ratio >= 10,
        f"at {place(x)}: {figure(gough[x])} ms for a new tree, {figure(added[x] / 1e3)} ms for an "
        f"insertion into fair-predicate: {figure(ratio)} times",
        "A change builds the tree again, and its nodes outnumber the subscriptions. Measured sizes "
        "may be too small for that to matter.",
        opposite=ratio < 1,
    )


class LsGough(LeSubscribeExperiment):
    """Section 3.1, the comparison of fair-predicate and gough."""

    id = "LS-gough"
    title = "One path through a tree, and its size"
    source = "section 3.1"
    matchers = (GOUGH, FAIR)
    published = _PUBLISHED
    grids = _GRIDS
    fixed = given(p=0.5)
    plots = (
        Axes("subscriptions", "processing time (ms an event)", TIME, True, True),
        Axes("subscriptions", "nodes of the tree", NODES, True, True),
        Axes("subscriptions", "nodes visited an event", "nodes", True, True),
    )
    tried = ExperimentSize((10, 20), 5, 0.01)
    sizes = small_and_paper(
        ExperimentSize((50, 100, 200, 400), 500, 0.2),
        ExperimentSize((50, 100, 200, 400, 800, 1_600), 1_000, 1.0),
    )
    claims = (
        Claim(
            "LS-gough.faster",
            "Gough finds the subscriptions faster than fair-predicate, where its tree fits.",
            faster_than_fair,
        ),
        Claim(
            "LS-gough.nodes",
            "The number of times that gough stores a predicate explodes combinatorially.",
            nodes_explode,
        ),
        Claim(
            "LS-gough.change",
            "Gough is not easily maintainable: a change builds the tree from scratch.",
            change_costs_a_tree,
        ),
    )

    def curves(self) -> tuple[Curve, ...]:
        return (*super().curves(), Curve(TREE, Mode.PAPER, {**_LARGEST, "memo": False}))

    def effort(self, step: LabStep) -> RunEffort:
        return replace(super().effort(step), changes=100)

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        if curve.name != FAIR:
            runs = MatcherRuns(runs.terms, runs.events, replace(runs.effort, changes=0), runs.seed)

        def inspect(matcher: Matcher) -> Mapping[str, list[float]]:
            if not isinstance(matcher, Gough):
                return {}

            def change() -> None:
                matcher.rebuild()
                matcher.match(runs.events[:1])

            return {NODES: [matcher.nodes], CHANGE: [1e3 * timed(change)]}

        return runs.observe(step, curve, GOUGH if curve.name == TREE else None, inspect)
