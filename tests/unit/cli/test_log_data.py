"""`tamis log create`, `publish`, `subscribe`, `cancel`, `export`, `tail` and `stats`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis.store import Log
from tests.unit.cli.calls import Capture, refused, run

SCHEMA = """
attributes: {price: decimal, title: text}
event_types: {offer: {price: mandatory, title: optional}}
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    assert run("log", "create", "log", "--schema", "schema.yaml") == 0
    return tmp_path


def _said(capsys: Capture, *arguments: str) -> str:
    capsys.readouterr()
    assert run("log", *arguments) == 0
    return capsys.readouterr().out


def _lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_create(world: Path, capsys: Capture) -> None:
    assert Log.open("log").schema_at().attributes.keys() >= {"price", "title"}
    assert "there is a log already" in refused(
        capsys, "log", "create", "log", "--schema", "schema.yaml"
    )
    assert run("log", "create", "numbers", "--schema", "schema.yaml", "--ids", "int64") == 0
    assert Log.open("numbers").ids == "int64"


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_publish_and_tail(world: Path, suffix: str, capsys: Capture) -> None:
    events: list[dict[str, Any]] = [
        {"price": 1.0, "title": "a"},
        {"price": 2.0},
        {"price": 3.0, "title": "c"},
    ]
    path = world / f"lots.{suffix}"
    if suffix == "parquet":
        parquet.write_table(pa.Table.from_pylist(events), path)
    elif suffix == "csv":
        path.write_text("price,title\n1,a\n2,\n3.0,c\n", encoding="utf-8")
    else:
        path.write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    said = _said(capsys, "publish", "log", str(path))
    assert said == "3 events were published, numbers 0 to 2.\n"
    assert _lines(_said(capsys, "tail", "log")) == [
        {"sequence": number, "event": event} for number, event in enumerate(events)
    ]
    assert _lines(_said(capsys, "tail", "log", "--plain", "-n", "2")) == events[1:]
    assert _lines(_said(capsys, "tail", "log", "--plain", "--from", "1", "-n", "1")) == events[1:2]
    assert "the log ends at 3" in refused(capsys, "log", "tail", "log", "--from", "9")


def test_bad_events_are_not_published(world: Path, capsys: Capture) -> None:
    path = world / "lots.csv"
    path.write_text("price\n1\nx\n2\n", encoding="utf-8")
    assert run("log", "publish", "log", str(path)) == 2
    assert "lots.csv, line 3: 'price': 'x' is not a number" in capsys.readouterr().err
    assert Log.open("log").end == 0
    assert run("log", "publish", "log", str(path), "--bad", "report") == 1
    out, err = capsys.readouterr()
    assert out == "2 events were published, numbers 0 to 1.\n"
    assert "line 3" in err
    assert run("log", "publish", "log", str(path), "--bad", "skip") == 0
    assert Log.open("log").end == 4


def test_subscribe_cancel_and_export(world: Path, capsys: Capture) -> None:
    said = _said(capsys, "subscribe", "log", "price < 5", "--id", "ann")
    assert said == "1 subscription: number 0.\n"
    (world / "more.csv").write_text('ann,price < 6\nbob,"title in (a, b)"\n', encoding="utf-8")
    said = _said(capsys, "subscribe", "log", "--file", "more.csv", "--until", "2100-01-01")
    assert said == "2 subscriptions, of which 1 replaces a live one: numbers 1 to 2.\n"
    assert "write --file more.csv" in refused(capsys, "log", "subscribe", "log", "more.csv")
    rows = _lines(_said(capsys, "export", "log"))
    lease = "2100-01-01T00:00:00Z"
    assert rows == [
        {"id": "ann", "condition": "price < 6", "until": lease},
        {"id": "bob", "condition": "title in (a, b)", "until": lease},
    ]
    assert _said(capsys, "cancel", "log", "ann") == "1 subscription ended; 1 is live.\n"
    assert "did you mean 'bob'" in refused(capsys, "log", "cancel", "log", "bob", "bbo")
    assert [row["id"] for row in _lines(_said(capsys, "export", "log"))] == ["bob"]
    assert [row["id"] for row in _lines(_said(capsys, "export", "log", "--at", "3"))] == [
        "ann",
        "bob",
    ]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_what_is_exported_can_be_imported(world: Path, suffix: str, capsys: Capture) -> None:
    out = f"all.{suffix}"
    run("log", "subscribe", "log", 'title = "a, \\"b"', "--id", "ann", "--until", "2100-01-01")
    run("log", "subscribe", "log", "price < 5", "--id", "7")
    assert "2 subscriptions in" in _said(capsys, "export", "log", "--out", out)
    run("log", "create", "copy", "--schema", "schema.yaml")
    assert "2 subscriptions" in _said(capsys, "subscribe", "copy", "--file", out, "--strict")
    assert _said(capsys, "export", "copy") == _said(capsys, "export", "log")
    (world / "lots.jsonl").write_text('{"price": 1}\n', encoding="utf-8")
    given = ("--schema", "schema.yaml", "--subscriptions", out, "--events", "lots.jsonl")
    assert run("match", *given) == 0
    assert _lines(capsys.readouterr().out) == [{"event": 0, "subscription": "7"}]


