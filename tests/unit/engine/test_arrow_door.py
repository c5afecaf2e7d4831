"""Arrow data from outside is checked before any kernel reads it. See also tests/fuzzing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.engine import Engine
from tamis.errors import EventError, SubscriptionError
from tamis.model.schema import Schema


@pytest.fixture
def engine() -> Engine:
    engine = Engine(
        Schema.from_dict(
            {
                "attributes": {
                    "price": "decimal",
                    "number": "integer",
                    "name": "text",
                    "tags": "text",
                    "open": "boolean",
                },
                "event_types": {
                    "offer": {
                        "price": "optional",
                        "number": "optional",
                        "name": "optional",
                        "tags": "optional multiple",
                        "open": "optional",
                    }
                },
            }
        )
    )
    engine.subscribe('price < 5 or name starts with "a" or tags = oak or number > 2', id="a")
    return engine


def test_offsets_that_lead_out_of_the_buffer(engine: Engine) -> None:
    for middle in (10_000_000, -4, 2**31 - 1):  # Arrow itself looks at the first and the last
        offsets = np.array([0, middle, 3], np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")]
        texts = pa.Array.from_buffers(pa.string(), 2, buffers)
        with pytest.raises(EventError, match="the table is damaged"):
            engine.match_batch(pa.table({"name": texts}))


def test_codes_outside_their_dictionary(engine: Engine) -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["a", "b"]), safe=False)
    with pytest.raises(EventError, match="the table is damaged"):
        engine.match_batch(pa.table({"name": codes}))


_NULLS = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.nulls(1))
_LISTS = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array([["a"]]))


@pytest.mark.parametrize("column", [_NULLS, _LISTS], ids=["nulls", "lists"])
@pytest.mark.parametrize("name", ["name", "unknown"])
def test_types_on_which_arrow_itself_crashes(engine: Engine, name: str, column: pa.Array) -> None:
    for given in (column, pa.StructArray.from_arrays([column], ["inner"])):
        with pytest.raises(EventError, match=f"the column '{name}' is .* a type that is not read"):
            engine.match_batch(pa.table({name: given}))


def test_unions_and_views_on_which_arrow_itself_crashes(engine: Engine) -> None:
    arrow: Any = pa
    kinds = pa.array([0, 1], pa.int8())
    union = arrow.UnionArray.from_sparse(kinds, [pa.array([1, 2]), pa.array(["a", "b"])])
    valid = pa.py_buffer(bytes([1]))
    inner = pa.Array.from_buffers(
        pa.struct([("inner", union.type)]), 2, [valid], children=[union]
    )  # its second row is null
    with pytest.raises(EventError, match="a type that is not read"):
        engine.match_batch(pa.table({"deep": inner}))
    # A null view that leads astray: nobody checks it, and a cast follows it.
    views = np.array([[1 | 97 << 32, 0], [50, 2**40]], np.int64)
    texts = pa.Array.from_buffers(pa.string_view(), 2, [valid, pa.py_buffer(views)])
    found = engine.match_batch(pa.table({"name": texts}))
    assert [list(each) for each in found] == [["a"], []]


def test_a_damaged_map_in_a_record_batch(engine: Engine) -> None:
    """Arrow ends the process if it makes a column of a map whose keys are nulls."""
    column = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("name", column.type)])) as writer:
        writer.write_table(pa.table({"name": column}))
    data = sink.getvalue().to_pybytes()
    found = 0
    for at in range(data.index(b"key") + 100):  # the type of the keys is one byte of the schema
        changed = data[:at] + b"\x01" + data[at + 1 :]
        try:
            batch = pa.ipc.open_stream(pa.py_buffer(changed)).read_next_batch()
        except (pa.ArrowException, OSError, KeyError, ValueError, NotImplementedError):
            continue
        kind: Any = batch.schema.types[0]
        if pa.types.is_map(kind) and pa.types.is_null(kind.key_type):
            found += 1
            with pytest.raises(EventError, match="a type that is not read"):
                engine.match_batch(batch)
    assert found


def test_types_that_python_does_not_know(engine: Engine) -> None:
    nanos: Any = pa
    column = nanos.array([(1, 2, 3)], nanos.month_day_nano_interval())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("name", column.type)])) as writer:
        writer.write_table(pa.table({"name": column}))
    data = sink.getvalue().to_pybytes()
    for at in range(len(data)):  # the unit of the interval is one number in the schema
        if data[at : at + 2] == b"\x02\x00":
            changed = data[:at] + b"\x00" + data[at + 1 :]
            try:
                table = pa.ipc.open_stream(pa.py_buffer(changed)).read_all()
            except (pa.ArrowException, OSError, KeyError, ValueError, NotImplementedError):
                continue
            if table.schema.field("name").type.id == 21:
                break
    with pytest.raises(EventError, match="a type that is not read"):
        engine.match_batch(table)


def test_rows_that_have_no_bytes(engine: Engine) -> None:
    with pytest.raises(EventError, match="8,589,934,592 rows in 0 bytes; split it"):
        engine.match_batch(pa.table({"name": pa.nulls(2**33)}))


def test_decimals_that_are_too_large(engine: Engine) -> None:
    wide = pa.Array.from_buffers(pa.decimal128(3, 1), 1, [None, pa.py_buffer(b"\x7f" * 16)])
    with pytest.raises(EventError):
        engine.match_batch(pa.table({"price": wide}))


@pytest.mark.parametrize("given", [np.array(3), 5, None, b"x"])
def test_what_has_no_events(engine: Engine, given: Any) -> None:
    with pytest.raises(
        EventError, match="expected a list of events, an Arrow table or a DataFrame"
    ):
        engine.match_batch(given)


def test_subscriptions_with_offsets_that_lead_astray(engine: Engine) -> None:
    offsets = np.array([0, 10_000_000, 3], np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")]
    texts = pa.Array.from_buffers(pa.string(), 2, buffers)
    table = pa.table({"id": pa.array([1, 2]), "condition": texts})
    for given in (table, pa.concat_tables([table, table.slice(1)])):  # chunks are joined
        with pytest.raises(SubscriptionError, match="the table is damaged"):
            engine.subscribe_table(given)
    assert len(engine) == 1
