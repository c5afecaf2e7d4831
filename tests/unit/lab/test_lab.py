"""The lab's measuring tools: what they compute, not how fast anything is."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tamis import Engine, Schema, TamisError, workload
from tamis.lab import foundation, matching, results
from tamis.lab.plots import plot
from tamis.lab.results import Contest, Figure, Goal, Refusal, read, write
from tamis.lab.setting import Setting
from tamis.lab.timing import Sample, fitting, repeated
from tamis.lab.yardstick import Yardstick
from tamis.match import registry
from tamis.workload.tables import SUBSCRIPTIONS_SCHEMA


@pytest.mark.parametrize("name", ["dexin", "lesubscribe", "topss", "gryphon"])
def test_the_yardstick_agrees_with_the_engine(name: str) -> None:
    made = workload.make(name, 400, seed=3)
    events = made.events(60)
    engine = Engine(Schema.from_dict(made.schema))
    engine.subscribe_table(made.subscriptions)
    yardstick = Yardstick(made.subscriptions, events)
    answers = [yardstick.match(event).tolist() for event in yardstick.encode(events)]
    assert [sorted(ids) for ids in engine.match_batch(events)] == answers
    assert any(answers)


def test_the_yardstick_at_the_ends() -> None:
    """Null fails whatever is constrained, and only that; values between constants count."""
    rows = [
        [("a", ">", 1.0)],
        [("a", "<=", 1.0), ("b", "!=", 5.0)],
        [("b", "!=", 5.0)],
        [("a", "=", 2.0)],
        [("a", ">=", 1.0), ("a", "<", 2.0)],
        [],
    ]
    keys = ("attribute", "comparator", "value")
    predicates = [[dict(zip(keys, each, strict=True)) for each in row] for row in rows]
    table = pa.table({"id": range(6), "predicates": predicates}, schema=SUBSCRIPTIONS_SCHEMA)
    events = pa.table({"a": [None, 0.5, 1.0, 1.5, 2.0, 9.0], "b": [5.0, 5.0, 6.0, None, 5.0, 4.0]})
    yardstick = Yardstick(table, events)
    found = [yardstick.match(event).tolist() for event in yardstick.encode(events)]
    assert found == [[5], [5], [1, 2, 4, 5], [0, 4, 5], [0, 3, 5], [0, 2, 5]]


def test_the_yardstick_keeps_columns_narrow() -> None:
    made = workload.make("dexin", 200, seed=1, cardinality=100)
    yardstick = Yardstick(made.subscriptions, made.events(5))
    assert {column.low.dtype for column in yardstick._columns} == {np.dtype(np.uint8)}


def test_the_yardstick_refuses_what_it_cannot_do() -> None:
    predicates = [[{"attribute": "a", "comparator": "starts with", "text": "x"}]]
    table = pa.table({"id": [0], "predicates": predicates}, schema=SUBSCRIPTIONS_SCHEMA)
    with pytest.raises(TamisError, match="starts with"):
        Yardstick(table, pa.table({"a": ["x"]}))


def test_a_wrong_matcher_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Yardstick, "match", lambda self, event: np.array([7]))
    with pytest.raises(TamisError, match="disagree"):
        list(matching.contests(Setting(matchers=("naive",)).quick()))


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


def test_goals() -> None:
    assert Goal(30, at_most=True).met(30)
    assert not Goal(30, at_most=True).met(31)
    assert Goal(30, at_most=False).met(31)
    assert not Goal(30, at_most=False).met(29)


def test_a_rate_is_lowest_where_time_is_longest() -> None:
    figure = Figure.rate("x", "y", Sample(2.0, 1.0, 4.0, 3), 8, size=1)
    assert (figure.value, figure.low, figure.high) == (4.0, 2.0, 8.0)
    assert figure.parameters == {"size": 1}


@pytest.mark.parametrize("name", foundation.MEASUREMENTS)
def test_measurements_give_as_many_results_as_they_say(name: str) -> None:
    setting = Setting().quick()
    measurement = foundation.MEASUREMENTS[name]
    results = list(measurement.run(setting))
    assert len(results) == measurement.steps(setting)
    assert {result.measurement for result in results} == {name}


def test_contests_cover_all_matchers() -> None:
    found = list(matching.contests(Setting().quick()))
    assert [each.matcher for each in found[: 1 + len(registry.matchers())]] == [
        matching.YARDSTICK,
        *registry.matchers(),
    ]
    measured = [each for each in found if isinstance(each, Contest)]
    assert all(each.bytes_each for each in measured if each.matcher != matching.YARDSTICK)


def test_measurements_are_chosen_by_name() -> None:
    assert [each.name for each in foundation.chosen(["match", "parse"])] == ["parse", "match"]
    assert len(foundation.chosen([])) == len(foundation.MEASUREMENTS)
    with pytest.raises(TamisError, match="did you mean 'parse'"):
        foundation.chosen(["parce"])


FIGURE = Figure("x", "what", 1.5, "s", 1.0, 2.0, 3, Goal(2.0, at_most=True), {"rows": 5})
CONTEST = Contest("match", "w", "naive", 10, 1.0, 0.5, 100, 7, 3.0, 2.0, 4.0)
REFUSAL = Refusal("match", "w", "gough", "too large")
MOMENT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def test_result_files_say_where_they_come_from(tmp_path: Path) -> None:
    path = write(tmp_path / "a" / "b", [FIGURE, CONTEST], {"seed": 4}, MOMENT)
    assert path == tmp_path / "a" / "b" / "20260131T120000Z.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["parameters"] == {"seed": 4}
    assert {"commit", "dirty"} < document.keys()
    assert document["machine"].keys() == {"cpus", "cpu", "system", "python"}
    assert [each["kind"] for each in document["results"]] == ["figure", "contest"]
    assert document["results"][0]["goal"] == {"limit": 2.0, "at_most": True}


def test_result_files_are_read_back(tmp_path: Path) -> None:
    path = write(tmp_path, [FIGURE, CONTEST, REFUSAL], {}, MOMENT)
    assert read(path) == [FIGURE, CONTEST, REFUSAL]


def test_result_files_are_not_written_over(tmp_path: Path) -> None:
    paths = [write(tmp_path, [each], {}, MOMENT) for each in (FIGURE, CONTEST, REFUSAL)]
    assert [path.stem for path in paths] == [
        "20260131T120000Z",
        "20260131T120000Z-2",
        "20260131T120000Z-3",
    ]
    assert [read(path) for path in paths] == [[FIGURE], [CONTEST], [REFUSAL]]


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
            json.dumps({"results": [{"kind": "refusal", **asdict(REFUSAL), "matcher": 5}]}),
            "matcher of a refusal is 5",
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


def test_plots_are_of_result_files(tmp_path: Path) -> None:
    """Recognised by its name: a matcher that is just as fast is no yardstick."""
    even = replace(CONTEST, alone_times=1.0, batch_times=1.0)
    path = write(tmp_path, [even, REFUSAL], {}, MOMENT)
    without = plot(path, tmp_path / "without.svg").read_text(encoding="utf-8")
    assert "brute force" not in without
    path = write(tmp_path, [replace(even, matcher=matching.YARDSTICK), CONTEST], {}, MOMENT)
    assert "brute force" in plot(path, tmp_path / "with.svg").read_text(encoding="utf-8")
    assert plot(path) == path.with_suffix(".png")


def test_plots_need_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(TamisError, match=r"tamis\[lab\]"):
        plot(write(tmp_path, [CONTEST], {}, MOMENT))