def test_wrong_subscriptions(world: Path, capsys: Capture) -> None:
    path = world / "more.csv"
    path.write_text("a,price < 1,000\nb,prise < 5\nc,price < 5\n", encoding="utf-8")
    asked = ("log", "subscribe", "log", "--file", str(path))
    assert "--strict takes all or nothing" in refused(capsys, *asked, "--strict")
    assert Log.open("log").end == 0
    assert run(*asked) == 0
    out, err = capsys.readouterr()
    assert out == "1 subscription: number 0.\n"
    assert f"{path}, line 1: has 3 fields" in err
    assert f"{path}, line 2: unknown attribute 'prise'" in err
    path.write_text("id,condition,until\na,price < 5,soon\n", encoding="utf-8")
    assert "line 2: 'until': 'soon' is not an ISO 8601" in refused(capsys, *asked)


def test_ids_that_are_numbers(world: Path, capsys: Capture) -> None:
    run("log", "create", "numbers", "--schema", "schema.yaml", "--ids", "int64")
    said = _said(capsys, "subscribe", "numbers", "price < 5")
    assert said == "1 subscription: number 0.\n"
    (world / "a.txt").write_text("price < 6\nprice < 7\n", encoding="utf-8")
    _said(capsys, "subscribe", "numbers", "--file", "a.txt")
    rows = _lines(_said(capsys, "export", "numbers"))
    assert [row["id"] for row in rows] == [0, 1, 2], "an id is the number of its row in the log"
    (world / "a.csv").write_text("a,price < 6\n", encoding="utf-8")
    asked = ("log", "subscribe", "numbers")
    assert "has ids in text" in refused(capsys, *asked, "--file", "a.csv")
    assert "64-bit numbers, got 'x'" in refused(capsys, *asked, "price < 5", "--id", "x")
    assert "64-bit numbers, got 'x'" in refused(capsys, "log", "cancel", "numbers", "x")
    assert "has no ids" in refused(capsys, "log", "subscribe", "log", "--file", "a.txt")
    assert _said(capsys, "cancel", "numbers", "2", "1") == "2 subscriptions ended; 1 is live.\n"


def test_a_log_without_a_schema(world: Path, capsys: Capture) -> None:
    assert run("log", "create", "open") == 0
    run("log", "subscribe", "open", "a.b > 4", "--id", "ann")
    (world / "any.jsonl").write_text('{"a": {"b": 5}}\n{"c": [null]}\n', encoding="utf-8")
    (world / "any.csv").write_text("a.b,c\n5,x\n", encoding="utf-8")
    assert "2 events were published, numbers 1 to 2" in _said(
        capsys, "publish", "open", "any.jsonl"
    )
    assert "1 event was published" in _said(capsys, "publish", "open", "any.csv")
    assert _lines(_said(capsys, "tail", "open", "--plain")) == [
        {"a": {"b": 5}},
        {"c": [None]},
        {"a.b": 5, "c": "x"},
    ]


