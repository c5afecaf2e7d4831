"""A typed schema from a sample of events."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tamis.errors import EventError, SchemaError
from tamis.model.schema import Schema

EVENTS: list[dict[str, Any]] = [
    {
        "n": 1,
        "d": 1,
        "b": True,
        "t": "2026-01-31",
        "x": "oak",
        "m": 1,
        "big": 2**53 + 1,
        "none": None,
        "tags": ["a", "b"],
        "user": {"id": 1, "org": {"name": "x"}},
        "items": [{"sku": "A", "parts": [{"n": 1}]}, {"sku": "B"}],
        "either": {"inner": 1},
        "huge": 2**70,
        "empty": {},
        "bad`name": 1,
    },
    {
        "n": None,
        "d": 1.5,
        "b": None,
        "t": "2026-01-31T12:00:00Z",
        "x": "2026-01-31",
        "m": "1",
        "big": 0.5,
        "tags": "c",
        "user": {"id": 2**40},
        "items": [],
        "either": 5,
    },
]
RIGHT = {
    "n": "integer",
    "d": "decimal",
    "b": "boolean",
    "t": "timestamp",
    "x": "text",
    "m": "dynamic",
    "big": "dynamic",
    "tags": "text",
    "user.id": "integer",
    "user.org.name": "text",
    "items.sku": "text",
    "items.parts.n": "integer",
    "huge": "opaque",
    "empty": "opaque",
    "either": "dynamic",
}


def test_each_attribute_has_the_domain_of_all_its_values() -> None:
    schema = Schema.infer(EVENTS, "order")
    document = schema.to_dict()
    assert document["attributes"] == RIGHT
    uses = document["event_types"]["order"]
    assert {name for name, use in uses.items() if use == "optional multiple"} == {
        "tags",
        "items.sku",
        "items.parts.n",
    }
    assert document["unknown"] == "ignore"
    for event in EVENTS:
        schema.event(event)
    assert schema.event(EVENTS[0]).values["items.sku"] == ("A", "B")


def test_lines_of_json_tables_and_frames() -> None:
    plain = [{"a": 1, "b": {"c": "x"}}, {"a": 2.5, "b": {"c": None}}]
    right = Schema.infer(plain)
    lines = "\n".join(map(json.dumps, plain))
    for given in (lines, lines.encode(), lines.splitlines(), pa.Table.from_pylist(plain)):
        assert Schema.infer(given) == right
    frame = pytest.importorskip("pandas").DataFrame(
        {"at": [datetime(2026, 1, 31, tzinfo=UTC)], "n": [5]}
    )
    found = Schema.infer(frame).to_dict()["attributes"]
    assert found == {"at": "timestamp", "n": "integer"}
    mixed = pytest.importorskip("pandas").DataFrame({"m": [1, "one"]})
    with pytest.raises(EventError, match="give its rows as dicts"):
        Schema.infer(mixed)
    rows = mixed.to_dict("records")
    assert Schema.infer(rows).to_dict()["attributes"] == {"m": "dynamic"}


def test_event_types_are_those_of_the_sample() -> None:
    schema = Schema.infer([{"event_type": "push", "n": 1}, {"event_type": ["fork", "push"]}])
    assert list(schema.event_types) == ["push", "fork"]
    assert schema.event({"event_type": "fork", "n": 5}).values["n"] == (5,)
    with pytest.raises(SchemaError, match="event 1: 'event_type' is not text"):
        Schema.infer([{}, {"event_type": 5}])


@pytest.mark.parametrize("wrong", [5, {"a": 1}, [5], ["{"], "nonsense"])
def test_what_is_no_sample_is_refused(wrong: object) -> None:
    with pytest.raises(EventError):
        Schema.infer(wrong)
