"""The commands that measure and compare: bench, plot and soak."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.errors import MatcherError, TamisError
from tamis.lab.bench.measurements import MEASUREMENTS, Measurement
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.results.records import Figure
from tamis.match import registry
from tamis.workload import VARIANTS
from tests.unit.cli.calls import Capture, refused, run
from tests.unit.lab.examples import Greedy, Lossy, entry


@pytest.mark.slow
def test_bench_measures_and_stores_results(tmp_path: Path, capsys: Capture) -> None:
    assert run("bench", "--quick", "--out", str(tmp_path / "new")) == 0
    out = capsys.readouterr().out
    assert "× numpy" in out
    (path,) = (tmp_path / "new").glob("*.json")
    assert path.with_suffix(".png").stat().st_size > 10_000
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["parameters"]["seed"] == 1
    assert document["machine"]["cpus"]
    assert document["versions"]["numpy"]
    names = {result["measurement"] for result in document["results"]}
    assert {"parse", "load", "arrow", "import", "match", "peers"} <= names
    assert not {"scale", "churn"} & names, "only on request"
    duels = [each for each in document["results"] if each["kind"] == "duel"]
    assert {each["matcher"] for each in duels} == {"tamis"}
    contests = [each for each in document["results"] if each["kind"] == "contest"]
    assert {each["matcher"] for each in contests} == {"numpy", *registry.matchers()}
    assert all(each["alone_ms"] > 0 for each in contests)
    assert all(each["bytes_each"] for each in contests if each["matcher"] != "numpy")


def test_bench_measures_only_named_matchers(tmp_path: Path, capsys: Capture) -> None:
    arguments = ("bench", "match", "--quick", "--matcher", "scan", "--out", str(tmp_path))
    assert run(*arguments) == 0
    assert "naive" not in capsys.readouterr().out


def test_bench_stores_what_it_has_if_a_later_row_fails(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(setting: BenchSetting) -> Iterator[Figure]:
        yield Figure("parse", "conditions", 5.0, "/s", 5.0, 5.0, 1)
        raise TamisError("the server has failed")

    monkeypatch.setitem(MEASUREMENTS, "parse", Measurement("parse", "conditions", measure))
    assert run("bench", "parse", "--out", str(tmp_path)) == 2
    assert "the server has failed" in capsys.readouterr().err
    (path,) = tmp_path.glob("*.json")
    (stored,) = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert stored["value"] == 5.0


@pytest.mark.slow
def test_bench_of_peers_scale_and_churn(tmp_path: Path, capsys: Capture) -> None:
    names = ("peers", "scale", "churn")
    size = ("--quick", "--subscriptions", "200", "--rows", "sparse,topss-w4")
    arguments = ("bench", *names, *size, "--matcher", "naive", "--out", str(tmp_path))
    assert run(*arguments) == 0
    out = capsys.readouterr().out
    for part in ("TOPSS W4", "wide and sparse", "bits", "remove one", "0 disagreements with scan"):
        assert part in out
    assert "DEXIN, 1 % matching" not in out
    (path,) = tmp_path.glob("*.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["parameters"]["rows"] == ["sparse", "topss-w4"]
    assert {each["kind"] for each in document["results"]} == {"duel", "point", "churn"}
    assert max(each["subscriptions"] for each in document["results"]) == 200
    picture = path.with_suffix(".png")
    picture.unlink()
    assert run("plot", str(path)) == 0
    assert picture.stat().st_size > 10_000


def test_bench_shows_what_residuals_cost(tmp_path: Path, capsys: Capture) -> None:
    size = ("--rows", "residuals", "--matcher", "naive", "--quick", "--subscriptions", "200")
    assert run("bench", "peers", *size, "--out", str(tmp_path)) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    (first,) = (at for at, line in enumerate(lines) if line[:1] == ["DEXIN,"])
    assert lines[first][:8] == ["DEXIN,", "a", "tenth", "with", "residuals", "naive", "20", "280"]
    assert lines[first + 1][:2] == ["0", "200"]
    assert lines[first + 2][0] == "×"
    assert lines[first + 3][:2] == ["of", "it"]
    (path,) = tmp_path.glob("*.json")
    (result,) = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert (result["kind"], result["row"], result["residuals"]) == ("residuals", "residuals", 20)


def test_bench_shows_which_goals_are_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from tamis.lab.bench.peers import ROWS, Row

    monkeypatch.setitem(ROWS, "dexin", Row("dexin", 200, batch=1e-9, alone=1e9))
    arguments = ("bench", "peers", "--rows", "dexin", "--matcher", "naive", "--quick")
    assert run(*arguments, "--out", str(tmp_path)) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "≥" in line]
    assert [(line.split()[-3:], "alone" in line) for line in lines] == [
        (["≥", "1e+09", "missed"], True),
        (["≥", "1e-09", "met"], False),
    ]


def measure(*_: object) -> None:
    pytest.fail("measured")


def test_bench_refuses_a_folder_before_it_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("tamis.cli.bench._run", measure)
    (tmp_path / "file").touch()
    err = refused(capsys, "bench", "--quick", "--out", str(tmp_path / "file" / "results"))
    assert "cannot be written to" in err
    assert len(err.splitlines()) == 1


@pytest.mark.slow
def test_plot_draws_again_without_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert run("bench", "match", "--quick", "--matcher", "naive", "--out", str(tmp_path)) == 0
    (path,) = tmp_path.glob("*.json")
    path.with_suffix(".png").unlink()
    monkeypatch.setattr("tamis.lab.bench.matchers.measure", measure)
    other = tmp_path / "new" / "other.svg"
    assert run("plot", str(path)) == 0
    assert run("plot", str(path), "--out", str(other)) == 0
    assert path.with_suffix(".png").stat().st_size > 10_000
    assert "</svg>" in other.read_text(encoding="utf-8")
    capsys.readouterr()
    assert "not supported" in refused(capsys, "plot", str(path), "--out", str(tmp_path / "a.b"))


def test_bench_without_matchers_is_not_plotted(tmp_path: Path, capsys: Capture) -> None:
    assert run("bench", "parse", "--quick", "--out", str(tmp_path)) == 0
    capsys.readouterr()
    (path,) = tmp_path.iterdir()
    assert "nothing to plot" in refused(capsys, "plot", str(path))


@pytest.mark.parametrize(
    ("arguments", "trials"),
    [
        (("naive",), ["naive with scan"]),
        (("scan",), ["scan with naive"]),
        (("scan", "naive"), ["scan with naive", "naive with scan"]),
        (("naive", "--reference", "naive"), ["naive with scan"]),
    ],
)
def test_soak_compares_nothing_with_itself(
    arguments: tuple[str, ...], trials: list[str], capsys: Capture
) -> None:
    assert run("soak", *arguments, "--operations", "60") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [f"{line.split(':')[0]} {' '.join(line.split()[-2:])}" for line in lines] == trials


def test_soak_of_all_leaves_out_the_reference() -> None:
    from tamis.cli.soak import _trials

    trials = _trials((), "scan")
    assert {trial.name for trial in trials} == set(registry.matchers()) - {"scan"}
    assert {trial.against for trial in trials} == {"scan"}


def test_soak_reports_disagreements(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from tamis.testing.soak import SoakResult

    monkeypatch.setattr("tamis.cli.soak.run_soak", lambda *_: SoakResult(60, missing=2, extra=1))
    assert run("soak", "naive") == 1
    said = "tamis: naive disagrees with scan: 2 matches missing, 1 too many (seed 0)\n"
    assert capsys.readouterr().err == said


@pytest.mark.slow
def test_soak_on_large_workloads(capsys: Capture) -> None:
    size = ("--pairs", "1e4", "--subscriptions", "200", "--seed", "3")
    assert run("soak", "naive", *size) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"naive on {name}" for name in VARIANTS]
    assert all("10,000 pairs" in line for line in lines)
    assert all(line.endswith(" 0 disagreements with scan") for line in lines)
    assert run("soak", "naive", "scan", *size, "--workload", "gryphon") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()[-2:]) for line in lines] == ["with scan", "with naive"]


def test_soak_goes_through_all_workloads_and_reports_disagreements(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(registry._TABLE, "lossy", entry(Lossy)["lossy"])
    wanted = ("--workload", "topss-w4", "--workload", "gryphon", "--workload", "auctions")
    size = ("--pairs", "10000", "--subscriptions", "200")
    assert run("soak", "lossy", "naive", *wanted, *size) == 1
    out, err = capsys.readouterr()
    wrong = [line for line in out.splitlines() if " 0 disagreements" not in line]
    assert len(out.splitlines()) == 6
    assert wrong
    assert all(line.startswith("lossy on ") for line in wrong)
    assert err == f"tamis: {len(wrong)} of 6 comparisons found disagreements (seed 0)\n"


def test_soak_lets_an_approximate_matcher_find_too_much(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for kind in (Greedy, Lossy):
        ((name, made),) = entry(kind).items()
        monkeypatch.setitem(registry._TABLE, name, made._replace(exact=False))
    size = ("--workload", "topss-w4", "--pairs", "10000", "--subscriptions", "200")
    assert run("soak", "greedy", *size) == 0
    assert run("soak", "lossy", *size) == 1
    capsys.readouterr()


def test_soak_skips_trials_that_cannot_run(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def create(name: str, **_: object) -> None:
        raise MatcherError("there is no database")

    monkeypatch.setattr("tamis.match.registry.create", create)
    assert run("soak", "naive") == 2
    out, err = capsys.readouterr()
    assert out == "naive: not soaked, there is no database\n"
    assert err == "tamis: nothing was soaked\n"
    assert run("soak", "naive", "--workload", "dexin", "--subscriptions", "100") == 2
    out, err = capsys.readouterr()
    assert out == "naive on dexin: not compared, there is no database\n"
    assert err == "tamis: nothing was soaked\n"
