"""Validated events give every engine of the schema the batch that it would make itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.encode.batch import EventBatch
from tamis.encode.encoder import Encoder
from tamis.encode.validation import validate
from tamis.errors import EventError

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "n": {"kind": "integer", "low": 0, "high": 9},
            "s": "text",
            "t": "text",
            "p.q": "decimal",
        },
        "event_types": {
            "a": {"n": "optional", "s": "optional multiple", "t": "optional", "p.q": "optional"}
        },
    }
)
EVENTS: list[dict[str, Any]] = [
    {"n": 1, "s": ["x", "y"], "t": "old", "p": {"q": 0.5}},
    {"n": 10, "s": ["only here"], "t": None, "p": None},
    {"n": 3, "s": None, "t": "oak", "p": {"q": None}},
    {"n": None, "s": ["y", "y"], "t": "new", "p": {"q": 2.0}},
    {"n": 5, "s": [], "t": "old", "p": {"q": float("nan")}},
]
CONDITIONS = ["s contains x", 't < "oak"', 't like "o%"', "p.q > 1 and n missing", "s exists"]


def _engine(*conditions: str) -> Engine:
    engine = Engine(SCHEMA)
    for number, condition in enumerate(conditions):
        engine.subscribe(condition, id=number)
    return engine


def _plain(batch: EventBatch) -> Any:
    columns = {at: (each.codes.tolist(), each.rows) for at, each in batch.columns.items()}
    return [
        {at: [code for code, row in _rows(*each) if row == event] for at, each in columns.items()}
        for event in range(len(batch))
    ]


def _rows(codes: list[int], rows: Any) -> list[tuple[int, int]]:
    return list(zip(codes, range(len(codes)) if rows is None else rows.tolist(), strict=True))


def test_rows_that_are_refused_leave_no_trace() -> None:
    valid = validate(Encoder(SCHEMA), pa.Table.from_pylist(EVENTS))
    assert (valid.rows.tolist(), [row for row, _ in valid.refused]) == ([0, 2, 3], [1, 4])
    assert "10" in valid.refused[0].reason
    assert [each["n"] for each in valid.table.to_pylist()] == [1, 3, None]
    n = Encoder(SCHEMA).positions["n"]
    assert valid.columns[n].codes.tolist() == [1, 3]
    assert valid.columns[n].rows is not None


@pytest.mark.parametrize("which", [[0, 1, 2, 3, 4], [0, 2, 3], [1, 4], []])
def test_each_engine_gets_what_it_would_encode_itself(which: list[int]) -> None:
    kinds = pa.Table.from_pylist(EVENTS).schema
    table = pa.Table.from_pylist([EVENTS[row] for row in which], kinds)
    engines = [_engine(), _engine(*CONDITIONS), _engine(*reversed(CONDITIONS))]
    for first in engines:
        valid = validate(first.encoder, table)
        for engine in engines:
            own = engine.encode(valid.table)
            batch = valid.batch(engine.encoder)
            assert _plain(batch) == _plain(own)
            assert list(engine.match_batch(batch)) == list(engine.match_batch(own))


def test_labels_that_came_later_are_heeded() -> None:
    engine = _engine()
    valid = validate(engine.encoder, pa.table({"t": ["new", "oak"]}))
    engine.subscribe('t = "oak"', id=1)
    assert list(engine.match_batch(valid.batch(engine.encoder))) == [[], [1]]


def test_an_engine_of_another_schema_validates_for_itself() -> None:
    other = Schema.from_dict({"attributes": {"t": "text", "n": "integer"}, "unknown": "refuse"})
    engine = Engine(other)
    engine.subscribe("n = 3", id=1)
    valid = validate(Encoder(SCHEMA), pa.table({"n": [3, 4]}))
    assert list(engine.match_batch(valid.batch(engine.encoder))) == [[1], []]
    valid = validate(Encoder(SCHEMA), pa.table({"s": [["x"]]}))
    with pytest.raises(EventError, match="s"):
        valid.batch(engine.encoder)


def test_partial_events_may_lack_what_the_schema_demands() -> None:
    schema = Schema.from_dict(
        {
            "attributes": {"n": {"kind": "integer", "low": 0, "high": 9}, "t": "text"},
            "event_types": {"a": {"n": "mandatory", "t": "mandatory"}},
        }
    )
    table = pa.table({"n": [1, 10, 2]})
    valid = validate(Encoder(schema), table, partial=True)
    assert (valid.rows.tolist(), [row for row, _ in valid.refused]) == ([0, 2], [1])
    assert len(validate(Encoder(schema), table)) == 0
    assert valid.rows.dtype == np.int64
