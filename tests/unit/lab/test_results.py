"""The lab's measuring tools: what they compute, not how fast anything is."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from tamis import TamisError
from tamis.lab.bench import matchers, measurements
from tamis.lab.bench.progress import ProgressStep
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.timing import Spread, TimingSample, fitting, repeated
from tamis.lab.instruments.yardstick import Yardstick
from tamis.lab.results import files as results
from tamis.lab.results.files import read, write
from tamis.lab.results.records import YARDSTICK, Figure, Goal, MatcherResult, Result
from tamis.match import registry
from tests.unit.lab.examples import (
    CHURN,
    FIGURE,
    MATCHER,
    MOMENT,
    OPERATOR,
    PEER,
    REFUSED,
    SCALE,
    SCHEDULER,
)


def test_a_wrong_matcher_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Yardstick, "match", lambda self, event: np.array([7]))
    with pytest.raises(TamisError, match="disagree"):
        list(matchers.measure(BenchSetting(matchers=("naive",)).quick()))


def test_repeated_stops_at_its_budget() -> None:
    assert repeated(lambda: None, repeats=4, budget=10).repeats == 4
    assert repeated(lambda: None, repeats=4, budget=0).repeats == 1


def test_repeated_prepares_each_time() -> None:
    calls: list[str] = []
    repeated(
        lambda: calls.append("run"), repeats=2, budget=10, prepare=lambda: calls.append("prepare")
    )
    assert calls == ["prepare", "run", "prepare", "run"]


def test_fitting_is_at_least_one_and_at_most_what_is_asked_for() -> None:
    assert fitting(lambda: None, most=5, budget=100) == 5
    assert fitting(lambda: None, most=5, budget=0) == 1


def test_a_spread_is_of_what_was_measured() -> None:
    spread = Spread.of(n * 1e-6 for n in range(1, 201))
    assert (spread.p50, spread.p99, spread.most) == pytest.approx((100, 198, 200))
    assert spread.count == 200
    assert Spread.of([5e-6]).p99 == pytest.approx(5)


def test_goals() -> None:
    assert Goal(30, at_most=True).met(30)
    assert not Goal(30, at_most=True).met(31)
    assert Goal(30, at_most=False).met(31)
    assert not Goal(30, at_most=False).met(29)


def test_a_rate_is_lowest_where_time_is_longest() -> None:
    figure = Figure.rate("x", "y", TimingSample(2.0, 1.0, 4.0, 3), 8, size=1)
    assert (figure.value, figure.low, figure.high) == (4.0, 2.0, 8.0)
    assert figure.parameters == {"size": 1}


# That on Spark is measured in tests/integration/spark, where there is a session.
@pytest.mark.parametrize("name", [name for name in measurements.MEASUREMENTS if name != "spark"])
def test_measurements_give_as_many_results_as_they_say(name: str) -> None:
    setting = BenchSetting(matchers=("scan",)).quick()
    measurement = measurements.MEASUREMENTS[name]
    given = list(measurement.run(setting))
    assert len(given) == measurement.steps(setting)
    assert {each.measurement for each in given} == {name}
    assert any(not isinstance(each, ProgressStep) for each in given)


def test_every_matcher_is_measured() -> None:
    found = list(matchers.measure(BenchSetting().quick()))
    assert [each.matcher for each in found[: 1 + len(registry.matchers())]] == [
        YARDSTICK,
        *registry.matchers(),
    ]
    measured = [each for each in found if isinstance(each, MatcherResult)]
    assert all(each.bytes_each for each in measured if each.matcher != YARDSTICK)


def test_measurements_are_chosen_by_name() -> None:
    assert [each.name for each in measurements.chosen(["match", "parse"])] == ["parse", "match"]
    usual = {each.name for each in measurements.chosen([])}
    named = {"scale", "churn", "schedule", "operators", "spark"}
    assert measurements.MEASUREMENTS.keys() - usual == named, "only on request"
    assert [each.name for each in measurements.chosen(["churn"])] == ["churn"]
    with pytest.raises(TamisError, match="did you mean 'parse'"):
        measurements.chosen(["parce"])


def test_result_files_say_where_they_come_from(tmp_path: Path) -> None:
    path = write(tmp_path / "a" / "b", [FIGURE, MATCHER], {"seed": 4}, MOMENT)
    assert path == tmp_path / "a" / "b" / "20260131T120000Z.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["parameters"] == {"seed": 4}
    assert {"commit", "dirty"} < document.keys()
    assert document["machine"].keys() == {"cpus", "cpu", "system", "python"}
    assert [each["kind"] for each in document["results"]] == ["figure", "contest"]
    assert document["results"][0]["goal"] == {"limit": 2.0, "at_most": True}


def test_result_files_are_read_back(tmp_path: Path) -> None:
    every: list[Result] = [FIGURE, MATCHER, REFUSED, PEER, SCALE, CHURN, SCHEDULER]
    every.append(OPERATOR)
    assert read(write(tmp_path, every, {}, MOMENT)) == every


def test_result_files_are_not_written_over(tmp_path: Path) -> None:
    paths = [write(tmp_path, [each], {}, MOMENT) for each in (FIGURE, MATCHER, REFUSED)]
    assert [path.stem for path in paths] == [
        "20260131T120000Z",
        "20260131T120000Z-2",
        "20260131T120000Z-3",
    ]
    assert [read(path) for path in paths] == [[FIGURE], [MATCHER], [REFUSED]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a result file"),
        ("[1]", "no list of results"),
        ('{"results": 5}', "no list of results"),
        ('{"results": [5]}', "not an object"),
        ('{"results": [{"kind": "photo"}]}', "no kind of result 'photo'"),
        ('{"results": [{"kind": ["figure"]}]}', "no kind of result"),
        ('{"results": [{"kind": "refusal", "why": "x"}]}', "missing"),
        (
            json.dumps({"results": [{"kind": "refusal", **asdict(REFUSED), "matcher": 5}]}),
            "matcher of a refusal is 5",
        ),
        (
            json.dumps({"results": [{"kind": "duel", **asdict(PEER), "alone": {"us": 1.0}}]}),
            "missing",
        ),
        (
            json.dumps({"results": [{"kind": "duel", **asdict(PEER), "alone": 5}]}),
            "alone of a duel is 5",
        ),
        ("[" * 100_000, "not a result file"),
    ],
)
def test_what_is_no_result_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "some.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TamisError, match=said) as refusal:
        read(path)
    assert "some.json" in str(refusal.value)


def _git(folder: Path, *arguments: str) -> str:
    name = ("-c", "user.name=n", "-c", "user.email=e@x")
    ran = subprocess.run(
        ["git", *name, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return ran.stdout.strip()


def test_the_commit_is_that_of_the_package(tmp_path: Path) -> None:
    package = tmp_path / "src" / "tamis"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (tmp_path / ".gitignore").write_text("src\n", encoding="utf-8")
    nothing = {"commit": None, "dirty": None}
    assert results._origin(package) == nothing, "no checkout"
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "other")
    assert results._origin(package) == nothing, "a checkout of something else"
    _git(tmp_path, "add", "-f", "src")
    _git(tmp_path, "commit", "-q", "-m", "package")
    head = _git(tmp_path, "rev-parse", "HEAD")
    assert results._origin(package) == {"commit": head, "dirty": False}
    (tmp_path / "new").touch()
    assert results._origin(package) == {"commit": head, "dirty": True}
