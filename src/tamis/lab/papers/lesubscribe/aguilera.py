"""LS-aguilera: paths and nodes of the matching tree.

Section 3.1 states them without a measurement. Times of the tree are in Gryphon's experiments.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabStep,
    Observation,
    Observations,
)
from tamis.lab.instruments.matcher_runs import MatcherRuns
from tamis.lab.papers.checks import NOISE, figure, judge, points, ratio
from tamis.lab.papers.lesubscribe.setting import FAIR, GRIDS, PUBLISHED, LeSubscribeExperiment
from tamis.lab.papers.matcher_experiment import ExperimentSize, small_and_paper
from tamis.match.base import Matcher
from tamis.match.gryphon.aguilera import Aguilera
from tamis.match.gryphon.match_tree import AT_MOST, EQUALS, KINDS

AGUILERA = "aguilera"
TIME, TREE, TESTS, LEAVES = "batch_ms", "tree_nodes", "inequality_nodes", "matched_leaves"
_ROUNDED = 1e-4  # of a count: result files have five digits
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_PUBLISHED = {**PUBLISHED, AGUILERA: {}}
_GRIDS = {
    **GRIDS,
    AGUILERA: ({}, {"tree": "equality"}, {"tree": "equality", "collapse": True}),
}


def paths_end_at_matches(seen: Observations) -> Judgement:
    """Whether an event follows as many complete paths as it matches leaves."""
    nodes, tests = (points(seen, AGUILERA, name) for name in ("nodes", "predicates"))
    leaves = points(seen, AGUILERA, LEAVES)
    paths = {p: nodes[p] - tests[p] for p in leaves}  # nodes that are no test are leaves
    same = all(abs(paths[p] - leaves[p]) <= _ROUNDED * nodes[p] for p in leaves)
    listed = ", ".join(f"p = {p:g}: {figure(paths[p])} and {figure(leaves[p])}" for p in leaves)
    return judge(
        same,
        f"complete paths and leaves of matched subscriptions an event: {listed}",
        "Equal subscriptions share a leaf. A path that ends at a leaf without a match would be one "
        "whose predicates the tree does not express, which has to be verified.",
        opposite=all(paths[p] < leaves[p] for p in leaves),
    )


def inequalities_add_nodes(seen: Observations) -> Judgement:
    """Whether each inequality has nodes of its own, and an event visits more of them."""
    tests, distinct = (points(seen, AGUILERA, name) for name in (TESTS, "inequalities"))
    tree, visited = (points(seen, AGUILERA, name) for name in (TREE, "nodes"))
    none, all_equal = SHARES[0], SHARES[-1]
    each = all(tests[p] >= distinct[p] for p in tests)
    more = ratio(visited[none], visited[all_equal])
    return judge(
        each and more > 1 + NOISE,
        f"p = 0: {figure(tests[none])} nodes for {figure(distinct[none])} distinct inequalities, "
        f"{figure(visited[none])} nodes visited; p = 1: {figure(tests[all_equal])} for "
        f"{figure(distinct[all_equal])}, {figure(visited[all_equal])} visited; "
        f"{figure(tree[none])} and {figure(tree[all_equal])} nodes in all",
        "A node tests one constant, so each inequality needs a node unless another implies it. "
        "Fewer nodes than inequalities mean that two directions share a test.",
        opposite=more < 1 - NOISE,
    )


class LsAguilera(LeSubscribeExperiment):
    """Section 3.1, on the aguilera algorithm."""

    id = "LS-aguilera"
    title = "Paths and nodes of the matching tree"
    source = "section 3.1, aguilera"
    matchers = (AGUILERA, FAIR)
    published = _PUBLISHED
    grids = _GRIDS
    varied = ("p", SHARES)
    plots = (
        Axes(
            "share p of equalities on a4 to a6", "processing time (ms an event)", TIME, log_y=True
        ),
        Axes("share p of equalities on a4 to a6", "nodes visited an event", "nodes", log_y=True),
        Axes("share p of equalities on a4 to a6", "nodes of the tree", TREE, log_y=True),
    )
    sizes = small_and_paper(
        ExperimentSize((10_000,), 1_000, 0.2),
        ExperimentSize((100_000,), 1_000, 2.0),
    )
    claims = (
        Claim(
            "LS-aguilera.paths",
            "The complete paths that an event follows are as many as the leaves it matches.",
            paths_end_at_matches,
        ),
        Claim(
            "LS-aguilera.nodes",
            "Each inequality adds a node, so an event has more nodes to visit.",
            inequalities_add_nodes,
        ),
    )

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        def inspect(matcher: Matcher) -> Mapping[str, list[float]]:
            if not isinstance(matcher, Aguilera):
                return {}
            tests = matcher.match_tree.view.nodes["test"][: matcher.match_tree.top]
            tests = tests[tests >= 0]
            ends = runs.terms.low != runs.terms.high
            ranges = np.stack([column[ends] for column in (runs.terms.attribute, *runs.terms[4:])])
            return {
                TREE: [float(len(matcher.match_tree))],
                TESTS: [float(np.isin(tests % KINDS, (AT_MOST, EQUALS)).sum())],
                "inequalities": [float(np.unique(ranges, axis=1).shape[1])],
                LEAVES: _matched_leaves(runs, matcher),
            }

        return runs.observe(step, curve, inspect=inspect)


def _matched_leaves(runs: MatcherRuns, matcher: Matcher) -> list[float]:
    """For each counted event, the number of distinct subscriptions that match it."""
    found = matcher.match(runs.events[: runs.effort.counted])
    kinds = {slot: _as_tuple(runs, slot) for slot in np.unique(found.slots).tolist()}
    return [float(len({kinds[slot] for slot in slots})) for slots in found]


def _as_tuple(runs: MatcherRuns, slot: int) -> tuple[tuple[int, ...], ...]:
    terms = runs.terms.take(np.array([slot]))
    return tuple(tuple(column.tolist()) for column in terms[1:])
