"""Executors, workers and drivers are killed while subscriptions change: each pair comes out once.

A few cycles by default; `TAMIS_KILLS=20` asks for more. Spark runs in one process, on two executors
in processes of their own, and on a standalone master with two workers, in turn. New versions of the
index appear while it runs, old ones are swept, and parts are merged, as the keeper of a stream
does. What is left at last is done by another session.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
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
from tests.campaign import SEED, campaign
from tests.integration.spark.standalone import StandaloneCluster
from tests.integration.spark.test_stream import Story
from tests.integration.spark.victim import notifying

LOCAL, CLUSTER, STANDALONE = "local[2,4]", "local-cluster[2,1,1024]", "spark://"
WAYS = {
    LOCAL: ("worker", "driver", "between"),
    CLUSTER: ("between", "executor", "worker", "driver"),
    STANDALONE: ("daemon", "executor", "between", "driver", "worker"),
}
USUAL = [(CLUSTER, "between"), (STANDALONE, "daemon")]
KILLS = int(os.environ.get("TAMIS_KILLS", len(USUAL)))
VICTIM = Path(__file__).with_name("victim.py")


_TASKS = re.compile(r"pyspark\.daemon pyspark\.worker\b")


class Victim:
    """The program, in a process group of its own."""

    def __init__(self, story: Story, out: Path, master: str, way: str) -> None:
        self.token = uuid.uuid4().hex
        arguments = (story.log.folder, out / "index", out, master, self.token, way)
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
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_WORKER_DIR": str(out / "work"),
                "TAMIS_COSTS": "usual",
            },
        )

    def said(self) -> str:
        return Path(self._log.name).read_text(errors="replace")

    def executors(self) -> list[int]:
        """The JVMs of its executors. That of the driver has the token among its arguments too."""
        return [pid for pid, line in self._java() if "ExecutorBackend" in line]

    def _java(self) -> list[tuple[int, str]]:
        return [(pid, line) for pid, line in _processes() if f"tamis.victim={self.token}" in line]

    def workers(self) -> list[int]:
        """The Python workers that run tasks."""
        lines = [(pid, line) for pid, line in _processes() if "pyspark.daemon" in line]
        parents = {pid: _parent(pid) for pid, line in lines if _TASKS.search(line)}
        executors = set(self.executors() or (pid for pid, _ in self._java()))
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


def _until(wanted: int, victim: Victim, story: Story, out: Path, seconds: float = 300.0) -> bool:
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


def _cycles() -> list[tuple[str, str]]:
    """Where Spark runs, and what is killed."""
    if "TAMIS_KILLS" not in os.environ:
        return USUAL
    turns = [(list(WAYS)[cycle % len(WAYS)], cycle // len(WAYS) + SEED) for cycle in range(KILLS)]
    return [(where, WAYS[where][turn % len(WAYS[where])]) for where, turn in turns]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[[], StandaloneCluster]]:
    """The standalone cluster, started when it is needed, with two live workers."""
    started: list[StandaloneCluster] = []

    def running() -> StandaloneCluster:
        if not started:
            started.append(StandaloneCluster(tmp_path / "cluster"))
        started[0].refill()
        return started[0]

    yield running
    for each in started:
        each.stop()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found by /proc")
def test_nothing_is_lost_and_nothing_comes_twice(
    spark: SparkSession, tmp_path: Path, cluster: Callable[[], StandaloneCluster]
) -> None:
    cycles = _cycles()
    with campaign("stream-kills") as running:
        story = Story(tmp_path / "log", seed=11 + SEED, text=False)
        story.write(40)
        merged = 0
        for where, way in cycles:
            daemons = cluster() if where == STANDALONE else None
            master = where if daemons is None else daemons.url
            victim = Victim(story, tmp_path, master, "between" if way == "between" else "on")
            try:
                _disturb(victim, way, story, tmp_path, running.draw, daemons)
            finally:
                victim.end()
            running.tried += 1
            story.write(5)
            merged += compact(tmp_path / "found", keep=1, many=2, older=0.0)
        assert merged, "parts of some batches were merged"
        left = [each.sequence for each in Versions(tmp_path / "index").all()]
        assert len(left) < 2 * len(cycles), "versions were swept"
        _finish(spark, story, tmp_path)


def _disturb(
    victim: Victim,
    way: str,
    story: Story,
    out: Path,
    draw: random.Random,
    cluster: StandaloneCluster | None,
) -> None:
    """Kill a part of the victim, which goes on without a new start; or all of it."""
    assert _until(_batches(out) + 2, victim, story, out), victim.said()
    if way == "between":
        assert victim.wait(60) == -signal.SIGKILL, victim.said()
        return
    assert victim.process.poll() is None, victim.said()
    if way == "driver":
        return  # the caller ends it
    if way == "daemon":
        assert cluster is not None
        draw.choice(cluster.workers).kill()
    else:
        found = victim.executors() if way == "executor" else victim.workers()
        assert found, "there is somebody to kill"
        _kill(draw.choice(found))
    assert _until(_batches(out) + 2, victim, story, out), victim.said()
    assert victim.process.poll() is None, victim.said()


def _finish(spark: SparkSession, story: Story, out: Path) -> None:
    """Do what is left, and compare with the story."""
    log, index = str(story.log.folder), str(out / "index")
    writer = notifying(spark, log, index, str(out), most=20_000)
    query = writer.trigger(availableNow=True).start(str(out / "found"))
    assert query.awaitTermination(180)
    assert query.exception() is None
    pairs = [
        pair
        for manifest in manifests(out / "found")
        for part in manifest["parts"]
        if part["folder"] == NOTIFICATIONS
        for pair in _pairs(out / "found" / NOTIFICATIONS / part["name"])
    ]
    assert len(pairs) == len(set(pairs)), "nothing twice"
    assert set(pairs) == story.pairs, "nothing lost"
    assert sum(manifest["dead"] for manifest in manifests(out / "found")) == len(story.dead)


def _pairs(part: Path) -> list[tuple[int, str]]:
    table = pq.read_table(part)
    numbers, ids = table["sequence"].to_pylist(), table["subscription"].to_pylist()
    return list(zip(numbers, ids, strict=True))
