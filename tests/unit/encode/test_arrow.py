"""The Arrow door against the dict door: the same events give the same codes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine, Schema
from tamis.encode.batch import EventBatch
from tamis.encode.codes import timestamp_code
from tamis.encode.columns import column_codes
from tamis.encode.encoder import Encoder
from tamis.encode.validation import validate
from tamis.errors import EventError
from tamis.model.domain import parse_timestamp
from tamis.model.event import Event
from tests.unit.engine.world import (
    COLUMNS,
    MOMENTS,
    REALS,
    SCHEMA,
    TEXTS,
    WHOLES,
    conditions,
    events,
    expected,
    fill,
)

FLAT = Schema.from_dict(
    {
        "attributes": {
            "n": "integer",
            "q": {"kind": "integer", "low": 0, "high": 100},
            "d": "decimal",
            "s": "text",
            "b": "boolean",
            "at": "timestamp",
            "c": {"kind": "enumerated", "values": ["a", "ab", "b"]},
            "h": {"kind": "hierarchy", "tree": {"a": {"ab": {}}, "b": {}}},
            "o": "opaque",
        },
        "event_types": {
            "event": dict.fromkeys(("n", "q", "d", "s", "b", "at", "c", "h"), "optional multiple")
            | {"o": "optional"}
        },
    }
)
ARRAYS: dict[str, tuple[str, list[Any], pa.DataType]] = {
    **{
        f"{kind}": ("q", [0, 5, 100, 5, 7], getattr(pa, kind)())
        for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    **{
        f"{kind} as decimal": ("d", [0, 5, 100, 5, 7], getattr(pa, kind)())
        for kind in ("int8", "int64", "uint8", "uint64")
    },
    **{
        f"{kind} as decimal": ("d", [0.0, -0.0, -1.5, 2.5, 1024.0], getattr(pa, kind)())
        for kind in ("float16", "float32", "float64")
    },
    "int64 to its ends": ("n", list(WHOLES), pa.int64()),
    "uint64 to the end": ("n", [0, 2**63 - 1], pa.uint64()),
    "whole float64": ("n", [5.0, -0.0, -(2.0**63), 2.0**62], pa.float64()),
    "float64 without sign": ("d", [0.0, 1.5, 1e308], pa.float64()),
    "float64 to its ends": ("d", list(REALS), pa.float64()),
    "decimal128": ("d", [Decimal("0.10"), Decimal("-7.25"), Decimal("9.99")], pa.decimal128(5, 2)),
    "decimal128 as integer": ("n", [Decimal(5), Decimal(2**53 + 1)], pa.decimal128(20, 0)),
    "decimal256": ("d", [Decimal("0.1"), Decimal("1234567.8")], pa.decimal256(60, 20)),
    "bool": ("b", [True, False, True], pa.bool_()),
    "string": ("s", list(TEXTS), pa.string()),
    "large_string": ("s", list(TEXTS), pa.large_string()),
    "string_view": ("s", list(TEXTS), pa.string_view()),
    "names": ("c", ["a", "b", "ab", "a"], pa.string()),
    "names in a hierarchy": ("h", ["a", "b", "ab", "a"], pa.large_string()),
    "timestamp as text": ("at", ["2026-01-31", "2026-01-31T12:00:00.5+02:00"], pa.string()),
    "date32": ("at", [date(1, 1, 1), date(2026, 1, 31), date(9999, 12, 31)], pa.date32()),
    "date64": ("at", [date(1969, 12, 31), date(2026, 1, 31)], pa.date64()),
    "timestamp[us]": ("at", list(MOMENTS), pa.timestamp("us", "UTC")),
    "timestamp[us] naive": ("at", [m.replace(tzinfo=None) for m in MOMENTS], pa.timestamp("us")),
    "timestamp[ms] offset": (
        "at",
        [datetime(2026, 1, 1, tzinfo=UTC)],
        pa.timestamp("ms", "+02:00"),
    ),
    "timestamp[s]": ("at", [datetime(1, 1, 1), datetime(1969, 1, 1)], pa.timestamp("s")),  # noqa: DTZ001
    "timestamp[ns]": ("at", [datetime(1969, 1, 1, 0, 0, 0, 7)], pa.timestamp("ns")),  # noqa: DTZ001
    "binary": ("o", [b"x", b""], pa.binary()),
    "a struct that is an attribute": ("o", [{"k": 1}, {"k": 2}], pa.struct([("k", pa.int64())])),
    "a list that is one value": ("o", [[1], []], pa.list_(pa.int64())),
}


def sets(batch: EventBatch) -> list[dict[int, set[int]]]:
    """Per event and attribute the set of codes, by pairs; columns must say the same."""
    starts, attribute, code = batch.pairs
    found: list[dict[int, set[int]]] = [{} for _ in range(len(batch))]
    for event in range(len(batch)):
        part = slice(int(starts[event]), int(starts[event + 1]))
        for at, value in zip(attribute[part].tolist(), code[part].tolist(), strict=True):
            found[event].setdefault(at, set()).add(value)
    by_columns: list[dict[int, set[int]]] = [{} for _ in range(len(batch))]
    for at, (codes, rows) in batch.columns.items():
        places = range(len(batch)) if rows is None else rows.tolist()
        for event, value in zip(places, codes.tolist(), strict=True):
            by_columns[event].setdefault(at, set()).add(value)
    assert by_columns == found
    return found


def both_doors(engine: Engine, table: pa.Table) -> None:
    """Both doors give the same codes."""
    assert sets(engine.encode(table)) == sets(engine.encode(table.to_pylist()))


def flat_engine() -> Engine:
    engine = Engine(FLAT)
    engine.subscribe('s = "ab" or s > "b" or s starts with "a\\U00000000"')
    return engine


def shapes(values: list[Any], kind: pa.DataType) -> dict[str, pa.Array | pa.ChunkedArray]:
    """The same values in every shape that Arrow has for a column."""
    plain = pa.array(values, kind)
    holed = pa.array([None, *values, None, values[0]], kind)
    lists = [values, None, [], values[:1], [None, values[-1]]]
    made: dict[str, Any] = {
        "plain": plain,
        "with nulls": holed,
        "sliced": pa.array([values[-1], None, *values, values[0]], kind)[2:-1],
        "sliced into nulls": holed[1:],
        "chunked": pa.chunked_array([plain, holed[:0], holed, plain[1:]]),
        "no chunks": pa.chunked_array([], kind),
        "all null": pa.nulls(2, kind),
        "empty": plain[:0],
    }
    if not pa.types.is_nested(kind):
        made |= {
            "list": pa.array(lists, pa.list_(kind)),
            "sliced list": pa.array([*lists, values], pa.list_(kind))[1:],
            "large list": pa.array(lists, pa.large_list(kind))[1:],
            "fixed size list": pa.array([values[:1] * 2, None, values[-1:] * 2], pa.list_(kind, 2)),
            "sliced fixed size list": pa.array(
                [values[:1] * 2, None, [None, values[-1]]], pa.list_(kind, 2)
            )[1:],
            "list of nothing": pa.array([[], None], pa.list_(kind)),
        }
    return made


@pytest.mark.parametrize("case", ARRAYS)
def test_every_type_in_every_shape_reads_as_its_values(case: str) -> None:
    name, values, kind = ARRAYS[case]
    engine = flat_engine()
    for shape, column in shapes(values, kind).items():
        if name == "o" and "list" in shape:
            continue  # several opaque values are no one opaque value
        both_doors(engine, pa.table({name: column}))


@pytest.mark.parametrize("case", ["string", "large_string", "names", "timestamp as text", "int32"])
def test_dictionary_arrays_read_as_their_values(case: str) -> None:
    name, values, kind = ARRAYS[case]
    encoded = pa.array([values[0], None, *values], kind).dictionary_encode()
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), pa.array([values[0], None]))
    engine = flat_engine()
    for column in (encoded, encoded[1:], pa.chunked_array([encoded, encoded[2:]]), hidden):
        both_doors(engine, pa.table({name: column}))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3]), encoded[:3])
    both_doors(engine, pa.table({name: lists}))


@settings(max_examples=100)
@given(values=st.lists(st.decimals(-(10**18), 10**18, places=9), min_size=1))
def test_decimals_round_as_python_rounds_them(values: list[Decimal]) -> None:
    kept = [v for v in values if v != v.to_integral_value() or abs(v) <= 2**53]
    both_doors(Engine(FLAT), pa.table({"d": pa.array(kept, pa.decimal128(38, 9))}))


@settings(max_examples=80)
@given(batch=st.lists(events(), max_size=5), data=st.data())
@pytest.mark.slow
def test_random_tables_are_answered_as_the_semantics_say(
    batch: list[dict[str, Any]], data: st.DataObject
) -> None:
    engine = Engine(SCHEMA)
    live = fill(engine, data.draw(st.lists(conditions(), max_size=5)))
    batch = [{k: v for k, v in event.items() if k != "o"} for event in batch]
    table = pa.Table.from_pylist(batch, COLUMNS)
    assert sets(engine.encode(table)) == sets(engine.encode(batch))
    for event, answer in zip(batch, engine.match_batch(table), strict=True):
        assert set(answer) == expected(live, event)


def test_struct_columns_bind_dotted_attributes() -> None:
    schema = Schema.from_dict({"attributes": {"a.b": "integer", "a.c.d": "text", "x": "integer"}})
    engine = Engine(schema)
    engine.subscribe('a.c.d = "k"')
    nested = [{"b": 1, "c": {"d": "k"}}, None, {"b": None, "c": {"d": "z"}}, {"b": 4, "c": None}]
    table = pa.table({"a": pa.array(nested), "x": pa.array([1, 2, None, 4])})
    both_doors(engine, table)
    both_doors(engine, table[1:])
    assert list(engine.match_batch(table)) == [[0], [], [], []]


def test_a_second_spelling_of_nulls_hides_no_value() -> None:
    use = {"one": {"n": "optional"}, "two": {"a.b.c": "optional"}}
    attributes = {"n": "integer", "a.b.c": "text"}
    engine = Engine(Schema.from_dict({"attributes": attributes, "event_types": use}))
    engine.subscribe("a.b.c = x", id="found")
    values, nulls = pa.array([{"b.c": "x"}]), pa.array([{"c": None}])
    for columns in ({"a": values, "a.b": nulls}, {"a.b": nulls, "a": values}):
        two = pa.table({"event_type": ["two"], **columns})
        assert [*engine.match_batch(two)] == [["found"]]
        with pytest.raises(EventError, match=r"has no attribute 'a\.b\.c'"):
            engine.match_batch(pa.table({"event_type": ["one"], **columns}))


def test_an_opaque_list_is_several_values_where_the_attribute_is_multiple() -> None:
    schema = Schema.from_dict(
        {"attributes": {"o": "opaque"}, "event_types": {"e": {"o": "optional multiple"}}}
    )
    engine = Engine(schema)
    engine.subscribe("o exists")
    table = pa.table({"o": pa.array([[], [b"1"], [None], None], pa.list_(pa.binary()))})
    assert list(engine.match_batch(table)) == list(engine.match_batch(table.to_pylist()))
    assert list(engine.match_batch(table)) == [[], [0], [], []]


def test_the_event_type_may_be_left_out_where_there_is_one() -> None:
    engine = flat_engine()
    for types in (["event", None], [["event"], []], [["event"], [None]]):
        both_doors(engine, pa.table({"n": [1, 2], "event_type": pa.array(types)}))


def test_record_batches_and_streams_are_tables() -> None:
    engine = flat_engine()
    table = pa.table({"n": [1, 2]})
    expected_ = sets(engine.encode(table))
    assert sets(engine.encode(table.to_batches()[0])) == expected_
    assert sets(engine.encode(pa.RecordBatchReader.from_batches(table.schema, table.to_batches())))
    assert len(engine.encode(pa.table({}))) == 0
    assert len(engine.match_batch(pa.table({"n": pa.array([], pa.int64())}))) == 0


def test_opaque_columns_may_be_of_any_type() -> None:
    schema = Schema.from_dict({"attributes": {"o": "opaque"}})
    engine = Engine(schema)
    engine.subscribe("o exists")
    columns = [
        pa.array([b"1", None], pa.binary_view()),
        pa.array(["1", None], pa.string_view()),
        pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.array([[{"a": 1}], None]),
        pa.array([{"a": 1}, None]),
    ]
    for column in columns:
        assert list(engine.match_batch(pa.table({"o": column}))) == [[0], []]


def test_buffers_of_any_length_and_place_are_read() -> None:
    engine = flat_engine()
    data = pa.py_buffer(b"x" + (5).to_bytes(8, "little") + (7).to_bytes(8, "little") + b"rest")
    array = pa.Array.from_buffers(pa.int64(), 2, [None, data.slice(1)])
    both_doors(engine, pa.table({"n": array}))
    both_doors(engine, pa.table({"n": array[1:]}))


def buffer(array: pa.Array) -> Any:
    data = array.buffers()[1]
    assert data is not None
    return np.frombuffer(memoryview(data), np.uint8)


def test_int64_and_float64_without_negatives_are_not_copied() -> None:
    numbers, doubles = pa.array([3, 1, 2], pa.int64()), pa.array([3.5, 0.0, 2.0])
    for name, array, column in (
        ("n", numbers, numbers),
        ("n", numbers, numbers[1:]),
        ("d", doubles, doubles),
    ):
        codes = flat_engine().encode(pa.table({name: column})).columns[FLAT_POSITION[name]].codes
        assert np.shares_memory(codes, buffer(array))
        assert len(codes) == len(column)


FLAT_POSITION = {name: at for at, name in enumerate(FLAT.attributes)}


def test_an_empty_list_means_absent_for_opaque_attributes_too() -> None:
    schema = Schema.from_dict(
        {
            "attributes": {"o": "opaque", "p": "integer"},
            "event_types": {"e": {"o": "mandatory", "p": "optional"}},
        }
    )
    absent: list[dict[str, Any]] = [{"o": []}, {"o": None}, {}]
    for event in absent:
        with pytest.raises(EventError, match="'o' is mandatory"):
            Event.of(schema, event)
    table = pa.table({"o": pa.array([[1], [], None, [2, 3]], pa.list_(pa.int64()))})
    found = validate(Encoder(schema), table)
    assert found.rows.tolist() == [0, 3]
    assert [each.row for each in found.refused] == [1, 2]


@pytest.mark.parametrize("offset", ["Z", "+00:00", "-05:30", "+23:59", "+24:00", "z", ""])
@pytest.mark.parametrize("fraction", ["", ".5", ".000001", ".1234567", ","])
def test_times_in_text_are_read_alike_alone_and_together(offset: str, fraction: str) -> None:
    """Arrow reads the usual forms all at once; our own rules decide about the others."""
    years, days = ("0000", "0001", "1969", "2024", "9999"), ("01-01", "02-29", "12-31", "13-01")
    clocks = ("00:00:00", "23:59:59", "23:59:60", "24:00:00")
    encoder = Engine(FLAT).encoder
    at = encoder.positions["at"]
    for year, day, mark, clock in product(years, days, "T ", clocks):
        text = f"{year}-{day}{mark}{clock}{fraction}{offset}"
        moment = parse_timestamp(text)
        codes, wrong, _ = column_codes(encoder, at, pa.array([text, "2024-01-01T00:00:00Z"]))
        if isinstance(moment, str):
            assert wrong is not None, text
            assert wrong.tolist() == [True, False]
        else:
            assert wrong is None, text
            assert codes[0] == timestamp_code(moment), text
        assert codes[1] == timestamp_code(datetime(2024, 1, 1, tzinfo=UTC))
