"""Plots and the report of experiments: they show what the result files hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tamis import TamisError
from tamis.lab.experiments.experiment import (
    OVER_LIMIT,
    Axes,
    Experiment,
    LabScale,
    Mode,
    Standing,
)
from tamis.lab.experiments.judgement import judge
from tamis.lab.experiments.registry import EXPERIMENTS
from tamis.lab.experiments.result_files import LabResult, result_path, write_result
from tamis.lab.experiments.runner import LabRun
from tamis.lab.plots.algorithms import looks
from tamis.lab.plots.experiments import ExperimentPicture
from tamis.lab.report.page import page
from tamis.lab.report.summary import LabSummary
from tamis.match import registry
from tests.unit.lab.experiments.tiny_experiment import WHERE, Names, Slower, Tiny

SMALL = LabScale.SMALL


def _result(folder: Path, experiment: Experiment) -> LabResult:
    run = LabRun(experiment, SMALL, 1, result_path(folder, SMALL, experiment.id), fresh=True)
    for _ in run.observe():
        pass
    return run.result


def _svg(experiment: Experiment, result: LabResult) -> str:
    return ExperimentPicture(experiment, result).svg().decode()


@pytest.mark.slow
def test_a_picture_has_labelled_axes_curves_and_refusals(tmp_path: Path) -> None:
    drawn = _svg(Tiny(), _result(tmp_path, Tiny()))
    said = re.findall(r"<!-- (.*) -->", drawn)  # matplotlib repeats each text in a comment
    for text in ("subscriptions", "ms an event", "deviation in ms", "nodes an event"):
        assert text in said
    assert {"dexin", "rein", "as in the paper", "tuned", "refused"} <= set(said)
    assert "TINY: time by subscriptions" in said
    assert drawn == _svg(Tiny(), _result(tmp_path, Tiny())), "the same results, the same file"


@pytest.mark.slow
def test_names_on_the_axis_give_bars_with_their_figures(tmp_path: Path) -> None:
    result = _result(tmp_path, Names())
    said = re.findall(r"<!-- (.*) -->", _svg(Names(), result))
    assert {"few: dexin", "many: rein", "time", "space"} <= set(said)
    assert said.count("2.3") == 8, "a figure for each bar"
    pictures = ExperimentPicture(Names(), result).save(tmp_path / "NAMES.json")
    assert [each.name for each in pictures] == ["NAMES.png", "NAMES.svg"]
    assert all(each.stat().st_size > 10_000 for each in pictures)


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "ticks"), [((0, 30, 40), ["0", "40"]), ((0, 5, 900), ["10"])])
def test_zero_has_a_place_on_a_logarithmic_axis(
    tmp_path: Path, nodes: tuple[float, ...], ticks: list[str]
) -> None:
    class Zeros(Tiny):
        plots = (Axes("subscriptions", "nodes", "nodes", log_y=True),)

    result = _result(tmp_path, Zeros())
    counted = dict(zip((10, 100, 1_000), nodes, strict=True))
    seen = [
        replace(each, counts={"nodes": counted[int(each.x)]}, refusal="")
        for each in result.observations
    ]
    said = re.findall(r"<!-- (.*) -->", _svg(Zeros(), replace(result, observations=tuple(seen))))
    assert {"0", *ticks} <= set(said)


def test_no_results_give_no_picture() -> None:
    with pytest.raises(TamisError, match="TINY has no results to plot yet"):
        ExperimentPicture(Tiny(), LabResult.begin(Tiny(), SMALL, 1))


def test_an_algorithm_looks_the_same_everywhere() -> None:
    every = [*registry.matchers(), "sequential", "sub-order", "adaptive", "new", "dexin-list"]
    found = looks(every)
    assert len(set(found.values())) == len(every), "no two look the same"
    assert looks(["rein", "dexin"])["dexin"] == found["dexin"]
    assert found["dexin-list"].colour == found["dexin"].colour
    assert found["dexin-list"].marker != found["dexin"].marker
    assert looks(["new"])["new"] == looks(["new", "newer"])["new"]


def test_verdicts_say_when_results_are_missing(tmp_path: Path) -> None:
    whole = _result(tmp_path, Tiny())
    assert [each.standing for each in judge(Tiny(), whole)] == ["confirmed", "not confirmed"]
    part = replace(whole, observations=whole.observations[:2], seconds=whole.seconds[:2])
    for each in judge(Tiny(), part):  # the first claim needs no more than these two
        assert each.standing == "not measured"
        assert "2 of 9 observations" in each.lacking
    odd = replace(part, steps=[{**part.steps[0], "curves": part.steps[0]["curves"][:2]}])
    best, growth = judge(Tiny(), odd)
    assert best.standing == "confirmed"
    assert "lack what the check needs" in growth.lacking
    assert [each.lacking for each in judge(Tiny(), None)] == ["there is no result file"] * 2


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in reversed(list(EXPERIMENTS)):  # put back last to first: the order stays
        monkeypatch.delitem(EXPERIMENTS, name)
    monkeypatch.setitem(EXPERIMENTS, "TINY", f"{WHERE}:Tiny")
    monkeypatch.setitem(EXPERIMENTS, "NAMES", f"{WHERE}:Names")
    return monkeypatch


@pytest.mark.slow
@pytest.mark.usefixtures("registered")
def test_the_page_has_every_claim_and_needs_nothing_else(tmp_path: Path) -> None:
    _result(tmp_path, Tiny())
    made = page(LabSummary.read(tmp_path, SMALL))
    for claim in (*Tiny.claims, *Names.claims):
        assert made.count(f'id="{claim.id}"') == 1, "in the table of its experiment"
        assert f'href="#{claim.id}"' in made, "in the table of all claims"
    assert "dexin is &lt; rein &amp; all" in made, "escaped"
    assert "It does not. Nothing grows here." in made, "the reason"
    assert "dexin 3.14" in made, "our figures"
    assert "20 %" in made, "those of the paper"
    assert "tamis lab run TINY --scale small" in made
    assert "leaves <code>everything</code> open" in made
    assert "too large for rein" in made
    assert "There are no results yet" in made, "NAMES was not run"
    assert 'src="data:image/svg+xml;base64,' in made
    assert "<script" not in made
    assert re.findall(r'(?:src|href)="(?!#|data:)', made) == [], "nothing is loaded"
    assert "prefers-color-scheme: dark" in made


@pytest.mark.slow
@pytest.mark.usefixtures("registered")
def test_the_page_says_what_was_left_out(tmp_path: Path) -> None:
    whole = _result(tmp_path, Tiny())
    reason = f"{OVER_LIMIT}60 s: it took 61 s at 10"
    left = [replace(e, refusal=reason) if e.refusal else e for e in whole.observations]
    found = replace(whole, observations=tuple(left))
    assert "over the limit" in re.findall(r"<!-- (.*) -->", _svg(Tiny(), found)), "in the legend"
    made = page(LabSummary(SMALL, (Tiny(),), {"TINY": found}))
    assert "Left out, over the limit of time: 1 measurements." in made
    assert reason in made


@pytest.mark.usefixtures("registered")
def test_a_change_of_verdict_is_shown(tmp_path: Path, registered: pytest.MonkeyPatch) -> None:
    _result(tmp_path / "old", Slower())
    _result(tmp_path / "new", Tiny())
    summary = LabSummary.read(tmp_path / "new", SMALL, tmp_path / "old")
    (change,) = summary.changes
    assert change.claim.id == "TINY.best"
    assert (change.before.standing, change.after.standing) == ("contrary", "confirmed")
    document = summary.as_json()
    assert document["counts"] == {"confirmed": 1, "not confirmed": 1, "not measured": 1}
    assert document["changes"][0]["before"]["standing"] == "contrary"
    assert json.loads(json.dumps(document)) == document
    same = LabSummary.read(tmp_path / "new", SMALL, tmp_path / "new")
    assert same.changes == []


def test_modes_and_standings_are_those_of_the_report() -> None:
    assert {str(each) for each in Standing} == {
        "confirmed",
        "not confirmed",
        "contrary",
        "cannot be tested here",
    }
    assert {str(each) for each in Mode} == {"paper", "tuned", "ours"}


@pytest.mark.usefixtures("registered")
def test_a_result_of_another_experiment_is_not_in_the_summary(tmp_path: Path) -> None:
    result = _result(tmp_path, Tiny())
    other = result_path(tmp_path, SMALL, "OTHER")
    write_result(other, replace(result, experiment="OTHER"))
    assert "OTHER.best" not in LabSummary.read(tmp_path, SMALL).verdicts
