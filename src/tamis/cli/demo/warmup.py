"""Compiles the matcher's kernels in a process of its own, before Spark's workers need them.

Compiled kernels are cached on disk. Without the cache each worker would compile all of them, at the
same time and on one core each. This process does the work of a worker on a small log, so that the
cache holds every kernel.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis import Engine, Schema, workload
from tamis.broker.matching import matcher_compilation
from tamis.cli.demo.auction_traffic import BROKEN, draw_conditions
from tamis.store import Log, Shard, Versions, cancel, describe, subscribe

_BASE, _ADDED, _LOTS = 3_000, 300, 600


class KernelWarmup:
    """The process. It has a session of its own, so Ctrl-C does not reach it."""

    def __init__(self, output: Path) -> None:
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tamis.cli.demo.warmup"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait for the process. If it failed, the workers compile for themselves."""
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def compile_kernels(folder: Path) -> int:
    """Do the work of a worker: map an engine, follow changes, match lots; gives the answers."""
    from tamis.spark.stream.log_source import TamisDataSource  # Spark may be missing

    start = datetime.now(UTC)
    made = workload.make("auctions", 0, start=start)
    log = Log.create(folder / "log", made.schema, ids="int64")
    texts = draw_conditions(0, start)[: _BASE + _ADDED]
    log.change(subscribe(list(range(_BASE)), texts[:_BASE]))
    with Versions(folder / "index").publish(_BASE) as draft:
        engine = Engine(Schema.from_dict(made.schema))
        engine.subscribe_table(pa.table({"id": range(_BASE), "condition": texts[:_BASE]}))
        engine.save(draft / "shard-0000")
        shards = [Shard("shard-0000", _BASE, 0)]
        describe(draft, sequence=_BASE, schema=made.schema, ids="int64", shards=shards)
    log.change(subscribe(list(range(_BASE, _BASE + _ADDED)), texts[_BASE:]))
    log.change(cancel([0]))
    log.publish(made.events(_LOTS))
    log.publish(pa.table({"json": list(BROKEN)}))
    source = TamisDataSource(
        {
            "path": str(log.folder),
            "index": str(folder / "index"),
            "columns": "title,price",
            "startingsequence": str(_BASE),
            "partitions": "1",
        }
    )
    reader = source.reader(source.schema())
    batches: list[Any] = [batch for part in reader.partitions() for batch in reader.read(part)]
    return sum(int(batch.num_rows) for batch in batches)


def main() -> None:
    if matcher_compilation.MatcherCompilation.is_needed():
        matcher_compilation.main()  # the service may be doing so: then this waits
    with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
        compile_kernels(Path(folder))


if __name__ == "__main__":
    main()
