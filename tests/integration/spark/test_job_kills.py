"""Jobs are killed at random moments: no half of a result is seen, and the same command succeeds.

One kill by default; `TAMIS_JOB_KILLS=20` asks for more. A kill ends the driver and its Java. Some
come after a random time, others when the files of the job have changed so many times.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from tamis.engine import Engine
from tamis.spark.runtime.java import java_home
from tamis.store import Log, Stats, Versions
from tests.campaign import SEED, campaign
from tests.power_loss.small_world import SCHEMA, compile_version, some_changes, some_events
from tests.unit.cli.calls import run

KILLS = int(os.environ.get("TAMIS_JOB_KILLS", "1"))
_LONG = 300.0  # seconds for a job
_USUAL = 10.0  # seconds of a job, until one was measured
_POLL = 0.002


class Job(NamedTuple):
    """A command that writes to a folder, and what it has written: None if nothing is seen."""

    arguments: Callable[[Path], list[str]]
    result: Callable[[Path], Any]


def _version(place: Path) -> Any:
    version = Versions(place / "made").latest()
    if version is None:
        return None
    conditions = []
    for folder in version.shard_folders:
        with Engine.open(folder) as engine:
            conditions.append({id: engine.condition(id) for id in sorted(engine.ids())})
    return version.sequence, version.ids, version.made, conditions


def _stats(place: Path) -> Any:
    return replace(Stats.open(place / "made"), made="") if (place / "made").exists() else None


def _tables(place: Path) -> Any:
    if not (place / "made" / "counts.parquet").exists():  # it marks a complete folder
        return None
    return {each.name: pq.read_table(each) for each in (place / "made").glob("*.parquet")}


def _on_log(place: Path, *more: str) -> list[str]:
    return ["--log", str(place.parent / "log"), *more]


JOBS = {
    "compile": Job(
        lambda place: ["compile", *_on_log(place, "--index", str(place / "made"), "--shards", "2")],
        _version,
    ),
    "stats": Job(
        lambda place: [
            "stats",
            *_on_log(place, "--out", str(place / "made"), "--replace"),
            *("--subscriptions", str(place.parent / "index")),
        ],
        _stats,
    ),
    "backtest": Job(
        lambda place: ["backtest", "price < 5", *_on_log(place, "--out", str(place / "made"))],
        _tables,
    ),
}


def _start(job: Job, place: Path) -> subprocess.Popen[bytes]:
    scratch = place / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    with (place / "said.txt").open("ab") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "tamis.cli.main", "spark", *job.arguments(place)],
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=scratch,
            env={
                **os.environ,
                "JAVA_HOME": str(java_home()),
                "PYSPARK_PYTHON": sys.executable,
                "TMPDIR": str(scratch),
                "SPARK_LOCAL_DIRS": str(scratch),
            },
        )


def _run(job: Job, place: Path) -> float:
    """Run a job to its end; gives the seconds."""
    process, began = _start(job, place), time.monotonic()
    try:
        assert process.wait(_LONG) == 0, (place / "said.txt").read_text()
    finally:
        _kill(process)
    return time.monotonic() - began


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _seen(place: Path) -> set[str]:
    """The files and folders of a job, but those of Spark."""
    with contextlib.suppress(FileNotFoundError):  # something went while this looked
        names = {str(each.relative_to(place)) for each in (place).rglob("*")}
        return {name for name in names if not name.startswith("scratch") or ".tamis-" in name}
    return set()


def _disturb(job: Job, place: Path, seconds: float, draw: random.Random) -> bool:
    """Start a job and kill it; whether it was still running."""
    moment = draw.random() * seconds
    changes = draw.randint(1, 40) if draw.random() < 0.5 else None
    process, began, before, changed = _start(job, place), time.monotonic(), _seen(place), 0
    try:
        while process.poll() is None:
            if changes is None and time.monotonic() - began >= moment:
                return True
            now = _seen(place)
            changed += now != before
            if changes is not None and changed >= changes:
                return True
            before = now
            time.sleep(_POLL)
        return False
    finally:
        _kill(process)


def _left(place: Path) -> set[str]:
    """What is there after a job that was not there before, without what changes its name."""
    hidden = {name for name in _seen(place) if any(part[0] == "." for part in Path(name).parts)}
    holds = place.parent / "index" / "jobs"
    assert all(each.suffix in (".json", "") for each in holds.rglob("*")), "holds end after a day"
    return hidden


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="kills process groups")
@pytest.mark.usefixtures("spark")
def test_a_killed_job_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", SCHEMA)
    with campaign("job-kills") as running:
        for _ in range(20):
            log.append(events=some_events(running.draw), changes=some_changes(running.draw))
        compile_version(log, Versions(tmp_path / "index"))
        undisturbed: dict[str, Any] = {}
        seconds, names = _USUAL, list(JOBS)
        while running.tried < KILLS:
            name = names[(running.tried + SEED) % len(names)]
            job, place = JOBS[name], tmp_path / f"{name}-{running.tried}"
            if name not in undisturbed:
                assert run("spark", *job.arguments(tmp_path / name)) == 0
                undisturbed[name] = job.result(tmp_path / name)
                assert undisturbed[name] is not None
                assert _left(tmp_path / name) == set()
            if not _disturb(job, place, seconds, running.draw):
                place.rename(tmp_path / f"ended-{time.monotonic_ns()}")  # it was faster
                continue
            running.tried += 1
            found, expected = job.result(place), undisturbed[name]
            assert found in (None, expected) or name == "stats"
            if found is None or name != "backtest":  # which refuses to write again
                seconds = _run(job, place)
            assert job.result(place) == expected
            assert _left(place) == set()
