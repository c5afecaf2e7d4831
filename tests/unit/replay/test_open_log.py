"""Logs with an open schema, or with dynamic attributes: lines of JSON and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.errors import SchemaError
from tamis.replay.event_source import EventChunk, RowLayout
from tamis.replay.live_subscriptions import LiveSubscriptions
from tamis.replay.pipeline import BatchPace, read_events
from tamis.store import Log, subscribe

CONDITIONS = {
    "first": "user.login = ann and n > 1",
    "second": "n is null",
    "third": 'labels.name contains bug or n like "%x"',
    "fourth": "later = true",
}
LINES: list[Any] = [
    {"user": {"login": "ann"}, "n": 2},
    {"user": {"login": "ann"}, "n": "2x"},
    {"labels": [{"name": "bug"}], "n": None},
    {"n": 1, "later": True},
    {"n": 1, "unheard": 1e999},
    {"n": 2**63},
    [1],
    {"n": 1, "deep": [{"text": "\ud800"}]},
]


def _log(folder: Path, schema: Schema) -> Log:
    log = Log.create(folder, schema)
    assert Log.open(folder).schema_at() == schema
    ids = list(CONDITIONS)
    log.change(subscribe(ids[:3], [CONDITIONS[id] for id in ids[:3]]))
    texts = [*map(json.dumps, LINES), '{"n": NaN}', "{nonsense"]
    log.publish(pa.table({"json": texts}))
    log.publish(pa.table({"n": [5, None], "user": [{"login": "ann"}, {"login": None}]}))
    log.change(subscribe(ids[3:], [CONDITIONS[id] for id in ids[3:]]))
    log.publish(pa.table({"json": [json.dumps(LINES[3])]}))
    return log


def _pairs(log: Log, live: LiveSubscriptions) -> tuple[list[tuple[int, str]], list[int]]:
    """The pairs of a log, and the sequence numbers of refused events."""
    live.take(log, log.end)
    layout = RowLayout(document=json.dumps(log.schema))
    chunks = (
        EventChunk(np.arange(first, first + table.num_rows), table, layout)
        for first, table in log.events(0, log.end)
    )
    pairs: list[tuple[int, str]] = []
    refused: list[int] = []
    for events in read_events(chunks, live.encoder, BatchPace()):
        found = live.match(events.valid, events.numbers)
        pairs += zip(events.numbers[found.rows].tolist(), found.ids.to_pylist(), strict=True)
        refused += [int(events.chunk.numbers[row]) for row, _ in events.valid.refused]
        assert len(events.raw_texts()) == len(events.valid.refused)
    return sorted(pairs), refused


RIGHT = [(3, "first"), (4, "third"), (5, "second"), (5, "third"), (13, "first"), (14, "second")]


def test_a_log_with_an_open_schema_is_replayed(tmp_path: Path) -> None:
    log = _log(tmp_path / "log", Schema.open())
    pairs, refused = _pairs(log, LiveSubscriptions(Schema.open(), "text"))
    assert pairs == [*RIGHT, (16, "fourth")]
    assert refused == [7, 8, 9, 10, 11, 12]  # whatever conditions mention


def test_a_version_and_later_subscriptions_know_different_attributes(tmp_path: Path) -> None:
    log = _log(tmp_path / "log", Schema.open())
    base = Engine()
    base.subscribe(CONDITIONS["first"], id="first")
    base.subscribe(CONDITIONS["second"], id="second")
    base.save(tmp_path / "version")
    live = LiveSubscriptions(Schema.open(), "text", Engine.open(tmp_path / "version"), 2)
    pairs, refused = _pairs(log, live)
    assert pairs == [*RIGHT, (16, "fourth")]
    assert refused == [7, 8, 9, 10, 11, 12]


def test_a_declared_schema_may_have_dynamic_attributes(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {
            "attributes": {"user.login": "text", "n": "dynamic", "labels.name": "text"}
            | {"later": "boolean"},
            "event_types": {
                "event": {"user.login": "optional", "n": "optional", "later": "optional"}
                | {"labels.name": "optional multiple"}
            },
            "unknown": "ignore",
        }
    )
    log = _log(tmp_path / "log", schema)
    pairs, refused = _pairs(log, LiveSubscriptions(schema, "text"))
    assert pairs == [*RIGHT, (16, "fourth")]
    assert refused == [8, 9, 11, 12]  # only values of declared attributes


def test_a_log_stays_open_or_declared(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", Schema.open())
    log.append(schema=Schema.open().mentioning(["a"]))
    with pytest.raises(SchemaError, match="changed"):
        log.append(schema=Schema.from_dict({"attributes": {"a": "text"}}))
