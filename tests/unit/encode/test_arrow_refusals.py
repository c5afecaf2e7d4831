"""What an event may not hold, an Arrow table may not either, in the same words and with the row."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.errors import EventError

ONE = Schema.from_dict(
    {
        "attributes": {
            "n": "integer",
            "q": {"kind": "integer", "low": 0, "high": 9},
            "d": "decimal",
            "s": "text",
            "b": "boolean",
            "at": "timestamp",
            "c": {"kind": "enumerated", "values": ["red", "green"]},
            "ns": "integer",
            "o": "opaque",
            "unused": "integer",
        },
        "event_types": {
            "e": {
                **dict.fromkeys(("n", "q", "d", "s", "b", "at", "c", "o"), "optional"),
                "ns": "optional multiple",
            }
        },
    }
)
TWO = Schema.from_dict(
    {
        "attributes": {"n": "integer", "m": "integer", "k": "integer"},
        "event_types": {
            "a": {"n": "mandatory", "k": "optional"},
            "b": {"m": "mandatory", "k": "optional multiple"},
        },
    }
)
FINE: dict[str, list[Any]] = {"n": [1, 1, 1], "d": [0.5, 0.5, 0.5], "s": ["x", "y", "z"]}
BAD: dict[str, tuple[str, pa.Array]] = {
    "text for an integer": ("n", pa.array(["1", "2", "3"])),
    "boolean for an integer": ("n", pa.array([True, False, True])),
    "boolean for a decimal": ("d", pa.array([True, False, True])),
    "fraction for an integer": ("n", pa.array([1.0, 2.0, 2.5])),
    "nan for an integer": ("n", pa.array([1.0, float("nan"), 2.0])),
    "double past int64": ("n", pa.array([1.0, 2.0**63, 2.0])),
    "uint64 past int64": ("n", pa.array([1, 2, 2**63], pa.uint64())),
    "uint64 past int64 for a decimal": ("d", pa.array([1, 2**63, 3], pa.uint64())),
    "below low": ("q", pa.array([0, 1, -1])),
    "above high": ("q", pa.array([0, 10, 1], pa.uint8())),
    "double above high": ("q", pa.array([0.0, 10.0, 1.0])),
    "no exact double": ("d", pa.array([1, 2**53 + 1, 3])),
    "no exact double, unsigned": ("d", pa.array([1, 2**53 + 1, 3], pa.uint64())),
    "nan": ("d", pa.array([1.0, 2.0, float("nan")])),
    "infinity": ("d", pa.array([1.0, float("-inf"), 3.0])),
    "float32 infinity": ("d", pa.array([1.0, 2.0, float("inf")], pa.float32())),
    "number for text": ("s", pa.array([1, 2, 3])),
    "bytes for text": ("s", pa.array([b"1", b"2", b"3"])),
    "number for a boolean": ("b", pa.array([1, 0, 1])),
    "text for a boolean": ("b", pa.array(["true", "false", "true"])),
    "number for a timestamp": ("at", pa.array([1, 2, 3])),
    "duration for a timestamp": ("at", pa.array([timedelta(1)] * 3)),
    "no timestamp": ("at", pa.array(["2026-01-31", "yesterday", "2026-01-31"])),
    "finer than a microsecond as text": ("at", pa.array(["2026-01-31T00:00:00.1234567Z"])),
    "unknown name": ("c", pa.array(["red", "gren", "red"])),
    "unknown name in a dictionary": ("c", pa.array(["red", "x", "red"]).dictionary_encode()),
    "number for a name": ("c", pa.array([1, 2, 3])),
    "two values of a unique attribute": ("n", pa.array([[1], [2, 2], [3, 4]])),
    "a wrong value in a list": ("ns", pa.array([["1"], ["2"], ["3"]])),
    "a list of lists": ("ns", pa.array([[[1]], [[2]], [[3]]])),
    "a struct for an integer": ("n", pa.array([{"x": 1}] * 3)),
    "unknown attribute": ("zzz", pa.array([None, 5, 6])),
    "close to an attribute": ("event_typ", pa.array([None, None, "e"])),
    "an attribute of no event type": ("unused", pa.array([None, 5, 6])),
    "unknown event type": ("event_type", pa.array(["e", "f", "e"])),
    "a number as event type": ("event_type", pa.array([1, 2, 3])),
    "unknown in a struct": ("zzz", pa.array([None, {"y": None}, {"y": 5}])),
}


def refusal(engine: Engine, given: Any) -> EventError:
    with pytest.raises(EventError) as caught:
        engine.match_batch(given)
    return caught.value


def same_refusal(engine: Engine, table: pa.Table) -> EventError:
    """Both doors refuse, alike in words, rule, attribute and row."""
    left, right = refusal(engine, table), refusal(engine, table.to_pylist())
    assert str(left) == str(right)
    assert (left.rule, left.attribute, left.row) == (right.rule, right.attribute, right.row)
    assert left.rule in ("R1", "R2", "R3")
    assert left.row is not None
    return left


@pytest.mark.parametrize("case", BAD)
def test_both_doors_refuse_alike(case: str) -> None:
    name, column = BAD[case]
    others = {k: v[: len(column)] for k, v in FINE.items() if k != name}
    engine = Engine(ONE)
    same_refusal(engine, pa.table({**others, name: column}))
    same_refusal(engine, pa.table({name: column, **others}))
    same_refusal(engine, pa.table({name: pa.chunked_array([column[:1], column[1:]]), **others}))


@pytest.mark.parametrize(
    ("columns", "rule", "attribute", "row"),
    [
        ({"n": [1, 2]}, "R1", "event_type", 0),
        ({"event_type": ["a", None], "n": [1, 2]}, "R1", "event_type", 1),
        ({"event_type": [["a"], []], "n": [1, 2]}, "R1", "event_type", 1),
        ({"event_type": ["a", "a"], "n": [1, None]}, "R2", "n", 1),
        ({"event_type": ["a", "a"], "k": [1, None]}, "R2", "n", 0),
        ({"event_type": ["a", "a"]}, "R2", "n", 0),
        ({"event_type": ["a", "b"], "n": [1, 2], "m": [None, 2]}, "R3", "n", 1),
        ({"event_type": [["a"], ["a", "b"]], "n": [1, 2]}, "R2", "m", 1),
        (
            {"event_type": ["b", "a"], "n": [None, 1], "m": [1, None], "k": [[1, 2], [1, 2]]},
            "R2",
            "k",
            1,
        ),
        ({"event_type": [["a", "zz"]], "n": [1]}, "R1", "event_type", 0),
    ],
)
def test_each_rule_is_checked_on_columns(
    columns: dict[str, Any], rule: str, attribute: str, row: int
) -> None:
    found = same_refusal(Engine(TWO), pa.table(columns))
    assert (found.rule, found.attribute, found.row) == (rule, attribute, row)


def test_both_types_at_once_allow_what_one_refuses() -> None:
    engine = Engine(TWO)
    engine.subscribe("k > 1", id=7)
    table = pa.table({"event_type": [["a", "b"]], "n": [1], "m": [2], "k": [[1, 2]]})
    assert list(engine.match_batch(table)) == [[7]]


def test_the_same_value_twice_is_one_value() -> None:
    engine = Engine(ONE)
    engine.subscribe("n = 4", id=1)
    columns = {"n": pa.array([[4, 4]]), "at": pa.array([date(2026, 1, 1)])}
    assert list(engine.match_batch(pa.table(columns))) == [[1]]


def test_the_first_row_that_is_wrong_is_named() -> None:
    numbers = [0.5] * 1000
    numbers[700], numbers[900] = float("nan"), float("inf")
    assert refusal(Engine(ONE), pa.table({"d": numbers})).row == 700
    fine = pa.array([1000, 1001], pa.timestamp("ns"))  # refused rather than cut
    found = refusal(Engine(ONE), pa.table({"at": fine}))
    assert (found.row, found.rule) == (1, "R2")
    assert same_refusal(Engine(ONE), pa.table({"s": ["x", "x" * (2**20 + 1)]})).row == 1
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    assert "two columns" in str(refusal(Engine(ONE), twice))


def test_a_moment_beyond_the_calendar_is_refused_with_its_row() -> None:
    for unit in ("s", "ms", "us"):
        for zone in (None, "UTC", "Mars/Base"):
            column = pa.array([0, 2**62, -(2**62)], pa.timestamp(unit, zone))
            assert refusal(Engine(ONE), pa.table({"at": column})).row == 1


def test_broken_utf8_is_refused() -> None:
    offsets = np.array([0, 1, 2], np.int32)
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"a\xff")]
    )
    for name in ("s", "c"):
        assert "Invalid UTF8" in str(refusal(Engine(ONE), pa.table({name: broken})))


def test_a_wrong_row_changes_nothing() -> None:
    engine = Engine(ONE)
    engine.subscribe('s = "x"', id=1)
    refusal(engine, pa.table({"s": ["x", "y"], "n": [1.5, 1.0]}))
    assert engine.match({"s": "x", "at": datetime(2026, 1, 1)}) == [1]  # noqa: DTZ001