def test_stats(world: Path, capsys: Capture) -> None:
    empty = json.loads(_said(capsys, "stats", "log", "--json"))
    assert (empty["begin"], empty["end"], empty["events"]) == (0, 0, 0)
    run("log", "subscribe", "log", "price < 5", "--id", "ann", "--until", "2100-01-01")
    (world / "lots.csv").write_text("price\n1\n2\n", encoding="utf-8")
    run("log", "publish", "log", "lots.csv")
    found = json.loads(_said(capsys, "stats", "log", "--json"))
    assert (found["end"], found["events"], found["changes"]) == (3, 2, 1)
    assert (found["subscriptions"], found["leases"], found["ids"]) == (1, 1, "text")
    assert found["bytes"] > 0
    assert found["first_event"] == found["last_event"]
    said = _said(capsys, "stats", "log")
    assert "live subscriptions" not in said
    assert "subscriptions" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "log2", "--schema", "nowhere.yaml"), "nowhere.yaml"),
        (("create", "schema.yaml", "--schema", "schema.yaml"), "a log cannot be created here"),
        (("create", "log2", "--schema", "schema.yaml", "--ids", "x"), "'x' is not one of"),
        (("publish", "nowhere", "a.csv"), "nowhere"),
        (("publish", "log", "nowhere.csv"), "there is no such file"),
        (("publish", "log", "schema.yaml"), "the format is unknown"),
        (("subscribe", "log"), "give either a CONDITION or a --file"),
        (("subscribe", "log", "price < 5"), "give the subscription an --id"),
        (("subscribe", "log", "prise < 5", "--id", "a"), "did you mean 'price'"),
        (("subscribe", "log", "--file", "nowhere.csv"), "there is no such file"),
        (("subscribe", "log", "--file", "a.csv", "--id", "a"), "--id belongs to one"),
        (("subscribe", "log", "price < 5", "--id", "a", "--until", "soon"), "ISO 8601"),
        (("subscribe", "log", "price < 5", "--id", ""), "empty"),
        (("cancel", "log"), "missing argument"),
        (("cancel", "log", "a"), "no live subscription has the id 'a'"),
        (("export", "log", "--out", "a.xlsx"), "the format is unknown"),
        (("export", "log", "--at", "99"), "the log ends at 0"),
        (("tail", "schema.yaml"), "schema.yaml"),
        (("tail", "log", "--from", "x"), "'x' is not a whole number"),
        (("stats", "nowhere"), "nowhere"),
    ],
)
def test_mistakes(world: Path, arguments: tuple[str, ...], said: str, capsys: Capture) -> None:
    capsys.readouterr()
    assert said in refused(capsys, "log", *arguments)
    assert Log.open("log").end == 0


def test_follow(world: Path) -> None:
    command = [sys.executable, "-m", "tamis.cli.main", "log", "tail", "log", "-f", "--plain"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout is not None
    log = Log.open("log")
    for price in range(3):
        log.publish({"price": [float(price)]})
        assert json.loads(started.stdout.readline()) == {"price": float(price)}
    os.kill(started.pid, signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert b"Traceback" not in err


def test_a_trimmed_log(world: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.store.segment_files.MOST", 2)
    log = Log.open("log")
    run("log", "subscribe", "log", "price < 5", "--id", "ann")
    for price in range(8):
        log.publish({"price": [float(price)]})
    begin = log.trim(6)
    assert begin > 0
    assert len(_lines(_said(capsys, "tail", "log", "-n", "100"))) == log.end - begin
    found = json.loads(_said(capsys, "stats", "log", "--json"))
    assert (found["begin"], found["subscriptions"]) == (begin, 1)
    assert [row["id"] for row in _lines(_said(capsys, "export", "log"))] == ["ann"]


def test_a_log_keeps_the_language_of_a_condition(world: Path, capsys: Capture) -> None:
    pattern, language = '{"price": [5]}', ("--language", "eventbridge")
    _said(capsys, "subscribe", "log", pattern, "--id", "theirs", *language)
    _said(capsys, "subscribe", "log", "title IN ('oak')", "--id", "cloud", "--language", "cesql")
    _said(capsys, "subscribe", "log", "price = 5", "--id", "ours")
    assert "not JSON" in refused(capsys, "log", "subscribe", "log", "price", "--id", "x", *language)
    _said(capsys, "export", "log", "--out", "out.jsonl")
    assert run("log", "create", "copy", "--schema", "schema.yaml") == 0
    _said(capsys, "subscribe", "copy", "--file", "out.jsonl", "--strict")
    changes = Log.open(world / "copy").changes(0, details=True)
    found = dict(zip(changes["id"].to_pylist(), changes["language"].to_pylist(), strict=True))
    assert found == {"theirs": "eventbridge", "cloud": "cesql", "ours": None}
