"""Claims of DEXIN with checks of their own, on made-up observations: each standing is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tamis.lab.experiments.experiment import Mode, Observation, Observations, Standing
from tamis.lab.experiments.registry import EXPERIMENTS, experiment
from tamis.lab.papers.dexin.changes import LINKED
from tamis.lab.papers.dexin.curves import ALGORITHMS
from tamis.lab.papers.dexin.plans import LMRFF, OPTIMAL
from tamis.lab.papers.dexin.single_methods import EXCLUSIVE, INCLUSIVE
from tamis.lab.papers.dexin.zipf import UNIFORM, ZIPF
from tests.unit.lab.experiments.made_observations import Curves, level, observations, together

YES, NO, CONTRARY = Standing.CONFIRMED, Standing.NOT_CONFIRMED, Standing.CONTRARY
IDS = [id for id in EXPERIMENTS if id.startswith("DX-")]
CLAIMS = {claim.id: claim for id in IDS for claim in experiment(id).claims}


def judged(claim: str, seen: Observations) -> Standing:
    found = CLAIMS[claim].check(seen)
    assert found.seen
    assert bool(found.why) == (found.standing is not YES)
    return found.standing


def test_every_figure_has_claims() -> None:
    figures = {claim.partition(".")[0] for claim in CLAIMS}
    assert figures == {*(f"DX-{number}" for number in range(2, 18)), "DX-tau"}


@pytest.mark.parametrize("id", IDS)
def test_results_that_lack_a_curve_are_incomplete(id: str) -> None:
    for claim in experiment(id).claims:
        with pytest.raises(KeyError):
            claim.check(Observations([]))


@pytest.mark.parametrize(
    ("points", "standing"),
    [
        ({2: 1, 6: 1.2, 10: 1.2, 22: 1.3}, YES),
        ({2: 1, 6: 1.2, 10: 1.7, 22: 2}, NO),
        ({2: 1, 6: 4, 10: 4, 22: 4}, NO),
        ({2: 1, 6: 1.2, 10: 3, 22: 9}, CONTRARY),
    ],
)
def test_dexin_by_attributes(points: dict[float, float], standing: Standing) -> None:
    assert judged("DX-4.dexin", observations({"dexin": points})) is standing


@pytest.mark.parametrize(
    ("points", "standing"),
    [
        ({2: 3, 6: 1, 22: 3}, YES),
        ({2: 3, 6: 2, 22: 1}, NO),
        ({2: 1, 6: 3, 22: 1}, CONTRARY),
    ],
)
def test_h_tree_by_attributes(points: dict[float, float], standing: Standing) -> None:
    assert judged("DX-4.h-tree", observations({"h-tree": points})) is standing


@pytest.mark.parametrize(
    ("be_tree", "opindex", "standing"), [(2, 1.5, YES), (9, 1.5, NO), (0.5, 0.5, CONTRARY)]
)
def test_slow_growth_by_width(be_tree: float, opindex: float, standing: Standing) -> None:
    curves = {"be-tree": {0.1: 1, 0.9: be_tree}, "opindex": {0.1: 1, 0.9: opindex}}
    assert judged("DX-6.be-tree-opindex", observations(curves)) is standing


@pytest.mark.parametrize(
    ("tama", "standing"),
    [({0.1: 1, 0.9: 9}, YES), ({0.1: 9, 0.9: 10}, NO), ({0.1: 9, 0.9: 1}, CONTRARY)],
)
def test_tama_by_width(tama: dict[float, float], standing: Standing) -> None:
    curves = {**level([0.1, 0.9], h_tree=5, be_tree=5, opindex=5, rein=5, dexin=1), "tama": tama}
    assert judged("DX-6.tama", observations(curves)) is standing


@pytest.mark.parametrize(
    ("h_tree", "best", "explodes"),
    [
        ({0.1: 1, 0.3: 1, 0.6: 4, 0.9: 16}, YES, YES),
        ({0.1: 1, 0.3: 9, 0.6: 9, 0.9: 10}, NO, NO),
        ({0.1: 9, 0.3: 9, 0.6: 8, 0.9: 7}, CONTRARY, CONTRARY),
    ],
)
def test_h_tree_by_width(h_tree: dict[float, float], best: Standing, explodes: Standing) -> None:
    curves = level(list(h_tree), tama=5, be_tree=5, opindex=5, rein=5, dexin=2)
    seen = observations({**curves, "h-tree": h_tree})
    assert judged("DX-6.h-tree-best", seen) is best
    assert judged("DX-6.h-tree-explodes", seen) is explodes


def test_a_refusal_of_the_h_tree_says_nothing_about_its_time() -> None:
    seen = observations({"h-tree": {0.3: 1, 0.5: 1.1}}, refused={"h-tree": [0.7, 0.9]})
    assert judged("DX-6.h-tree-explodes", seen) is Standing.UNTESTABLE


@pytest.mark.parametrize(
    ("dexin", "others", "slower", "least"),
    [(1.1, 2, YES, YES), (1.5, 0.5, NO, YES), (0.2, 0.9, CONTRARY, CONTRARY)],
)
def test_zipf(dexin: float, others: float, slower: Standing, least: Standing) -> None:
    skewed = {name: {1.0: others + i / 50} for i, name in enumerate(ALGORITHMS)}
    skewed["dexin"] = {1.0: dexin}
    uniform = {name: {1.0: 1.0} for name in ALGORITHMS}
    seen = together(observations(uniform, panel=UNIFORM), observations(skewed, panel=ZIPF))
    for figure in ("DX-7", "DX-8", "DX-9"):
        assert judged(f"{figure}.slower", seen) is slower
        assert judged(f"{figure}.least", seen) is least


def test_neither_the_least_nor_the_most_affected() -> None:
    skewed = {name: {1.0: 1.1 + i / 10} for i, name in enumerate(ALGORITHMS)}
    skewed["dexin"] = {1.0: 1.15}
    uniform = {name: {1.0: 1.0} for name in ALGORITHMS}
    seen = together(observations(uniform, panel=UNIFORM), observations(skewed, panel=ZIPF))
    assert judged("DX-7.least", seen) is NO


@pytest.mark.parametrize(
    ("rein", "rest", "standing"), [(1.1, 1.1, YES), (3, 1.1, NO), (3, 0.3, CONTRARY)]
)
def test_stable_over_cardinalities(rein: float, rest: float, standing: Standing) -> None:
    curves = {name: {100.0: 1.0, 1e3: 1.0, 1e4: rest} for name in ALGORITHMS}
    curves["rein"][1e4] = rein
    assert judged("DX-10.stable", observations(curves)) is standing


@pytest.mark.parametrize(
    ("dexin", "be_tree", "standing"), [(1, 2, YES), (1, 9, NO), (2, 1, CONTRARY)]
)
def test_the_next_best_by_matching_rate(dexin: float, be_tree: float, standing: Standing) -> None:
    curves = level([0.1, 0.2], tama=5, h_tree=5, opindex=5, rein=5, dexin=dexin, be_tree=be_tree)
    assert judged("DX-12.next-best", observations(curves)) is standing


def changes(**ratios: float) -> Observations:
    """Six algorithms that unsubscribe at a factor of the time to subscribe."""
    names = [(name, ratios.get(name, 1.0)) for name in ALGORITHMS]
    return together(
        observations({name: {1.0: 10.0} for name, _ in names}, "subscribe_us"),
        observations({name: {1.0: 10 * ratio} for name, ratio in names}, "unsubscribe_us"),
    )


def test_unsubscribing() -> None:
    assert judged("DX-13.unsubscribe", changes()) is YES
    assert judged("DX-13.unsubscribe", changes(rein=5)) is NO
    assert judged("DX-13.unsubscribe", changes(**dict.fromkeys(ALGORITHMS, 9.0))) is CONTRARY


@pytest.mark.parametrize(("linked", "standing"), [(0.9, YES), (1.05, NO), (2, CONTRARY)])
def test_linked_lists(linked: float, standing: Standing) -> None:
    curves = {**level([1, 2], rein=1, dexin=1), LINKED: {1.0: linked, 2.0: linked}}
    assert judged("DX-13.linked", observations(curves, "subscribe_s")) is standing
    assert judged("DX-14.linked", observations(curves, "memory_mb")) is standing


@pytest.mark.parametrize(("linked", "standing"), [(1.2, YES), (1, NO), (3, NO), (0.5, CONTRARY)])
def test_linked_lists_match(linked: float, standing: Standing) -> None:
    seen = observations({"dexin": {1: 1}, LINKED: {1: linked}})
    assert judged("DX-13.linked-match", seen) is standing


@pytest.mark.parametrize(
    ("gaps", "shrinks", "vanishes"),
    [
        ({2: 0, 4: 0.02, 10: 0.001, 16: 0}, YES, YES),
        ({2: 0.02, 4: 0.02, 10: 0.02, 16: 0.02}, NO, NO),
        ({2: 0, 4: 0.02, 10: 0.2, 16: 0.3}, CONTRARY, CONTRARY),
    ],
)
def test_costs_of_plans(gaps: Mapping[float, float], shrinks: Standing, vanishes: Standing) -> None:
    curves: Curves = {
        LMRFF: {x: 1 + gap for x, gap in gaps.items()},
        OPTIMAL: dict.fromkeys(gaps, 1.0),
    }
    seen = observations(curves, "cost_n")
    assert judged("DX-15.shrinks", seen) is shrinks
    assert judged("DX-15.vanishes", seen) is vanishes


@pytest.mark.parametrize(("near", "standing"), [(1.05, YES), (1.3, NO), (2, CONTRARY)])
def test_matching_without_planning(near: float, standing: Standing) -> None:
    curves: Curves = {LMRFF: {6: 9, 10: near, 16: near}, OPTIMAL: {6: 1, 10: 1, 16: 1}}
    assert judged("DX-16.coincide", observations(curves, "planned_ms")) is standing


@pytest.mark.parametrize(
    ("whole", "standing"),
    [({10: 2, 16: 65}, YES), ({10: 2, 16: 2.2}, NO), ({10: 1.1, 16: 1.2}, CONTRARY)],
)
def test_matching_with_planning(whole: dict[float, float], standing: Standing) -> None:
    seen = together(
        observations({OPTIMAL: {10: 1, 16: 1}}, "planned_ms"),
        observations({OPTIMAL: whole, LMRFF: {10: 1.5, 16: 1.5}}),
    )
    assert judged("DX-16.explodes", seen) is standing


@pytest.mark.parametrize(
    ("exclusive", "inclusive", "standing"),
    [(0.5, 2, YES), (1, 2, NO), (2, 0.5, CONTRARY)],
)
def test_opposite_methods(exclusive: float, inclusive: float, standing: Standing) -> None:
    curves: Curves = {EXCLUSIVE: {1: 1, 2: exclusive}, INCLUSIVE: {1: 1, 2: inclusive}}
    assert judged("DX-17.opposite", observations(curves)) is standing
    assert judged("DX-17.cost", observations(curves, "cost")) is standing


@pytest.mark.parametrize(("gap", "standing"), [(1.05, YES), (1.5, NO), (3, CONTRARY)])
def test_formulas(gap: float, standing: Standing) -> None:
    counts = {"cost": 2.0, "subscriptions": 2000 * gap}
    one = Observation(0.1, "dexin", Mode.PAPER, {}, counts, parameters={"n": 1000})
    seen = Observations([replace(one, curve=each) for each in ("dexin", EXCLUSIVE, INCLUSIVE)])
    assert judged("DX-17.formulas", seen) is standing


@pytest.mark.parametrize(("last", "standing"), [(3, YES), (2, NO), (0.5, CONTRARY)])
def test_the_memory_of_more_slots(last: float, standing: Standing) -> None:
    second = {YES: 2, NO: 2, CONTRARY: 0.8}[standing]
    curve = {"dexin": {50.0: 1.0, 500.0: second, 5000.0: last}}
    assert judged("DX-tau.memory", observations(curve, "memory_mb")) is standing


@pytest.mark.parametrize(("last", "standing"), [(0.9, YES), (1, NO), (1.3, CONTRARY)])
def test_more_slots(last: float, standing: Standing) -> None:
    assert judged("DX-tau.time", observations({"dexin": {50: 1, 5000: last}})) is standing
