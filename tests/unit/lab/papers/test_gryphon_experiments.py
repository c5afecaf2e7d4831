"""The experiments on the matching tree: measured at tiny sizes, and judged on made results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tamis.lab.experiments.experiment import (
    LabScale,
    LabStep,
    Mode,
    Observation,
    Observations,
    Standing,
)
from tamis.lab.instruments.matcher_runs import RunEffort
from tamis.lab.papers.checks import points
from tamis.lab.papers.gryphon import optimisations
from tamis.lab.papers.gryphon.optimisations import POPULARITY, SUBSCRIPTIONS, TreeOptimisations
from tamis.lab.papers.gryphon.prototype import JavaPrototype
from tamis.lab.papers.gryphon.simulation import SimulatedLoad
from tamis.lab.papers.gryphon.theorem import (
    NARROW,
    PREPROCESSING,
    WIDE,
    WORST_EVENT,
    TreeTheorem,
    visit_bound,
)
from tamis.lab.papers.gryphon.trees import TREE, TreeExperiment
from tamis.workload.gryphon import worst_visits
from tests.unit.lab.papers.made import counted, judged, observed

CONFIRMED, NOT_CONFIRMED, CONTRARY, UNTESTABLE = Standing
TINY = RunEffort(events=20, seconds=0.05, passes=1, batches=1, changes=0, counted=5, compared=5)
KINDS: tuple[type[TreeExperiment], ...] = (
    TreeTheorem,
    SimulatedLoad,
    JavaPrototype,
    TreeOptimisations,
)


def _last_of_panels(steps: list[LabStep]) -> list[LabStep]:
    return list({step.panel: step for step in steps}.values())


@pytest.mark.parametrize("kind", KINDS)
def test_each_experiment_is_measured(kind: type[TreeExperiment]) -> None:
    tiny = kind(shrink=1_000, effort=TINY)
    for step in _last_of_panels(list(tiny.steps(LabScale.SMALL))):
        found = list(tiny.measure(step, seed=1))
        assert [(each.curve, each.mode) for each in found] == [
            (curve.name, curve.mode) for curve in step.curves
        ]
        for each in found:
            assert not each.refusal
            if each.curve != "bound of the theorem":
                assert min(each.measured["batch_cpu_ms"]) >= 0
            if each.curve.startswith(TREE):
                assert len(each.measured["visited_nodes"]) == TINY.events
                assert each.counts["tree_nodes"] > 1
                assert each.counts["space"] >= each.counts["tree_nodes"] / 2


def test_visits_of_worst_sets_are_those_of_the_formula() -> None:
    """The tree of the matcher is the one that the theorem speaks of, if all attributes are used."""
    effort = RunEffort(events=400, seconds=0.05, passes=1, batches=0, changes=0, counted=1)
    experiment = TreeTheorem(shrink=5, effort=effort)
    for panel in (WIDE, NARROW):
        step = [each for each in experiment.steps(LabScale.SMALL) if each.panel == panel][-1]
        found = {each.curve: each for each in experiment.measure(step, seed=2)}
        expected = worst_visits(experiment.draw(step, 2))
        assert found[TREE].value("visited_nodes") == pytest.approx(expected, rel=0.1)
        assert expected <= found["bound of the theorem"].value("visited_nodes")


def test_the_bound_is_the_printed_one() -> None:
    # 4 attributes of 5 values: K1 = V = 5, so that 1 - λ = 1/2 and both logarithms are equal.
    assert visit_bound(100, 4) == pytest.approx(5 * 5 * (5 * 10 - 1) * 2 / 24)


def _tree(quantity: str, points: Mapping[Any, float], panel: str = "") -> list[Observation]:
    return counted(TREE, quantity, points, panel=panel)


def test_visits_and_the_bound() -> None:
    for share, standing in ((0.9, CONFIRMED), (1.1, CONTRARY)):
        both = [
            _tree("visited_nodes", {n: share * visit_bound(n, width) for n in (100, 1000)}, panel)
            for panel, width in ((WIDE, 30), (NARROW, 4))
        ]
        assert judged(TreeTheorem, "AG-thm.bound", *both).standing is standing
    some = {100: 1.0, 1000: 2 * visit_bound(1000, 30)}
    curves = _tree("visited_nodes", some, WIDE), _tree("visited_nodes", {100: 1.0}, NARROW)
    assert judged(TreeTheorem, "AG-thm.bound", *curves).standing is NOT_CONFIRMED
    with pytest.raises(KeyError):
        judged(TreeTheorem, "AG-thm.bound")


def test_growth_of_visits() -> None:
    def power(exponent: float, panel: str) -> list[Observation]:
        return _tree("visited_nodes", {n: n**exponent for n in (10, 100, 1000)}, panel)

    for exponent, standing in ((0.68, CONFIRMED), (0.95, NOT_CONFIRMED), (1.02, CONTRARY)):
        curves = power(exponent, WIDE), power(0.4, NARROW)
        assert judged(TreeTheorem, "AG-thm.sublinear", *curves).standing is standing
    for exponent, standing in ((0.5, CONFIRMED), (0.7, NOT_CONFIRMED), (1.0, CONTRARY)):
        found = judged(TreeTheorem, "AG-thm.half", power(exponent, NARROW))
        assert found.standing is standing


def test_visits_of_a_single_event() -> None:
    wide = _tree("visited_nodes", {10: 100.0}, WIDE)
    for most, standing in ((31.0, CONFIRMED), (32.0, NOT_CONFIRMED)):
        narrow = observed(TREE, {10: {"visited_nodes": [5.0, most]}}, panel=NARROW)
        assert judged(TreeTheorem, "AG-thm.paths", narrow, wide).standing is standing


def test_nodes_of_the_tree() -> None:
    def trees(nodes: float) -> list[Observation]:
        return [
            *_tree("tree_nodes", {10: nodes}, NARROW),
            *_tree("tree_nodes", {10: 6 * nodes}, WIDE),
            *_tree("tree_nodes", {10: 6 * nodes}, WORST_EVENT),
        ]

    def standing(nodes: float) -> Standing:
        curves = trees(nodes)
        counts = [
            Observation(each.x, each.curve, each.mode, {}, {"tree_nodes": each.value("tree_nodes")},
                        panel=each.panel)
            for each in curves
        ]  # fmt: skip
        return judged(TreeTheorem, "AG-thm.space", counts).standing

    assert standing(50) is CONFIRMED
    assert standing(51.5) is NOT_CONFIRMED
    assert standing(60) is CONTRARY


def test_time_to_build() -> None:
    for exponent, standing in ((1.0, CONFIRMED), (1.5, NOT_CONFIRMED), (2.0, CONTRARY)):
        sizes = _tree("build_cpu_s", {n: 1e-6 * n**exponent for n in (10, 1e3, 1e4, 1e5)}, WIDE)
        widths = _tree("build_cpu_s", {5: 0.5, 10: 1.0, 20: 2.0}, PREPROCESSING)
        found = judged(TreeTheorem, "AG-thm.preprocessing", sizes, widths)
        assert found.standing is standing


def test_the_worst_event() -> None:
    for visits, standing in (
        ((100.0, 1000.0), CONFIRMED),
        ((50.0, 1000.0), NOT_CONFIRMED),
        ((100.0, 150.0), CONTRARY),
    ):
        points = {
            x: {"visited_nodes": [visited], "tree_nodes": nodes}
            for x, visited, nodes in zip((10, 100), visits, (100.0, 1000.0), strict=True)
        }
        found = judged(TreeTheorem, "AG-thm.worst", observed(TREE, points, panel=WORST_EVENT))
        assert found.standing is standing


def _power(exponents: Mapping[str, float], name: str = TREE, panel: str = "") -> list[Observation]:
    points = {
        n: {what: [n**exponent] for what, exponent in exponents.items()} for n in (10, 100, 1000)
    }
    return observed(name, points, panel=panel)


def test_time_and_space_of_the_simulated_load() -> None:
    for visits, time, standing in (
        (0.6, 0.7, CONFIRMED),
        (0.6, 0.95, NOT_CONFIRMED),
        (1.0, 1.1, CONTRARY),
    ):
        curve = _power({"visited_nodes": visits, "batch_cpu_ms": time})
        assert judged(SimulatedLoad, "AG-sim.time", curve).standing is standing
    for exponent, standing in ((1.05, CONFIRMED), (1.3, NOT_CONFIRMED), (1.7, CONTRARY)):
        found = judged(SimulatedLoad, "AG-sim.space", _power({"space": exponent}))
        assert found.standing is standing
    for last, standing in ((22.0, CONFIRMED), (40.0, NOT_CONFIRMED)):
        found = judged(SimulatedLoad, "AG-sim.matches", _tree("matches", {10: 20.0, 100: last}))
        assert found.standing is standing


def test_the_prototype_cannot_be_tested() -> None:
    found = judged(JavaPrototype, "AG-java.time", _tree("match_ms", {10_000: 0.25}))
    assert found.standing is UNTESTABLE
    assert "10,000: 0.250" in found.seen


@pytest.mark.parametrize(
    ("claim", "better", "worse", "count"),
    [
        ("AG-opt.collapse", optimisations.COLLAPSE, TREE, "visited_nodes"),
        ("AG-opt.successors", optimisations.SUCCESSORS, optimisations.COLLAPSE, "predicates"),
        ("AG-opt.aggressive", optimisations.AGGRESSIVE, optimisations.SUCCESSORS, "visited_nodes"),
    ],
)
def test_an_optimisation_helps(claim: str, better: str, worse: str, count: str) -> None:
    before = observed(
        worse, {x: {count: [100.0], "batch_cpu_ms": [1.0]} for x in (0.5, 0.9)}, panel=POPULARITY
    )
    for counts, time, standing in (
        (80.0, 0.9, CONFIRMED),
        (80.0, 1.01, NOT_CONFIRMED),
        (120.0, 0.9, NOT_CONFIRMED),
        (80.0, 1.2, CONTRARY),
    ):
        after = observed(
            better,
            {x: {count: [counts], "batch_cpu_ms": [time]} for x in (0.5, 0.9)},
            panel=POPULARITY,
        )
        assert judged(TreeOptimisations, claim, before, after).standing is standing


def test_where_collapsing_saves_most() -> None:
    plain = _tree("visited_nodes", {0.5: 100.0, 0.7: 100.0, 0.9: 100.0}, POPULARITY)
    for values, standing in (
        ((20.0, 30.0, 40.0), CONFIRMED),
        ((40.0, 30.0, 60.0), NOT_CONFIRMED),
        ((40.0, 30.0, 20.0), CONTRARY),
    ):
        points = dict(zip((0.5, 0.7, 0.9), values, strict=True))
        after = counted(optimisations.COLLAPSE, "visited_nodes", points, panel=POPULARITY)
        assert judged(TreeOptimisations, "AG-opt.rare", plain, after).standing is standing


def test_space_of_successors() -> None:
    for exponent, standing in ((1.0, CONFIRMED), (1.3, NOT_CONFIRMED), (1.7, CONTRARY)):
        curves = [
            _power({"successors": exponent, "tree_nodes": 1.0}, name, SUBSCRIPTIONS)
            for name in (optimisations.SUCCESSORS, optimisations.AGGRESSIVE)
        ]
        assert judged(TreeOptimisations, "AG-opt.linear", *curves).standing is standing


def test_index_attributes_trade_space_for_time() -> None:
    plain = observed(
        TREE, {x: {"batch_cpu_ms": [1.0], "space": 10.0} for x in (1, 2)}, panel=POPULARITY
    )
    for times, space, standing in (
        ((0.5, 0.6), 20.0, CONFIRMED),
        ((0.5, 1.1), 20.0, NOT_CONFIRMED),
        ((1.2, 1.1), 20.0, CONTRARY),
    ):
        points = {
            x: {"batch_cpu_ms": [time], "space": space}
            for x, time in zip((1, 2), times, strict=True)
        }
        after = observed(optimisations.INDEXED, points, panel=POPULARITY)
        assert judged(TreeOptimisations, "AG-opt.factoring", plain, after).standing is standing


def test_one_interruption_does_not_decide() -> None:
    noisy = observed(TREE, {n: {"batch_cpu_ms": [1.0, 1.0, 90.0]} for n in (10, 100)})
    assert points(Observations(noisy), TREE, "batch_cpu_ms") == {10: 1.0, 100: 1.0}


def test_the_tuned_curve_has_its_best_options() -> None:
    tiny = SimulatedLoad(shrink=1_000, effort=TINY)
    step = tiny.steps(LabScale.SMALL)[-1]
    (tuned,) = (each for each in tiny.measure(step, seed=1) if each.mode is Mode.TUNED)
    assert tuned.options in [dict(each) for each in tiny.grid]
