"""What a log means: the notifications that it must give, by the definition of truth."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from pyarrow import parquet

from tamis.language import parse
from tamis.model.semantics import satisfies
from tamis.replay.manifests import manifests
from tamis.replay.parts import NOTIFICATIONS
from tamis.store.log import Log

Pair = tuple[int, int]


def published(log: Log) -> dict[int, dict[str, Any]]:
    """All events by number: their JSON, source and id."""
    return {
        first + row: each
        for first, table in log.events(log.begin)
        for row, each in enumerate(table.to_pylist())
    }


def expected(log: Log) -> set[Pair]:
    """Every event with every subscription that is live at its number and that it satisfies."""
    rows = {each["sequence"]: each for each in log.changes(0, details=True).to_pylist()}
    events = published(log)
    live: dict[int, Any] = {}
    found: set[Pair] = set()
    for number in range(log.end):
        schema = log.schema_at(number)
        if number in events:
            event = schema.event(json.loads(events[number]["json"]))
            found |= {(number, id) for id, each in live.items() if satisfies(each, event, schema)}
        elif number in rows:
            row = rows[number]
            if row["kind"] in ("subscribe", "update"):
                live[row["id"]] = parse(row["condition"], schema)
            elif row["kind"] in ("cancel", "expire"):
                live.pop(row["id"], None)
    return found


def written(folder: Path) -> Counter[Pair]:
    """The notifications in the files of a folder, and how often each is there."""
    found: Counter[Pair] = Counter()
    for manifest in manifests(folder):
        for part in manifest["parts"]:
            if part["folder"] == NOTIFICATIONS:
                table = parquet.read_table(folder / NOTIFICATIONS / part["name"])
                columns = [table[name].to_pylist() for name in ("sequence", "subscription")]
                found.update(zip(*columns, strict=True))
    return found
