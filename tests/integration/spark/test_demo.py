"""The demonstration as a user runs it, and the stream that it hands the matching over to."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tamis.client import Client
from tamis.client.webhooks import verify
from tamis.errors import SparkError
from tamis.replay.coverage import coverage
from tamis.replay.matching_shifts import MatchingShifts
from tamis.spark.runtime.java import java_home
from tamis.spark.stream.progress import StreamStatus
from tamis.spark.stream.stream import Stream, StreamJob
from tamis.store import Log, cancel, subscribe

_LIMIT = 300.0  # seconds, after which a run that hangs is killed


class Demo:
    """A `tamis demo` in a process of its own, with its output line by line."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.lines: list[str] = []
        size = ("--subscriptions", "100", "--rate", "300", "--churn", "20")
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "200",
            "TAMIS_COSTS": "usual",
        }
        program = [sys.executable, "-m", "tamis.cli.main", "demo", "--folder", str(folder)]
        self._process = subprocess.Popen(
            [*program, *size, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self._killer = threading.Timer(_LIMIT, self._process.kill)
        self._killer.start()

    def read(self, pattern: str | None = None) -> str:
        """Until a line matches, which is returned, or to the end."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            if pattern is not None and (found := re.search(pattern, line)):
                return found[found.lastindex or 0]
        assert pattern is None, "".join(self.lines)
        return ""

    def children(self) -> set[int]:
        """All processes that it has started, and those that these have."""
        parents: dict[int, int] = {}
        for each in Path("/proc").iterdir():
            if each.name.isdecimal():
                try:
                    facts = (each / "stat").read_text().rpartition(")")[2].split()
                except OSError:  # it has just ended
                    continue
                parents[int(each.name)] = int(facts[1])
        found = {self._process.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found - {self._process.pid}

    def end(self, number: int) -> str:
        """Send a signal; what it said, when it has ended as it should, with all its processes."""
        children = self.children()
        self._process.send_signal(number)
        self.read()
        code = self._process.wait()
        self._killer.cancel()
        said = "".join(self.lines)
        assert code == 0, said
        until = time.monotonic() + 60
        while any(Path(f"/proc/{pid}").exists() for pid in children):
            assert time.monotonic() < until, "a process is left"
            time.sleep(0.1)
        return _quiet(said)


def _quiet(said: str) -> str:
    """Nothing of it is for those who program."""
    for noise in ("Traceback", "Exception", "java", "WARN", "ERROR", "\x1b"):
        assert noise not in said, said
    return said


class Hook:
    """A receiver of webhooks, which knows the numbers of the events that it was told."""

    def __init__(self) -> None:
        self.secret, self.numbers = "", list[int]()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                message = verify(dict(self.headers), body, hook.secret)
                hook.numbers.append(message.body["data"]["sequence"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    def wait_beyond(self, number: int) -> None:
        """Wait for a notification of an event that comes after a number."""
        until = time.monotonic() + 60
        while max(self.numbers, default=-1) <= number:
            assert time.monotonic() < until, self.numbers[-5:]
            time.sleep(0.05)


@contextmanager
def listening() -> Iterator[Hook]:
    hook = Hook()
    thread = threading.Thread(target=hook.server.serve_forever)
    thread.start()
    try:
        yield hook
    finally:
        hook.server.shutdown()
        thread.join()
        hook.server.server_close()


def test_the_whole_system(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    shifts = MatchingShifts(folder / "data")
    first = Demo(folder)
    url = first.read(r"open (http://[\d.:]+)/console#code=")
    with listening() as hook, Client(url) as client:
        # Few match, so that the receiver is not busy with anything else.
        made = client.subscribe(
            "price < 8", sink=f"http://127.0.0.1:{hook.server.server_port}/", lease=None
        )
        assert made.secret is not None
        hook.secret = made.secret
        first.read("the first notification came [\\d.]+ s after the start")
        hook.wait_beyond(0)
        start = int(first.read(r"Spark matches from sequence number ([\d,]+) on").replace(",", ""))
        hook.wait_beyond(start)  # by Spark, at the same receiver
        client.cancel(made.id, ticket=made.ticket)
        said = first.end(signal.SIGINT)
    assert len(set(hook.numbers)) == len(hook.numbers)
    assert "subscriptions compiled for Spark" in said
    log = Log.open(shifts.log)
    covered = coverage(shifts.out, log.begin)
    assert covered.ranges[0].start == 0
    assert all(a.end == b.start for a, b in zip(covered.ranges, covered.ranges[1:], strict=False))
    assert start in {each.start for each in covered.ranges}, "the switch is at one number"

    # A second run goes on, here without Spark.
    second = Demo(folder, "--master", "nowhere", "--churn", "0")
    second.read("continues after [1-9][\\d,]* events")
    second.read("the first notification came")
    second.read("the service goes on matching, without Spark: 'nowhere' is not a master")
    second.end(signal.SIGTERM)
    assert coverage(shifts.out, log.begin).end > covered.end
    current = shifts.current()
    assert current is not None
    assert current.matching == "inline"


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
