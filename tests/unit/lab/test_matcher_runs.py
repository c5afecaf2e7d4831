"""Runs of matchers for experiments: checked before they are measured."""

from __future__ import annotations

import pytest

from tamis import TamisError, workload
from tamis.lab.experiments.experiment import Curve, LabStep, Mode
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort
from tamis.match import registry
from tests.unit.lab.examples import Greedy, Lossy, Refusing, entry

QUICK = RunEffort(events=12, seconds=0.01, changes=5, counted=10, compared=5)
STEP = LabStep(50, (), {"n": 50}, "panel")
ALL = {"match_ms", "batch_ms", "build_s", "memory_mb", "add_us", "remove_us"}


@pytest.fixture
def runs() -> MatcherRuns:
    return MatcherRuns.of(workload.make("lesubscribe", 50, seed=3), QUICK)


def test_an_observation_has_raw_times_and_counts(runs: MatcherRuns) -> None:
    found = runs.observe(STEP, Curve("naive", Mode.OURS))
    assert (found.x, found.panel, found.curve, found.mode) == (50, "panel", "naive", Mode.OURS)
    assert set(found.measured) == ALL
    assert len(found.measured["match_ms"]) == found.parameters["events"] == 12
    assert found.parameters["n"] == 50
    assert all(each > 0 for values in found.measured.values() for each in values)
    # naive touches every clause; the matches are those of the reference.
    assert found.counts["subscriptions"] == 50
    reference = registry.create("scan")
    reference.add(runs.slots, runs.terms)
    assert found.counts["matches"] == reference.match(runs.events[:10]).total / 10
    assert "seconds" not in found.counts
    assert not found.refusal


def test_parts_can_be_left_out() -> None:
    effort = RunEffort(events=3, seconds=0.01, changes=0, batches=0)
    runs = MatcherRuns.of(workload.make("auctions", 20, seed=3), effort)  # conditions as text
    assert set(runs.observe(STEP, Curve("naive")).measured) == ALL - {
        "batch_ms", "add_us", "remove_us",
    }  # fmt: skip


def test_wrong_answers_are_not_timed(runs: MatcherRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Greedy, Lossy, Refusing):
        ((name, made),) = entry(kind).items()
        monkeypatch.setitem(registry._TABLE, name, made)
    with pytest.raises(TamisError, match=r"'lossy' and scan disagree .* 1 matches are missing"):
        runs.observe(STEP, Curve("lossy"))
    with pytest.raises(TamisError, match="0 matches are missing, 1 are wrong"):
        runs.observe(STEP, Curve("other name"), "greedy")
    inexact = entry(Greedy)["greedy"]._replace(exact=False)
    monkeypatch.setitem(registry._TABLE, "greedy", inexact)
    assert runs.observe(STEP, Curve("greedy")).measured, "it may find too much"
    refusal = runs.observe(STEP, Curve("refusing", options={}))
    assert refusal.refusal == "not these"
    assert not refusal.measured
    assert "no option" in runs.observe(STEP, Curve("naive", options={"slots": 3})).refusal


def test_the_best_of_a_grid_states_its_options(
    runs: MatcherRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = [{"final": "all"}, {"final": "touched"}, {"final": "wrong"}]
    found = runs.observe_best(
        STEP, Curve("fair-predicate", Mode.TUNED), grid, quantity="subscriptions"
    )
    assert found.options in grid[:2]
    assert not found.refusal
    none = runs.observe_best(STEP, Curve("fair-predicate"), grid[2:])
    assert "wrong" in none.refusal
