"""What notifications a log must give, worked out row by row with the definition of truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.broker.matching.notification_files import NotificationFiles
from tamis.language.dialects import NATIVE
from tamis.language.dialects.registry import read
from tamis.model.semantics import satisfies
from tamis.model.times.moments import moment_text
from tamis.store.log import Log
from tamis.store.pack import CHANGES, EVENTS, moments

Pairs = list[tuple[int, Any]]


def expected_pairs(log: Log) -> Pairs:
    """Each event with each subscription that is live at its number and that it satisfies."""
    live: dict[Any, Any] = {}
    found: Pairs = []
    for section in log.boundaries(0, log.end):
        schema = log.schema_at(section.first)
        if section.kind == CHANGES:
            for row in log.changes(section.first, section.end, details=True).to_pylist():
                if row["kind"] in ("subscribe", "update"):
                    live[row["id"]] = read(
                        row["condition"], schema, None, row["language"] or NATIVE
                    )
                elif row["kind"] in ("cancel", "expire"):
                    live.pop(row["id"], None)
        elif section.kind == EVENTS:
            for first, table in log.events(section.first, section.end):
                times = map(moment_text, moments(table).tolist())
                for at, (text, now) in enumerate(
                    zip(table["json"].to_pylist(), times, strict=True)
                ):
                    event = schema.event(json.loads(text))
                    found += [
                        (first + at, id)
                        for id, condition in live.items()
                        if satisfies(condition, event, schema, now=now)
                    ]
    return sorted(found)


def found_pairs(folder: Path, ids: pa.DataType | None = None) -> Pairs:
    """The pairs in the files of a folder, in order; a pair that is there twice comes twice."""
    files = NotificationFiles(folder, ids or pa.int64())
    found: Pairs = []
    for pairs in files.read(-1, files.matched):
        assert pairs.numbers.tolist() == sorted(pairs.numbers.tolist())
        assert all(pairs.start <= number < pairs.end for number in pairs.numbers.tolist())
        found += zip(pairs.numbers.tolist(), pairs.ids.to_pylist(), strict=True)
    assert [number for number, _ in found] == sorted(number for number, _ in found)
    return sorted(found)
