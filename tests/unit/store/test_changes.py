"""Tables of changes: building them, and which rows are refused and why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import StoreError
from tamis.store import cancel, changes_table, expire, renew, subscribe
from tamis.store.changes import change_schema, validate

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_one_of_each() -> None:
    table = pa.concat_tables(
        [
            subscribe(["a", "b"], iter(["x", "y"]), [NOW, None]),
            renew(["a"], NOW),
            renew(["a"], None),
            cancel(["a"]),
            expire({"b": 1}),
        ]
    )
    assert table.schema == change_schema("text")
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("subscribe", "a", "x", NOW),
        ("subscribe", "b", "y", None),
        ("renew", "a", None, NOW),
        ("renew", "a", None, None),
        ("cancel", "a", None, None),
        ("expire", "b", None, None),
    ]


def test_one_moment_for_all_in_any_zone() -> None:
    there = NOW.astimezone(timezone(timedelta(hours=5)))
    bare = NOW.replace(tzinfo=None)  # UTC is meant
    for until in (NOW, there, bare, [there, there], [bare, bare], pa.array([NOW, NOW])):
        table = subscribe(np.array([1, 2]), ["x", "y"], until)
        assert table.schema == change_schema("int64")
        assert table.column("until").to_pylist() == [NOW, NOW]


def test_kinds_of_columns_that_fit() -> None:
    given = pa.table(
        {
            "until": pa.array([NOW], pa.timestamp("ms", "Europe/Paris")),
            "condition": pa.array(["x"], pa.large_string()),
            "id": pa.array([7], pa.int16()),
            "kind": pa.array(["subscribe"]).dictionary_encode(),
        }
    )
    table = validate(given, "int64")
    assert table.schema == change_schema("int64")
    assert [tuple(row.values()) for row in table.to_pylist()] == [("subscribe", 7, "x", NOW)]
    assert validate({"kind": ["cancel"], "id": ["a"]}).column("condition").to_pylist() == [None]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (5, "expected an Arrow table of changes"),
        ({"kind": ["cancel"]}, "lack the column 'id'"),
        ({"kind": ["cancel"], "id": ["a"], "conditon": ["x"]}, "did you mean 'condition'"),
        ({"kind": ["cancel", "stop"], "id": ["a", "b"]}, "change 1: the kind is 'stop'; expected"),
        ({"kind": ["cancel", None], "id": ["a", "b"]}, "change 1: the kind is None"),
        ({"kind": ["cancel", "cancel"], "id": ["a", None]}, "change 1: the id is null"),
        ({"kind": ["cancel"], "id": [""]}, "change 0: the id is an empty text"),
        ({"kind": ["cancel"], "id": ["é" * 600_000]}, "change 0: the id is longer than"),
        ({"kind": ["cancel"], "id": [1.5]}, "'id' is double, expected string"),
        ({"kind": ["subscribe"], "id": ["a"]}, "change 0: the subscribe of 'a' has no condition"),
        (
            {"kind": ["cancel"], "id": ["a"], "condition": ["x"]},
            "change 0: a cancel has a condition; only a subscribe",
        ),
        (
            {"kind": ["expire"], "id": ["a"], "until": [NOW]},
            "change 0: a expire has a lease",
        ),
        ({"kind": ["renew"], "id": ["a"], "until": [5]}, "'until' is int64, expected timestamp"),
        (
            {"kind": ["cancel"], "id": pa.array([1 << 63], pa.uint64())},
            "'id' does not fit int64",
        ),
        (
            pa.table([["cancel"], ["a"], ["a"]], names=["kind", "id", "id"]),
            "two columns named 'id'",
        ),
    ],
)
def test_what_is_wrong(given: Any, says: str) -> None:
    with pytest.raises(StoreError, match=says):
        validate(given)


def test_columns_that_do_not_fit_and_no_rows() -> None:
    fine = pa.array([1], pa.timestamp("ns", "UTC"))  # finer than a microsecond
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: renew(["a"], fine), "'until' does not fit"),
        (lambda: subscribe(["a", "b"], ["x"]), "2 × id, 1 × condition"),
        (lambda: cancel(["a", 1]), "cannot be a column"),
        (lambda: cancel([1 << 70]), "cannot be a column"),
    ]
    for call, message in wrong:
        with pytest.raises(StoreError, match=message):
            call()
    assert cancel([]).schema == change_schema("text")
    assert validate(cancel([]), "int64").schema == change_schema("int64")
    assert changes_table([], [], [], []).num_rows == 0
