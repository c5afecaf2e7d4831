"""Validation refuses the rows, and for the reasons, that single events are refused for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Schema
from tamis.encode.encoder import Encoder
from tamis.encode.validation import validate
from tamis.errors import EventError

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "n": {"kind": "integer", "low": 0, "high": 9},
            "s": "text",
            "at": "timestamp",
            "p.q": "decimal",
        },
        "event_types": {
            "a": {"n": "mandatory", "s": "optional multiple", "p.q": "optional"},
            "b": {"at": "mandatory", "n": "optional"},
        },
    }
)
EVENTS: list[dict[str, Any]] = [
    {"event_type": ["a"], "n": 1, "s": ["x", "y"], "p": {"q": 0.5}},
    {"event_type": ["a"], "n": 10},
    {"event_type": ["a"], "s": ["x"]},
    {"event_type": ["b"], "at": "2026-01-31"},
    {"event_type": ["b"], "at": "someday"},
    {"event_type": ["b"], "at": "2026-01-31", "s": ["x"]},
    {"event_type": ["a", "b"], "n": 3, "at": "2026-01-31", "s": []},
    {"event_type": ["c"], "n": 3},
    {"event_type": [], "n": 3},
    {"n": 3},
    {"event_type": ["a"], "n": 3, "m": 5},
    {"event_type": ["a"], "n": 3, "p": {"r": 5}},
    {"event_type": ["a"], "n": 3, "p": {"q": float("nan")}},
    {"event_type": ["a"], "n": 3, "empty": [None]},
    {"event_type": ["a"], "n": 3},
]


def reason(event: dict[str, Any]) -> str | None:
    try:
        SCHEMA.event(event)
    except EventError as why:
        return str(why)
    return None


def test_rows_and_reasons_are_those_of_single_events() -> None:
    table = pa.Table.from_pylist(
        [{name: None for each in EVENTS for name in each} | event for event in EVENTS]
    )
    validated = validate(Encoder(SCHEMA), table)
    reasons = [reason(event) for event in EVENTS]
    assert [(r.row, r.reason) for r in validated.refused] == [
        (row, why) for row, why in enumerate(reasons) if why is not None
    ]
    assert validated.rows.tolist() == [row for row, why in enumerate(reasons) if why is None]
    assert validated.table.equals(table.flatten().take(pa.array(validated.rows)))
    assert len(validated.refused) == 10


def test_all_good_all_refused_none_at_all_and_a_wrong_table() -> None:
    table = pa.table({"event_type": ["a", "a"], "n": [1, 2]})
    validated = validate(Encoder(SCHEMA), table)
    assert validated.table is table
    assert validated.rows.dtype == np.int64
    assert validated.rows.tolist() == [0, 1]
    assert validated.refused == []
    validated = validate(Encoder(SCHEMA), table.drop_columns("event_type"))
    assert len(validated) == 0
    assert [each.row for each in validated.refused] == [0, 1]
    empty = validate(Encoder(SCHEMA), pa.table({"n": pa.array([], pa.int64())}))
    assert (len(empty), empty.refused) == (0, [])
    twice = pa.table([pa.array([1]), pa.array([1])], names=["n", "n"])
    with pytest.raises(EventError, match="two columns are named 'n'"):
        validate(Encoder(SCHEMA), twice)
