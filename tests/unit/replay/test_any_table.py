"""Every event that a log accepts is matched or dead, whatever the Arrow table looks like."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.engine import Engine
from tamis.errors import StoreError
from tamis.model.schema import Schema
from tamis.replay.log_events import LogEvents
from tamis.replay.pipeline import BatchPace, match_with
from tamis.store import Log

SCHEMA: dict[str, Any] = {
    "attributes": {
        "price": "decimal",
        "number": "integer",
        "name": "text",
        "open": "boolean",
        "at": "timestamp",
        "picture": "opaque",
        "tags": "text",
    },
    "event_types": {
        "offer": {
            "price": "mandatory",
            "number": "optional",
            "name": "optional",
            "open": "optional",
            "at": "optional",
            "picture": "optional",
            "tags": "optional multiple",
        }
    },
}
NAMES = [*SCHEMA["attributes"], "json", "event_type", "odd", "price.deep"]
_LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5) | st.just('{"price": 3}'),
    pa.large_string(): st.text(max_size=5) | st.just('{"price": "x"}'),
    pa.string_view(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.timestamp("us", "UTC"): st.datetimes().map(lambda moment: moment.replace(tzinfo=UTC)),
    pa.timestamp("s"): st.integers(-(2**55), 2**55),
    pa.date32(): st.dates(),
    pa.time64("us"): st.times(),
    pa.duration("us"): st.integers(-(2**63), 2**63 - 1),
    pa.decimal128(10, 2): st.decimals(-99, 99, places=2),
    pa.null(): st.none(),
}


@st.composite
def arrays(draw: st.DrawFn, rows: int) -> pa.Array:
    kind = draw(st.sampled_from(list(_LEAVES)))
    values = draw(st.lists(st.none() | _LEAVES[kind], min_size=rows, max_size=rows))
    form = draw(st.sampled_from(["plain", "plain", "list", "struct", "coded", "runs", "map"]))
    leaf = pa.array(values, kind)
    if form == "list":
        return pa.array(
            [None if value is None else [value, value] for value in values], pa.list_(kind)
        )
    if form == "struct":
        return pa.StructArray.from_arrays([leaf, leaf], names=["deep", "x"])
    if form == "coded" and not pa.types.is_null(kind) and not pa.types.is_string_view(kind):
        return leaf.dictionary_encode()
    if form == "runs" and not (pa.types.is_string_view(kind) or pa.types.is_null(kind)):
        return pc.run_end_encode(leaf)
    if form == "map":
        entries = [None if value is None else [("k", value)] for value in values]
        return pa.array(entries, pa.map_(pa.string(), kind))
    return leaf


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 4))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    made = {name: draw(arrays(rows)) for name in names}
    if draw(st.booleans()) and names != ["json"]:
        made["price"] = pa.array(np.arange(rows, dtype=np.float64))
    return pa.table(made)


def _walked(table: pa.Table) -> tuple[set[int], dict[int, str], int]:
    """The numbers of events that were matched, the dead ones with their reasons, and the end."""
    schema = Schema.from_dict(SCHEMA)
    with tempfile.TemporaryDirectory() as place, Engine(schema) as engine:
        engine.subscribe("price >= 0 or price < 0", id="all")
        log = Log.create(f"{place}/log", schema)
        log.publish(table)
        source = LogEvents(str(log.folder), ((0, log.end),))
        matched: set[int] = set()
        dead: dict[int, str] = {}
        for events, answer in match_with(engine, source.chunks(0), BatchPace()):
            matched |= {*events.numbers[answer.events].tolist()}
            refused = events.valid.refused
            texts = events.raw_texts()
            assert len(texts) == len(refused)
            numbers = events.chunk.numbers[[row for row, _ in refused]].tolist()
            dead |= dict(zip(numbers, (each.reason for each in refused), strict=True))
        return matched, dead, log.end


@settings(max_examples=300, deadline=None)
@given(tables())
def test_every_event_is_matched_or_dead(table: pa.Table) -> None:
    try:
        matched, dead, end = _walked(table)
    except StoreError:
        return  # refused when it was published
    assert matched | {*dead} == {*range(end)}
    assert not matched & {*dead}
    assert all(dead.values())


@pytest.mark.parametrize(
    "table",
    [
        {"json": [5]},
        {"json": pa.array([{"price": 1}])},
        {"json": pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())},
        {"price": [1.0], "$id": [3]},
        {"price": [1.0], "$ids": ["x"]},
        {"$id": ["x"]},
    ],
)
def test_tables_that_no_reader_could_read_are_refused(table: Any, tmp_path: Any) -> None:
    log = Log.create(tmp_path / "log", SCHEMA)
    with pytest.raises(StoreError):
        log.publish(table)
    assert log.end == 0


def test_reserved_columns_are_not_attributes() -> None:
    moment = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    for given_ in ({"price": [1.0]}, {"json": ['{"price": 1}']}):
        table = pa.table(
            {**given_, "$source": ["a"], "$id": ["b"], "$time": moment, "$envelope": ["{}"]}
        )
        assert _walked(table) == ({0}, {}, 1)
