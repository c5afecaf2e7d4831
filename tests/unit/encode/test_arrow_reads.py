"""A column read at once has the values of its rows, each read as an event."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.encode.tables.arrow_reads import TableReads

SCHEMA = Schema.from_dict(
    {
        "domains": {"period": {"kind": "enumerated", "values": ["XVI", "XVII"]}},
        "attributes": {
            "n": "integer",
            "price": "decimal",
            "title": "text",
            "sold": "boolean",
            "at": "timestamp",
            "period": "period",
            "blob": "opaque",
            "blobs": "opaque",
            "seller.name": "text",
            "tags": "text",
        },
        "event_types": {
            "lot": {
                **dict.fromkeys(
                    ("n", "price", "title", "sold", "at", "period", "blob", "seller.name"),
                    "optional",
                ),
                "tags": "optional multiple",
                "blobs": "optional multiple",
            },
            "note": {"title": "optional"},
        },
        "default_event_type": "lot",
        "unknown": "ignore",
    }
)
MOMENT = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - a time without an offset is UTC
COLUMNS: dict[str, Any] = {
    "event_type": ["lot", None, "note", "lot"],
    "n": [1, None, 3, 4],
    "price": pa.array([1, None, 3, -0.0], pa.float32()),
    "title": pa.array(["oak", "ash", None, "oak"]).dictionary_encode(),
    "sold": [True, False, None, None],
    "at": pa.array([MOMENT, None, MOMENT, MOMENT], pa.timestamp("ms")),
    "period": ["XVI", "XVII", None, "XVI"],
    "blob": [{"a": [1]}, None, {"a": []}, {"a": None}],
    "blobs": [[b"x", b"x"], [], None, [b"y"]],
    "seller": [{"name": "Ann"}, None, {"name": None}, {"name": "Bob"}],
    "tags": [["a", "b", "a"], [], None, ["c", None]],
}


@pytest.mark.parametrize("name", SCHEMA.attributes)
@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [2], [3, 1], []])
def test_columns_are_those_of_the_events(name: str, rows: list[int]) -> None:
    engine = Engine(SCHEMA)
    batch = engine.encode(pa.table(COLUMNS))
    wanted = [batch.raw_values(row).get(name, ()) for row in rows]
    assert batch.read(name, rows) == wanted
    part = batch[1:4]
    assert part.read(name, [0, 2]) == [batch.raw_values(row).get(name, ()) for row in (1, 3)]
    assert isinstance(batch._raw, TableReads)
    assert batch.read("later", rows) == [()] * len(rows), "of a later schema"


def test_values_of_dicts() -> None:
    batch = Engine(SCHEMA).encode([{"n": 1, "tags": ["a", "b"]}, {"title": "oak"}])
    assert batch.read("tags", [0, 1]) == [("a", "b"), ()]
    assert batch[1:2].read("title", [0]) == [("oak",)]
