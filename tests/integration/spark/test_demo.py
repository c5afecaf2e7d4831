"""The demonstration as a user runs it: stopped by Ctrl-C, started again, and its files compared.

What should be there is worked out from the log alone: every subscription that ever was goes into
one engine, and a pair counts where the event's number lies between its subscribe and its end.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tamis import Engine, Schema
from tamis.errors import SparkError
from tamis.replay.manifests import manifests
from tamis.spark.runtime.java import java_home
from tamis.spark.stream.progress import StreamStatus
from tamis.spark.stream.stream import Stream, StreamJob
from tamis.store import Log, cancel, subscribe
from tests.unit.cli.calls import Capture, run

SUBSCRIPTIONS = 400
SIZE = ("--subscriptions", str(SUBSCRIPTIONS), "--rate", "300", "--churn", "60")
_END = np.iinfo(np.int64).max
_LIMIT = 300.0  # seconds, after which a run that hangs is killed


class Demo:
    """A `tamis demo` in a process of its own, with its output line by line."""

    def __init__(self, folder: Path) -> None:
        self.lines: list[str] = []
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "200",
            "TAMIS_COSTS": "usual",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tamis.cli.main", "demo", "--folder", str(folder), *SIZE],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self._killer = threading.Timer(_LIMIT, self._process.kill)
        self._killer.start()

    def read(self, pattern: str | None = None) -> None:
        """Until a line matches, or to the end."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            if pattern is not None and re.search(pattern, line):
                return
        assert pattern is None, "".join(self.lines)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self) -> str:
        """What it said, when it has ended as it should."""
        self.read()
        code = self._process.wait()
        self._killer.cancel()
        said = "".join(self.lines)
        assert code == 0, said
        return _quiet(said)


def _quiet(said: str) -> str:
    """Nothing of it is for those who program."""
    for noise in ("Traceback", "Exception", "java", "WARN", "ERROR", "\x1b"):
        assert noise not in said, said
    return said


def _expected(log: Log, end: int) -> tuple[list[tuple[int, int]], set[int]]:
    """All pairs and all dead of the events before a number."""
    since: list[int] = []
    until: list[int] = []
    ids: list[int] = []
    conditions: list[str] = []
    live: dict[int, int] = {}
    for row in log.changes(0, end).to_pylist():
        if row["kind"] == "subscribe":
            live[row["id"]] = len(ids)
            ids.append(row["id"])
            conditions.append(row["condition"])
            since.append(row["sequence"])
            until.append(_END)
        elif row["kind"] != "renew" and row["id"] in live:
            until[live.pop(row["id"])] = row["sequence"]
    engine = Engine(Schema.from_dict(log.schema))
    engine.subscribe_table(pa.table({"id": list(range(len(ids))), "condition": conditions}))
    pairs: list[tuple[int, int]] = []
    dead: set[int] = set()
    for first, table in log.events(0, end):
        if table.column_names == ["json"]:
            dead |= set(range(first, first + table.num_rows))
            continue
        answer = engine.match_batch(table)
        for event, number in zip(
            answer.events.tolist(), answer.subscriptions.tolist(), strict=True
        ):
            if since[number] <= first + event < until[number]:
                pairs.append((first + event, ids[number]))
    return sorted(pairs), dead


