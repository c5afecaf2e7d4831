"""Result files and their records."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from tamis import TamisError
from tamis.lab.instruments.timing import TimingSample
from tamis.lab.results import files as results
from tamis.lab.results.files import read, write
from tamis.lab.results.records import KINDS, Figure, Goal
from tests.unit.lab.examples import EVERY, FIGURE, MATCHER, MOMENT, PEER, REFUSED


def test_goals_and_rates() -> None:
    """A rate is lowest where time is longest."""
    for at_most, met, missed in ((True, 30, 31), (False, 31, 29)):
        goal = Goal(30, at_most=at_most)
        assert (goal.met(met), goal.met(missed)) == (True, False)
    figure = Figure.rate("x", "y", TimingSample(2.0, 1.0, 4.0, 3), 8, size=1)
    assert (figure.value, figure.low, figure.high) == (4.0, 2.0, 8.0)
    assert figure.parameters == {"size": 1}


def test_result_files_say_where_they_come_from(tmp_path: Path) -> None:
    path = write(tmp_path / "a" / "b", [FIGURE, MATCHER], {"seed": 4}, MOMENT)
    assert path == tmp_path / "a" / "b" / "20260131T120000Z.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["parameters"] == {"seed": 4}
    assert {"commit", "dirty"} < document.keys()
    assert document["machine"].keys() == {"cpus", "cpu", "system", "python"}
    assert [each["kind"] for each in document["results"]] == ["figure", "contest"]
    assert document["results"][0]["goal"] == {"limit": 2.0, "at_most": True}


def test_kinds_in_result_files_keep_their_names() -> None:
    """Result files of earlier commits have these names."""
    assert list(KINDS) == [
        "figure",
        "contest",
        "refusal",
        "duel",
        "residuals",
        "point",
        "churn",
        "operatorrun",
        "memory",
        "door",
    ]


def test_result_files_are_read_back(tmp_path: Path) -> None:
    assert read(write(tmp_path, EVERY, {}, MOMENT)) == EVERY


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
def test_other_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
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
