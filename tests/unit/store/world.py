"""A small schema, and logs to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.store import Log, Shard, Versions, describe
from tests.schemas import one_type

SCHEMA: dict[str, Any] = one_type("offer", {"price": "integer!", "name": "text"})


def fresh(folder: Path, ids: str = "text") -> Log:
    """A new log in a folder of its own."""
    return Log.create(folder / "log", SCHEMA, ids)


def prices(*given: int) -> pa.Table:
    """Events that have a price."""
    return pa.table({"price": pa.array(given, pa.int64())})


def published(log: Log, start: int = 0, end: int | None = None) -> list[tuple[int, Any]]:
    """The sequence number and the price of all events in a range."""
    return [
        (first + at, row["price"])
        for first, table in log.events(start, end)
        for at, row in enumerate(table.to_pylist())
    ]


def files(log: Log) -> list[str]:
    """The names of all files among the segments, of segments or not."""
    return sorted(each.name for each in (log.folder / "segments").iterdir())


def publish_version(
    versions: Versions,
    sequence: int,
    schema: dict[str, Any] = SCHEMA,
    ids: str = "text",
    shards: int = 0,
    subscriptions: int = 1,
) -> None:
    """Publish a version with so many empty shards."""
    with versions.publish(sequence) as folder:
        made = [Shard(f"shard-{shard:04d}", subscriptions, 1) for shard in range(shards)]
        for each in made:
            (folder / each.folder).mkdir()
        describe(folder, sequence=sequence, schema=schema, ids=ids, shards=made)
