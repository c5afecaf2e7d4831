"""The view of a stream: known numbers, and dashes for unknown ones."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from tamis.cli.reports.stream import StreamFacts, StreamView, line, rows
from tamis.cli.spark.run import follow
from tamis.cli.terminal.interrupt import InterruptGuard
from tamis.errors import SparkError
from tamis.operators import CallCounts, Report
from tamis.spark.stream.progress import StreamStatus
from tamis.spark.stream.stream import Stream, StreamJob
from tamis.store import Log
from tests.unit.cli.calls import Capture, refused

SCHEMA = {"attributes": {"n": "integer"}, "event_types": {"event": {"n": "mandatory"}}}
NOTHING = StreamStatus(0, 0, -1, 0, 0, 0, 0, None, None, None, None)
SOME = StreamStatus(9, 900, 100, 1800, 4000, 2, 7, 81.4, 400.0, 0.31, 0.62)
FACTS = StreamFacts(None, 0, 3, 1000, None, None)


@pytest.fixture
def job(tmp_path: Path) -> StreamJob:
    """A job over an empty log."""
    Log.create(tmp_path / "log", SCHEMA)
    return StreamJob(tmp_path / "log", tmp_path / "index", tmp_path, tmp_path / "checkpoint")


def _shown(facts: StreamFacts, *last: str) -> dict[str, tuple[str, str]]:
    return {name: (value, more) for name, value, more in rows(SOME, facts, *last)}


def test_before_anything_has_happened() -> None:
    assert line(0, NOTHING, FACTS) == (
        "0 s: 0 events (– a second), 0 notifications (– a second), latency –, p95 –, backlog 0, "
        "version none, 0 dead"
    )


def test_the_rows() -> None:
    assert _shown(FACTS, "no price") == {
        "events": ("1,800", "81 a second"),
        "notifications": ("4,000", "400 a second"),
        "latency": ("0.31 s", "p95 0.62 s, append to manifest"),
        "backlog": ("7", "events"),
        "version in use": ("100", "3 changes since the latest; the next at 1,000"),
        "dead letters": ("2", "the last: no price"),
    }
    busy = StreamFacts(1500, 3, 3, 1000, 7.2, None)
    shown = _shown(busy)
    assert "operator faults" not in shown, "none was asked"
    assert shown["subscriptions"] == ("1,500", "live; 3 leases expired")
    assert shown["version in use"] == ("100", "compiling the next, 7 s so far")


def test_faults_of_operators() -> None:
    well = Report((CallCounts("locIn", events=1200, calls=40),))
    facts = FACTS._replace(operators=well)
    assert _shown(facts)["operator faults"] == ("0", "of 1,200 events")
    assert "operator faults" not in line(0, SOME, facts)
    bad = Report(
        (*well.counts, CallCounts("face", events=9, timeouts=2, set_aside=5, last="no answer"))
    )
    facts = FACTS._replace(operators=bad)
    assert _shown(facts)["operator faults"] == (
        "7",
        "of 1,209 events; face: 2 timeouts, 5 set aside, the last: no answer",
    )
    assert line(0, SOME, facts).endswith("2 dead, 7 operator faults")


class _Stream(Stream):
    """A stream with a fixed status."""

    def look(self) -> StreamStatus:
        return SOME

    def newest(self, kind: str = "notifications", rows: int = 100) -> list[dict[str, Any]]:
        return [{"reason": "no price"}] if kind == "dead" else [{"n": n} for n in range(50)]


@pytest.mark.parametrize("height", [24, 50])
def test_the_picture_fits_the_terminal(job: StreamJob, height: int) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=height, color_system=None)
    with _Stream(job) as stream:
        shown = StreamView(
            console,
            stream,
            lambda rows: [Text(f"lot {row['n']} " + "word " * 18) for row in rows],
            "title",
            lambda: "the disk is full",
        )
        with shown.shown():
            shown.update()
    text = file.getvalue()
    for part in ("title", "Ctrl-C", "1,800", "no price", "the disk is full", "lot 0"):
        assert part in text
    last = text.rpartition("title")[2]  # it is drawn again at the end
    assert len(last.splitlines()) + 1 <= height
    assert "lot 49" not in text


def test_plain_lines_without_a_terminal(job: StreamJob) -> None:
    file = io.StringIO()
    with _Stream(job) as stream:
        shown = StreamView(Console(file=file), stream, lambda rows: [], "title")
        with shown.shown():
            shown.update()
            shown.update()  # at once: not shown again
    assert file.getvalue() == f"{line(0, SOME, FACTS)}\n"


def test_trouble_is_shown_once(job: StreamJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.cli.reports.stream._LINE_SECONDS", -1.0)
    file = io.StringIO()
    trouble = "1 condition was refused; 7: unknown attribute 'prise'"
    with _Stream(job) as stream:
        console = Console(file=file, width=400)
        shown = StreamView(console, stream, lambda rows: [], "title", lambda: trouble)
        for _ in range(3):
            shown.update()
        told = StreamView(console, stream, lambda rows: [], "title", lambda: trouble, told=trouble)
        told.update()
    assert len(file.getvalue().splitlines()) == 4
    assert file.getvalue().count(trouble) == 1


def test_ignored_names_are_shown() -> None:
    facts = FACTS._replace(operators=Report((), ignored={"prise": 1500, "colour": 2}))
    assert _shown(facts)["ignored values"] == ("1,502", "prise (1500), colour (2)")


class _Gone(_Stream):
    """A stream whose Java was stopped as well, or has died by itself."""

    @property
    def running(self) -> bool:
        raise SparkError("the stream stopped: Connection refused")

    def check(self) -> None:
        raise AssertionError("nobody is there to be asked")


def test_a_stream_may_be_gone_after_an_interrupt(job: StreamJob) -> None:
    with InterruptGuard() as interrupt, _Gone(job) as stream:
        shown = StreamView(Console(file=io.StringIO()), stream, lambda rows: [], "title")
        with pytest.raises(SparkError, match="Connection refused"):
            follow(shown, stream, interrupt)
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt.wait(60)
        follow(shown, stream, interrupt)


def test_mistakes_are_refused_before_java_is_started(tmp_path: Path, capsys: Capture) -> None:
    log, index, out = (str(tmp_path / name) for name in ("log", "index", "out"))
    where = ("--log", log, "--index", index, "--out", out)
    assert "is not a log" in refused(capsys, "spark", "run", *where)
    assert "available-now" in refused(capsys, "spark", "run", *where, "--trigger", "sometimes")
    assert "--out" in refused(capsys, "spark", "run", "--log", log, "--index", index)
    refused(capsys, "spark", "walk")
    Log.create(tmp_path / "log", SCHEMA)
    assert "no attribute 'm'" in refused(capsys, "spark", "run", *where, "--columns", "n,m")
    (tmp_path / "index").touch()
    assert "index: cannot be read: Not a directory" in refused(capsys, "spark", "run", *where)


def test_the_demo_refuses_another_log(tmp_path: Path, capsys: Capture) -> None:
    Log.create(tmp_path / "data" / "log", SCHEMA)
    assert "belongs to something else" in refused(capsys, "demo", "--folder", str(tmp_path))


def test_more_rows_are_shown(job: StreamJob) -> None:
    file = io.StringIO()
    more = [("matching", "Spark", "from sequence number 7 on")]
    with _Stream(job) as stream:
        StreamView(Console(file=file), stream, lambda rows: [], "title", more=lambda: more).update()
        wide = Console(file=file, force_terminal=True, width=80, height=30, color_system=None)
        shown = StreamView(wide, stream, lambda rows: [], "title", more=lambda: more)
        with shown.shown():
            shown.update()
    plain, _, picture = file.getvalue().partition("\n")
    assert plain.endswith("2 dead, matching Spark")
    assert "from sequence number 7 on" in picture
