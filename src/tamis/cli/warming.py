"""Compiling the matcher's loops before Spark's workers need them, in a process of its own.

Compiled code is kept on disk. Were it not there yet, each worker would compile all of it for
itself, at the same time and each on one core. A process that does with a small log just what a
worker does with a large one leaves all of it behind.
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
from tamis.cli.auctioneer import BROKEN, wishes
from tamis.spark.stream.log_source import TamisDataSource
from tamis.store import Log, Shard, Versions, cancel, describe, subscribe

_BASE, _ADDED, _LOTS = 3_000, 300, 600


class Warming:
    """The process; in a session of its own, so that Ctrl-C is not meant for it."""

    def __init__(self, said: Path) -> None:
        said.parent.mkdir(parents=True, exist_ok=True)
        with said.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tamis.cli.warming"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Until it is done. Should it have failed, workers compile for themselves."""
        self._process.wait()

    def stop(self) -> None:
        """It is not needed any more."""
        self._process.terminate()
        self._process.wait()


def warm(folder: Path) -> int:
    """What a worker does: an engine that is mapped, changes since, lots; how many answers."""
    start = datetime.now(UTC)
    made = workload.make("auctions", 0, start=start)
    log = Log.create(folder / "log", made.schema, ids="int64")
    texts = wishes(0, start)[: _BASE + _ADDED]
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
    """Of the process."""
    with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
        warm(Path(folder))


if __name__ == "__main__":
    main()
