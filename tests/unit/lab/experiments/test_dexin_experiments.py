"""Each experiment of DEXIN, measured at a tiny size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tamis.lab.experiments.experiment import (
    LabScale,
    LabStep,
    Mode,
    Observation,
    Observations,
    Standing,
)
from tamis.lab.experiments.registry import EXPERIMENTS, experiment
from tamis.lab.papers.dexin.changes import ChangesExperiment
from tamis.lab.papers.dexin.cluster import joined_shards
from tamis.lab.papers.dexin.curves import ALGORITHMS, GRIDS
from tamis.lab.papers.dexin.plans import LMRFF, OPTIMAL, PlansExperiment
from tamis.lab.papers.dexin.scenario import DexinExperiment, DexinSizes
from tamis.lab.papers.dexin.single_methods import EXCLUSIVE, SingleMethodsExperiment
from tamis.lab.papers.dexin.subscriptions import SubscriptionsExperiment

TINY = {LabScale.SMALL: DexinSizes(1_000, 6, 0.02)}
IDS = [id for id in EXPERIMENTS if id.startswith("DX-")]


def made(id: str) -> DexinExperiment:
    found = type(experiment(id))
    assert issubclass(found, DexinExperiment)
    return found(TINY)


def untuned(step: LabStep) -> LabStep:
    """A step as the runner passes it when its file has the tuned curves."""
    return replace(step, curves=tuple(each for each in step.curves if each.mode is not Mode.TUNED))


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
def test_every_claim_can_be_judged(id: str) -> None:
    mine = made(id)
    seen = []
    for step in map(untuned, mine.steps(LabScale.SMALL)):
        found = list(mine.measure(step, seed=3))
        assert [(each.curve, each.mode) for each in found] == [
            (each.name, each.mode) for each in step.curves
        ]
        assert {each.x for each in found} == {step.x}
        assert not [each.refusal for each in found if each.refusal]
        assert all(time > 0 for each in found for time in each.measured["match_ms"])
        seen += found
    for claim in mine.claims:
        judged = claim.check(Observations(seen))
        assert judged.seen
        assert bool(judged.why) == (judged.standing is not Standing.CONFIRMED)
    for axes in mine.plots:
        assert any(each.has(axes.quantity) for each in seen), f"an empty plot of {axes.quantity}"


@pytest.mark.parametrize("id", IDS)
def test_steps_at_the_sizes_of_the_paper(id: str) -> None:
    steps = experiment(id).steps(LabScale.PAPER)
    assert max(step.parameters["n"] for step in steps) >= 1_000_000
    assert len({(step.x, step.panel) for step in steps}) == len(steps)
    assert len(experiment(id).steps(LabScale.SMALL)) <= len(steps)
    assert bool(experiment(id).steps(LabScale.CLUSTER)) == (id == "DX-2")


@pytest.mark.slow
def test_tuned_curves_state_options_of_their_grid() -> None:
    mine = SubscriptionsExperiment(TINY)
    first = mine.steps(LabScale.SMALL)[0]
    tuned = tuple(each for each in first.curves if each.mode is Mode.TUNED)
    assert [each.name for each in tuned] == list(ALGORITHMS)
    for found in mine.measure(replace(first, curves=tuned), seed=3):
        assert found.options in GRIDS[found.curve]


@pytest.mark.slow
def test_changes_are_measured_batch_by_batch() -> None:
    mine = ChangesExperiment(TINY)
    step = untuned(mine.steps(LabScale.SMALL)[-1])
    for found in mine.measure(step, seed=3):
        assert len(found.measured["subscribe_us"]) == len(found.measured["unsubscribe_us"]) == 2
        assert found.value("subscribe_s") > 0
        assert found.value("memory_mb") > 0.1


@pytest.mark.slow
def test_optimal_plans_never_cost_more() -> None:
    mine = PlansExperiment(TINY)
    for step in mine.steps(LabScale.SMALL):
        found = {each.curve: each for each in mine.measure(step, seed=3)}
        near, best = (found[name].measured["cost_n"] for name in (LMRFF, OPTIMAL))
        assert len(near) == len(best) == TINY[LabScale.SMALL].events
        assert all(a >= b - 1e-9 for a, b in zip(near, best, strict=True))
        assert all(
            time > 0 for name in (LMRFF, OPTIMAL) for time in found[name].measured["planned_ms"]
        )


@pytest.mark.slow
def test_the_exclusive_method_costs_what_formula_8_says() -> None:
    mine = SingleMethodsExperiment(TINY)
    found = {each.curve: each for each in mine.measure(mine.steps(LabScale.SMALL)[0], seed=3)}
    assert found[EXCLUSIVE].counts["exclusive"] == 10
    assert 4 < found[EXCLUSIVE].counts["cost"] < 7
    assert found["dexin"].counts["cost"] < 2


def test_shards_are_added_up() -> None:
    one = Observation(
        1e6,
        "dexin",
        Mode.PAPER,
        {"match_ms": [1.0, 2.0], "build_s": [3.0], "memory_mb": [4.0]},
        {"subscriptions": 10.0, "matches": 1.0},
        parameters={"shards": 2},
    )
    other = replace(one, measured={**one.measured, "match_ms": [5.0, 1.0, 9.0]})
    found = joined_shards([one, other])
    assert found.measured == {
        "match_ms": [6.0, 3.0],
        "slowest_ms": [5.0, 2.0],
        "build_s": [6.0],
        "memory_mb": [8.0],
    }
    assert found.counts == {"subscriptions": 20.0, "matches": 2.0}
    assert found.parameters == {"shards": 2, "events": 2}
    refused = joined_shards([one, replace(one, refusal="too large")])
    assert (refused.refusal, refused.measured) == ("too large", {})