def _rows(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Those that manifests name."""
    return [
        row
        for manifest in manifests(folder)
        for part in manifest["parts"]
        if part["folder"] == kind
        for row in pq.read_table(folder / kind / part["name"]).to_pylist()
    ]


def _check(folder: Path, swept: bool = True) -> int:
    """Nothing is missing or twice up to where the stream is; gives where that is.

    Where its session has ended as well, or all was done, only files that count are left.
    """
    log = Log.open(folder / "log")
    done = max(each["offsets"][0]["sequence"] for each in manifests(folder))
    pairs, dead = _expected(log, done)
    found = _rows(folder, "notifications")
    assert sorted((row["sequence"], row["subscription"]) for row in found) == pairs
    assert all(row["title"] and row["price"] > 0 for row in found)
    buried = _rows(folder, "dead")
    assert sorted(row["sequence"] for row in buried) == sorted(dead)
    assert all(row["reason"] and row["raw"] for row in buried)
    assert pairs
    assert dead
    for kind in ("notifications", "dead"):
        named = {p["name"] for m in manifests(folder) for p in m["parts"] if p["folder"] == kind}
        there = {each.name for each in (folder / kind).iterdir()}
        assert there == named if swept else there >= named
    return int(done)


def test_it_stops_cleanly_and_goes_on(
    spark: SparkSession, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "demo"
    first = Demo(folder)
    first.read(r" (?:[2-9]|[1-9]\d+) dead")
    first.interrupt()
    said = first.end()
    assert f"{SUBSCRIPTIONS} subscriptions compiled" in said
    assert "To look at the notifications" in said
    done = _check(folder)

    # The next runs are on a session that is there, in another Java than that of the first.
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(Stream, "open", lambda stream, *_, **__: _given(stream, spark))
    monkeypatch.setattr(
        "tamis.cli.terminal.interrupt.InterruptGuard.run", lambda _, work, *__: work()
    )
    assert run("demo", "--folder", str(folder), *SIZE, "--seconds", "2") == 0
    said = _quiet(capsys.readouterr().out)
    assert "in the log of an earlier run" in said
    assert re.search(r"continues after [1-9][\d,]* events", said)
    further = _check(folder, swept=False)
    assert further > done
    queries = {manifest["query"] for manifest in manifests(folder)}
    assert len(queries) == 1, "it is the same stream"

    # What is left is done by `tamis spark run`.
    Log.open(folder / "log").publish(pa.table({"json": ["{"]}))
    options = ("--columns", "title,price", "--trigger", "available-now", "--compile-every", "1")
    places = ("--log", str(folder / "log"), "--index", str(folder / "index"), "--out", str(folder))
    assert run("spark", "run", *places, *options) == 0
    assert "0 events wait for the next run" in capsys.readouterr().out
    assert _check(folder) > further


def _given(stream: Stream, spark: SparkSession) -> SparkSession:
    stream._session, stream._owned = spark, False
    return spark


def _compiled(stream: Stream, versions: int, _: StreamStatus) -> bool:
    return stream.keeper.compiled == versions


def _until(stream: Stream, reached: Callable[[StreamStatus], bool]) -> StreamStatus:
    """Wait until a stream is so far."""
    until = time.monotonic() + _LIMIT
    while not reached(now := stream.look()):
        stream.check()
        assert time.monotonic() < until, now
        time.sleep(0.1)
    return now


DOCUMENT = {"attributes": {"n": "integer"}, "event_types": {"event": {"n": "mandatory"}}}


def test_versions_are_made_and_swept_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", DOCUMENT)
    job = StreamJob(
        tmp_path / "log", tmp_path / "index", tmp_path, tmp_path / "checkpoint", every=20
    )
    log.change(subscribe([f"s{n}" for n in range(30)], [f"n < {n}" for n in range(30)]))
    expected = 0
    with Stream(job, spark=spark) as stream:
        made = stream.prepare()
        assert made is not None
        assert (made.subscriptions, made.version.sequence) == (30, 30)
        stream.start()
        for turn in range(3):
            log.publish(pa.table({"n": [5] * 10}))
            expected += 10 * (24 - 5 * turn)
            _until(stream, lambda now: not now.backlog)
            log.change(cancel([f"s{n}" for n in range(6 + 5 * turn, 11 + 5 * turn)]))
            log.change(subscribe([f"x{turn}-{n}" for n in range(20)], ["n < 0"] * 20))
            _until(stream, partial(_compiled, stream, turn + 1))
        log.publish(pa.table({"n": [5] * 10}))
        expected += 10 * (24 - 15)
        _until(stream, lambda now: not now.backlog)
        log.publish(pa.table({"n": [100]}))  # a batch that begins after the last version
        now = _until(stream, lambda now: not now.backlog)
        assert (now.events, now.notifications, now.version) == (41, expected, log.end - 11)
        _until(stream, lambda _: len(stream.versions.all()) == 1)
        assert stream.keeper.trouble is None
        # Another cannot write to the same folder meanwhile.
        with pytest.raises(SparkError, match="already"):
            Stream(job, spark=spark)
    assert spark.range(1).count() == 1, "a session that was given stays"


def test_a_stream_that_dies_is_told_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", DOCUMENT)
    log.change(subscribe(["a"], ["n < 5"]))
    job = StreamJob(
        tmp_path / "log", tmp_path / "index", tmp_path, tmp_path / "checkpoint", trigger=None
    )
    log.publish(pa.table({"n": [1, 2, 3]}))
    (path,) = (tmp_path / "log" / "segments").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-100] + b"rubbish".ljust(100))
    with Stream(job, spark=spark) as stream:
        stream.start()
        while stream.running:
            time.sleep(0.1)
        with pytest.raises(SparkError, match=r"the stream stopped: .* is damaged: .*\.segment: "):
            stream.check()
    assert "is damaged" in (tmp_path / "logs" / "driver.log").read_text(encoding="utf-8")
