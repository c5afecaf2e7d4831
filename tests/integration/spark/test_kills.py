"""Executors, workers and drivers are killed while subscriptions change: each pair comes out once.

Two cycles by default; `TAMIS_KILLS=20` asks for more. The cluster is a real one, two executors in
processes of their own. New versions of the index appear while it runs, old ones are swept, and
parts are merged, as the keeper of a stream does. What is left at last is done by another session.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tamis.engine import Engine
from tamis.model.schema import Schema
from tamis.replay.compact_parts import compact
from tamis.replay.live_subscriptions import subscribe_rows
from tamis.replay.manifests import manifests
from tamis.replay.parts import NOTIFICATIONS
from tamis.spark.runtime.java import java_home
from tamis.store import Shard, SubscriptionSnapshot, Versions, describe
from tests.integration.spark.test_stream import Story
from tests.integration.spark.victim import notifying

CYCLES = int(os.environ.get("TAMIS_KILLS", "2"))
MASTER = "local-cluster[2,1,1024]"
WAYS = ("between", "executor", "worker", "driver")
VICTIM = Path(__file__).with_name("victim.py")


class Victim:
    """The program, in a process group of its own."""

    def __init__(self, story: Story, out: Path, way: str) -> None:
        self.token = uuid.uuid4().hex
        arguments = (story.log.folder, out / "index", out, MASTER, self.token, way)
        self._log = (out / f"victim-{self.token}.txt").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, str(VICTIM), *map(str, arguments)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={
                **os.environ,
                "JAVA_HOME": str(java_home()),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_WORKER_DIR": str(out / "work"),
                "TAMIS_COSTS": "usual",
            },
        )

    def said(self) -> str:
        return Path(self._log.name).read_text(errors="replace")

    def executors(self) -> list[int]:
        """The JVMs of its executors. That of the driver has the token among its arguments too."""
        mine = [(pid, line) for pid, line in _processes() if f"tamis.victim={self.token}" in line]
        return [pid for pid, line in mine if "ExecutorBackend" in line]

    def workers(self) -> list[int]:
        """The Python workers of its executors."""
        parents = {pid: _parent(pid) for pid, line in _processes() if "pyspark" in line}
        executors = set(self.executors())
        daemons = {pid for pid, parent in parents.items() if parent in executors}
        return [pid for pid, parent in parents.items() if parent in daemons]

    def wait(self, seconds: float) -> int | None:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Kill all of it: driver, executors, workers."""
        for pid in [*self.executors(), *self.workers()]:
            _kill(pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._log.close()


def _processes() -> list[tuple[int, str]]:
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                line = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found.append((int(each.name), line))
    return found


def _parent(pid: int) -> int:
    try:
        return int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return -1


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _batches(out: Path) -> int:
    return len(list((out / "found" / "manifests").glob("*.json")))


def _compiled(story: Story, index: Path) -> None:
    """Publish a version of who is subscribed by now."""
    log = story.log
    at = log.end
    snapshot = SubscriptionSnapshot()
    snapshot.fold(log.changes(0, at))
    engine = Engine(Schema.from_dict(log.schema))
    assert not subscribe_rows(engine, snapshot.table(log.ids))
    with Versions(index).publish(at) as draft:
        engine.save(draft / "shard-0000")
        shards = [Shard("shard-0000", len(engine), 1)]
        describe(draft, sequence=at, schema=log.schema, ids=log.ids, shards=shards)


def _until(wanted: int, victim: Victim, story: Story, out: Path, seconds: float = 120.0) -> bool:
    """Go on writing until so many batches are committed, or the victim is dead.

    Subscriptions are compiled meanwhile, and versions that are not needed any more are swept.
    """
    _compiled(story, out / "index")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        story.write(2)
        if _batches(out) >= wanted or victim.process.poll() is not None:
            _compiled(story, out / "index")
            Versions(out / "index").sweep(story.log.end)
            return True
        time.sleep(0.3)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found by /proc")
def test_nothing_is_lost_and_nothing_comes_twice(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(11)
    story = Story(tmp_path / "log", seed=11, text=False)
    story.write(40)
    merged = 0
    for cycle in range(CYCLES):
        way = WAYS[cycle % len(WAYS)]
        before = _batches(tmp_path)
        victim = Victim(story, tmp_path, "between" if way == "between" else "on")
        try:
            assert _until(before + 2, victim, story, tmp_path), victim.said()
            if way == "between":
                assert victim.wait(60) == -signal.SIGKILL, victim.said()
            elif way in ("executor", "worker"):
                found = victim.executors() if way == "executor" else victim.workers()
                assert found, "there is somebody to kill"
                _kill(rng.choice(found))
                # It goes on without a new start.
                assert _until(_batches(tmp_path) + 2, victim, story, tmp_path), victim.said()
                assert victim.process.poll() is None, victim.said()
            else:
                assert victim.process.poll() is None, victim.said()
        finally:
            victim.end()
        story.write(5)
        merged += compact(tmp_path / "found", keep=1, many=2, older=0.0)
    assert merged, "parts of some batches were merged"
    left = [each.sequence for each in Versions(tmp_path / "index").all()]
    assert len(left) < 2 * CYCLES, "versions were swept"
    log, index = str(story.log.folder), str(tmp_path / "index")
    writer = notifying(spark, log, index, str(tmp_path), most=20_000)
    query = writer.trigger(availableNow=True).start(str(tmp_path / "found"))
    assert query.awaitTermination(180)
    assert query.exception() is None
    pairs = [
        pair
        for manifest in manifests(tmp_path / "found")
        for part in manifest["parts"]
        if part["folder"] == NOTIFICATIONS
        for pair in _pairs(tmp_path / "found" / NOTIFICATIONS / part["name"])
    ]
    assert len(pairs) == len(set(pairs)), "nothing twice"
    assert set(pairs) == story.pairs, "nothing lost"
    assert sum(manifest["dead"] for manifest in manifests(tmp_path / "found")) == len(story.dead)


def _pairs(part: Path) -> list[tuple[int, str]]:
    table = pq.read_table(part)
    numbers, ids = table["sequence"].to_pylist(), table["subscription"].to_pylist()
    return list(zip(numbers, ids, strict=True))
