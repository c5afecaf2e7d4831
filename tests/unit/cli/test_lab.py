"""`tamis lab`: list, run, plot, report, compare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.files.lock import locked
from tamis.lab.experiments.registry import EXPERIMENTS
from tamis.lab.experiments.result_files import read_result
from tamis.match import registry
from tests.unit.cli.calls import Capture, refused, run
from tests.unit.lab.examples import Greedy, Refusing, entry
from tests.unit.lab.experiments.tiny_experiment import WHERE


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in reversed(list(EXPERIMENTS)):  # put back last to first: the order stays
        monkeypatch.delitem(EXPERIMENTS, name)
    monkeypatch.setitem(EXPERIMENTS, "TINY", f"{WHERE}:Tiny")
    monkeypatch.setitem(EXPERIMENTS, "NAMES", f"{WHERE}:Names")


def test_experiments_are_listed_with_their_claims(capsys: Capture) -> None:
    assert run("lab", "list") == 0
    out = capsys.readouterr().out.splitlines()
    assert "DEXIN" in out, "a heading for each paper"
    (line,) = (each for each in out if each.startswith("TINY"))
    assert " ".join(line.split()) == "TINY time by subscriptions figure 0 2"
    assert "--scale small: all" in out
    assert "--scale cluster: NAMES" in out
    assert max(map(len, out)) <= 80


@pytest.mark.slow
def test_all_run_then_plotted_then_reported(tmp_path: Path, capsys: Capture) -> None:
    at = ("--folder", str(tmp_path))
    assert run("lab", "run", "all", *at) == 0
    assert "✓ TINY" in capsys.readouterr().out
    assert run("lab", "run", "tiny", *at) == 0
    assert "whole" in capsys.readouterr().out, "nothing to measure"
    before = (tmp_path / "small" / "TINY.json").read_bytes()
    assert run("lab", "plot", *at) == 0
    assert run("lab", "report", *at, "--against", str(tmp_path)) == 0
    assert "2 confirmed" in capsys.readouterr().out
    assert (tmp_path / "small" / "TINY.json").read_bytes() == before, "plots measure nothing"
    names = {each.name for each in (tmp_path / "small").glob("[A-Za-z]*")}
    pictures = {f"{id}.{kind}" for id in EXPERIMENTS for kind in ("json", "png", "svg")}
    assert names == {*pictures, "report.html"}
    assert run("lab", "report", *at, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {each["id"] for each in found["claims"]} == {"TINY.best", "TINY.growth", "NAMES.best"}


def test_an_experiment_that_fails_does_not_stop_the_others(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXPERIMENTS, "TINY", f"{WHERE}:Wrong")
    assert run("lab", "run", "all", "--folder", str(tmp_path)) == 1
    out = capsys.readouterr().out
    assert "✗ TINY  failed: a wrong answer" in out
    assert "✓ NAMES" in out


def test_an_interrupted_fresh_run_keeps_nothing_of_the_run_before(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ("--folder", str(tmp_path))
    names = tmp_path / "small" / "NAMES.json"
    assert run("lab", "run", "all", *at) == 0
    assert len(read_result(names).observations) == 8
    monkeypatch.setitem(EXPERIMENTS, "TINY", f"{WHERE}:Stopped")
    assert run("lab", "run", "all", "--fresh", "--limit", "60", *at) == 130
    out = capsys.readouterr().out
    assert "stopped: 1 of 17 observations are stored" in out
    assert "--limit 60" in out[out.index("to continue:") :]
    assert "--fresh" not in out
    assert not read_result(names).observations, "the command that continues would keep them"
    monkeypatch.setitem(EXPERIMENTS, "TINY", f"{WHERE}:Tiny")
    assert run("lab", "run", "all", *at) == 0
    assert len(read_result(names).observations) == 8


def test_results_without_figures_do_not_stop_the_other_pictures(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXPERIMENTS, "REFUSED", f"{WHERE}:Refused")
    at = ("--folder", str(tmp_path))
    assert run("lab", "run", "refused", "tiny", *at) == 0
    assert run("lab", "plot", *at) == 0
    assert "REFUSED has no results to plot yet; not drawn" in capsys.readouterr().out
    assert (tmp_path / "small" / "TINY.png").exists()


def test_mistakes_are_named(tmp_path: Path, capsys: Capture) -> None:
    at = ("--folder", str(tmp_path))
    assert "unknown experiment 'TIMY'; did you mean" in refused(capsys, "lab", "run", "TIMY", *at)
    assert "name experiments, or all" in refused(capsys, "lab", "run", *at)
    assert "has no result files" in refused(capsys, "lab", "report", *at)
    assert "has no result files" in refused(capsys, "lab", "plot", *at)
    assert "tamis lab run writes it" in refused(capsys, "lab", "plot", "TINY", *at)
    assert "nothing" not in refused(capsys, "lab", "run", "TINY", "--scale", "large", *at)
    (tmp_path / "small").mkdir()
    with locked(tmp_path / "small" / ".lock"):
        assert "another tamis lab run" in refused(capsys, "lab", "run", "TINY", *at)
    assert run("lab", "run", "TINY", *at) == 0
    capsys.readouterr()
    again = refused(capsys, "lab", "run", "TINY", "--seed", "2", *at)
    assert "was measured with the seed 1" in again
    assert "--fresh" in again


SCHEMA = {"attributes": {"price": "decimal", "kind": "text"}}


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    """Options that name a schema, subscriptions and events."""
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    conditions = [f"price < {at} and kind = k{at % 3}" for at in range(1, 40)]
    conditions += ["price > 30 or kind = k1", 'kind starts with "k"']
    (tmp_path / "subscriptions.txt").write_text("\n".join(conditions), encoding="utf-8")
    events = [json.dumps({"price": at, "kind": f"k{at % 4}"}) for at in range(40)]
    (tmp_path / "events.jsonl").write_text("\n".join(events), encoding="utf-8")
    names = {"schema": "schema.json", "subscriptions": "subscriptions.txt"}
    names["events"] = "events.jsonl"
    options = [part for name, file in names.items() for part in (f"--{name}", tmp_path / file)]
    return [*map(str, options), "--seconds", "0.01", "--out", str(tmp_path / "out")]


@pytest.mark.slow
def test_matchers_are_compared_on_own_data(
    tmp_path: Path, data: list[str], capsys: Capture
) -> None:
    some = ("--matcher", "tamis", "--matcher", "scan", "--matcher", "tama")
    assert run("lab", "compare", *data, *some) == 0
    out, err = capsys.readouterr()
    assert "41 subscriptions, 42 clauses, 40 events" in out
    assert "tama *" in out, "it may find too much"
    assert "Take " in out
    assert "µs an event in batches" in out
    assert (tmp_path / "out" / "compare.png").stat().st_size > 10_000
    assert "compare.svg" in err
    document = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))
    (scan,) = (each for each in document["observations"] if each["curve"] == "scan")
    assert set(scan["measured"]) == {
        "match_ms", "batch_ms", "build_s", "memory_mb", "add_us", "remove_us",
    }  # fmt: skip
    assert scan["counts"]["matches"] > 1


def test_a_matcher_that_refuses_is_named_and_a_wrong_one_stops(
    data: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._TABLE, "refusing", entry(Refusing)["refusing"])
    assert run("lab", "compare", *data, "--matcher", "naive", "--matcher", "refusing") == 0
    out = capsys.readouterr().out
    assert "refusing refuses: not these" in out
    assert "Take naive." in out
    monkeypatch.setitem(registry._TABLE, "greedy", entry(Greedy)["greedy"])
    assert "disagree" in refused(capsys, "lab", "compare", *data, "--matcher", "greedy")
    assert "unknown matcher" in refused(capsys, "lab", "compare", *data, "--matcher", "best")
