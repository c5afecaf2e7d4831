"""The memory that workers of one machine use for a shared index.

Each worker maps the same files, so the kernel keeps one copy of them. To show it, workers wait for
each other, match the same events, and read their memory maps: the bytes of the index in memory, and
the bytes private to one worker.
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
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.bench.spark.data import SPARK, write_workload
from tamis.lab.results.records import Figure, Goal

_WORKERS = (2, 4)
_PATIENCE = 120.0  # seconds to wait for the other workers
_FIELDS = ("Rss", "Pss", "Private_Clean", "Private_Dirty")
STEPS = 1 + 5 * len(_WORKERS)


def figures(setting: BenchSetting, folder: Path) -> Iterator[Figure | str]:
    """Bytes of the index and of everything else, with two workers and with four."""
    yield "memory: data"
    there = folder / "memory"
    events = max(setting.batch * 16, 1000)
    made = write_workload(there, setting.spark_subscriptions, events, setting.seed)
    size = (there / "engine" / "data").stat().st_size
    for workers in _WORKERS:
        yield f"memory: {workers} workers"
        seen = worker_memory(there / "engine", there / "some", workers)
        facts = {**made.parameters, "workers": workers, "index_bytes": size, "seen": seen}
        # Slightly above one copy; a copy for each worker would be a multiple.
        one = Goal(1.1 * size / 1e6, at_most=True)
        index, rest = [each["index"] for each in seen], [each["all"] for each in seen]
        lines: list[tuple[str, float, Goal | None]] = [
            ("index mapped by all, summed up", _sum(index, "Rss"), None),
            ("  memory it takes, shared pages counted once", _sum(index, "Pss"), one),
            ("  private to one worker", _unique(index), None),
            ("all private pages, with Python's own", _unique(rest), None),
        ]
        for what, value, goal in lines:
            name = f"{workers} workers: {what}" if not what.startswith(" ") else what
            yield Figure(SPARK, name, value, "MB", value, value, 1, goal, facts)


def _sum(seen: list[dict[str, int]], field: str) -> float:
    return sum(each[field] for each in seen) / 1e6


def _unique(seen: list[dict[str, int]]) -> float:
    return _sum(seen, "Private_Clean") + _sum(seen, "Private_Dirty")


def worker_memory(engine: Path, events: Path, workers: int) -> list[dict[str, Any]]:
    """The memory of each worker. Runs in a new process, which has nothing else open."""
    command = [sys.executable, "-m", "tamis.lab.bench.spark.memory", str(engine), str(events)]
    ran = subprocess.run(
        [*command, str(workers)], capture_output=True, text=True, check=False, env=os.environ
    )
    if ran.returncode:
        lines = ran.stderr.strip().splitlines() or ["no message"]
        raise TamisError(f"the memory of workers cannot be measured: {lines[-1]}")
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
                    found = json.dumps(
                        _measure_worker(engine, events, Path(meeting), number, workers)
                    )
                    yield pa.RecordBatch.from_pydict({"found": [found]})

        numbers = spark.range(workers, numPartitions=workers)
        rows = numbers.mapInArrow(run, "found string").collect()
    spark.stop()
    return [json.loads(row["found"]) for row in rows]


def _measure_worker(
    folder: str, events: str, meeting: Path, number: int, workers: int
) -> dict[str, dict[str, int]]:
    """In a worker: match, wait for the others, and read the memory maps."""
    from tamis.spark.runtime.worker_cache import open_engine

    engine = open_engine(folder)
    for file in sorted(Path(events).iterdir()):
        engine.match_batch(parquet.read_table(file))
    _meet(meeting, f"matched-{number}", workers, "matched-*")
    found = {"all": _smaps("smaps_rollup", ""), "index": _smaps("smaps", f"{folder}/data")}
    # A worker that ends gives pages back.
    _meet(meeting, f"measured-{number}", workers, "measured-*")
    return found


def _meet(place: Path, mine: str, workers: int, others: str) -> None:
    (place / mine).touch()
    until = time.monotonic() + _PATIENCE
    while len(list(place.glob(others))) < workers:
        if time.monotonic() > until:
            raise SparkError(f"fewer than {workers} workers started; all must run at once")
        time.sleep(0.05)


def _smaps(file: str, path: str) -> dict[str, int]:
    """Bytes by kind, of all mappings of this process or of those of one file."""
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
