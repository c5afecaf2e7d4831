"""What workers of one machine hold in memory of the index that all of them have open.

Each worker maps the same files, so that the kernel keeps one copy of them. To see that, workers
wait for each other, match the same events, and then read what the kernel says of each: how many
bytes of the index they see, and how many of these nobody else does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tamis.errors import SparkError, TamisError
from tamis.lab.progress import Step
from tamis.lab.records import Figure, Goal
from tamis.lab.setting import Setting
from tamis.lab.spark_data import SPARK, prepared

_WORKERS = (2, 4)
_PATIENCE = 120.0  # seconds that a worker waits for the others
_FIELDS = ("Rss", "Pss", "Private_Clean", "Private_Dirty")
STEPS = 1 + 5 * len(_WORKERS)


def figures(setting: Setting, folder: Path) -> Iterator[Figure | Step]:
    """Bytes of the index and of all else, with two workers and with four."""
    yield Step(SPARK, "memory: data")
    there = folder / "memory"
    events = max(setting.batch * 16, 1000)
    made = prepared(there, setting.spark_subscriptions, events, setting.seed)
    size = (there / "engine" / "data").stat().st_size
    for workers in _WORKERS:
        yield Step(SPARK, f"memory: {workers} workers")
        seen = measured(there / "engine", there / "some", workers)
        facts = {**made.parameters, "workers": workers, "index_bytes": size, "seen": seen}
        # A copy for each would be as many times the size: one and a bit is one.
        one = Goal(1.1 * size / 1e6, at_most=True)
        index, rest = [each["index"] for each in seen], [each["all"] for each in seen]
        told: list[tuple[str, float, Goal | None]] = [
            ("index seen by each, together", _sum(index, "Rss"), None),
            ("  pages that it takes up, shared ones once", _sum(index, "Pss"), one),
            ("  of these private to one worker", _unique(index), None),
            ("all unique pages, with Python's own", _unique(rest), None),
        ]
        for what, value, goal in told:
            name = f"{workers} workers: {what}" if not what.startswith(" ") else what
            yield Figure(SPARK, name, value, "MB", value, value, 1, goal, facts)


def _sum(seen: list[dict[str, int]], field: str) -> float:
    return sum(each[field] for each in seen) / 1e6


def _unique(seen: list[dict[str, int]]) -> float:
    return _sum(seen, "Private_Clean") + _sum(seen, "Private_Dirty")


def measured(engine: Path, events: Path, workers: int) -> list[dict[str, Any]]:
    """What the kernel says of each worker; in a process of its own, which has nothing else open."""
    command = [sys.executable, "-m", "tamis.lab.spark_memory", str(engine), str(events)]
    ran = subprocess.run(
        [*command, str(workers)], capture_output=True, text=True, check=False, env=os.environ
    )
    if ran.returncode:
        said = ran.stderr.strip().splitlines() or ["it said nothing"]
        raise TamisError(f"workers could not be looked at: {said[-1]}")
    found: list[dict[str, Any]] = json.loads(ran.stdout.splitlines()[-1])
    return found


def _measure(engine: str, events: str, workers: int) -> list[dict[str, Any]]:
    from tempfile import TemporaryDirectory

    from tamis.spark.runtime.sessions import session

    settings: dict[str, Any] = {"spark.ui.enabled": False}
    spark = session(f"local[{workers}]", **settings)
    with TemporaryDirectory() as meeting:

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    told = json.dumps(_looked(engine, events, Path(meeting), number, workers))
                    yield pa.RecordBatch.from_pydict({"told": [told]})

        numbers = spark.range(workers, numPartitions=workers)
        told = numbers.mapInArrow(run, "told string").collect()
    spark.stop()
    return [json.loads(row["told"]) for row in told]


def _looked(
    folder: str, events: str, meeting: Path, number: int, workers: int
) -> dict[str, dict[str, int]]:
    """In a worker: match, wait until all others have, and look."""
    from tamis.spark.runtime.worker_cache import open_engine

    engine = open_engine(folder)
    for file in sorted(Path(events).iterdir()):
        engine.match_batch(parquet.read_table(file))
    _meet(meeting, f"matched-{number}", workers, "matched-*")
    found = {"all": _smaps("smaps_rollup", ""), "index": _smaps("smaps", f"{folder}/data")}
    _meet(meeting, f"looked-{number}", workers, "looked-*")  # who leaves first gives pages back
    return found


def _meet(place: Path, mine: str, workers: int, others: str) -> None:
    (place / mine).touch()
    until = time.monotonic() + _PATIENCE
    while len(list(place.glob(others))) < workers:
        if time.monotonic() > until:
            raise SparkError(f"fewer than {workers} workers came; there have to be as many at once")
        time.sleep(0.05)


def _smaps(file: str, path: str) -> dict[str, int]:
    """Bytes by kind, of all mappings of this process, or of those of one file."""
    found = dict.fromkeys(_FIELDS, 0)
    counts = False
    for line in Path("/proc/self", file).read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(":")
        if name in found:
            found[name] += int(rest.split()[0]) * 1024 if counts else 0
        elif "-" in line.split(" ", 1)[0]:  # the head of a mapping: addresses, …, path
            counts = not path or line.endswith(path)
    return found


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
