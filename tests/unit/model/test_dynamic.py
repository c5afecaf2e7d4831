"""Dynamic attributes: the event decides on the kind of a value."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tamis.errors import EventError, TamisError
from tamis.language import parse, to_text
from tamis.model.domain import RefusalError
from tamis.model.dynamic import Dynamic
from tamis.model.explain import explain
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies

SCHEMA = Schema.from_dict(
    {
        "attributes": {"x": "dynamic", "y": "dynamic", "price": "decimal", "at": "timestamp"},
        "event_types": {
            "event": {
                "x": "optional multiple",
                "y": "optional",
                "price": "optional",
                "at": "optional",
            }
        },
    }
)

VALUES: dict[str, Any] = {
    "absent": ...,
    "null": None,
    "true": True,
    "false": False,
    "4": 4,
    "5": 5.0,
    "7": 7,
    "a": "a",
    "5 as text": "5",
    "object": {"a": 1},
    "5 and b": [5, "b"],
    "null and 4": [None, 4],
}
MEANING = {
    "x < 5": "4, null and 4",
    "not x < 5": "5, 7, 5 and b",
    "x != 5": "4, 7, null and 4",
    "x = 5": "5, 5 and b",
    'x = "5"': "5 as text",
    "x = true": "true",
    "x": "true",
    "not x": "false",
    "x != true": "false",
    'x >= "a"': "a, 5 and b",
    "x between 4 and 5": "4, 5, 5 and b, null and 4",
    "not x between 4 and 5": "7",
    'x in (5, "a", true)': "true, 5, a, 5 and b",
    'not x in (5, "a")': "4, 7, 5 as text, 5 and b, null and 4",
    "x contains 5": "5, 5 and b",
    "x excludes 5": "null, true, false, 4, 7, a, 5 as text, object, null and 4",
    'x starts with ""': "a, 5 as text, 5 and b",
    'x like "_"': "a, 5 as text, 5 and b",
    'not x like "a%"': "5 as text, 5 and b",
    'x ends with "b"': "5 and b",
    "x exists": "null, true, false, 4, 5, 7, a, 5 as text, object, 5 and b, null and 4",
    "x missing": "absent",
    "x is null": "absent, null",
    "x is not null": "true, false, 4, 5, 7, a, 5 as text, object, 5 and b, null and 4",
    "x is null and x exists": "null",
    "x is scalar": "null, true, false, 4, 5, 7, a, 5 as text, 5 and b, null and 4",
    "x is not scalar": "absent, object",
    "x of kind (null, number)": "null, 4, 5, 7, 5 and b, null and 4",
    "not x of kind (null, number)": "true, false, a, 5 as text, object, 5 and b",
    "x of kind (object)": "object",
    'x subset of (5, "b", true)': "true, 5, 5 and b",
    "not x subset of (5, 4)": "null, true, false, 7, a, 5 as text, object, 5 and b, null and 4",
    'x superset of (5, "b")': "5 and b",
    'x has substring ""': "a, 5 as text, 5 and b",
    'x matches "^[a-b]$"': "a, 5 and b",
    'not x matches "a"': "5 as text, 5 and b",
    'x = "A" ignoring case': "a",
    'x != "A" ignoring case': "5 as text, 5 and b",
    'x in ("A", "B") ignoring case': "a, 5 and b",
}


@pytest.mark.parametrize("text", MEANING)
def test_a_comparison_holds_only_between_values_of_one_kind(text: str) -> None:
    condition = parse(text, SCHEMA)
    found = [
        name
        for name, value in VALUES.items()
        if satisfies(condition, {} if value is ... else {"x": value}, SCHEMA)
    ]
    assert ", ".join(found) == MEANING[text]
    assert parse(to_text(condition)) == condition


@pytest.mark.parametrize(
    ("text", "event", "holds"),
    [
        ("x = @y", {"x": 1, "y": 1.0}, True),
        ("x = @y", {"x": True, "y": 1}, False),
        ("x != @y", {"x": True, "y": 1}, False),
        ("not x = @y", {"x": "a", "y": 1}, False),
        ("x < @y", {"x": "a", "y": "b"}, True),
        ("x < @y", {"x": False, "y": True}, False),
        ("x = @y", {"x": None, "y": None}, False),
        ("x = @y", {"x": {}, "y": {}}, False),
        ("x > 2 * @price", {"x": 9, "price": 4}, True),
        ("x > 2 * @price", {"x": "9", "price": 4}, False),
        ("@x + @y > 3", {"x": 2, "y": 2}, True),
        ("@x + @y > 3", {"x": "2", "y": 2}, False),
    ],
)
def test_attributes_compare_by_the_kinds_of_their_values(
    text: str, event: dict[str, Any], holds: bool
) -> None:
    assert satisfies(parse(text, SCHEMA), event, SCHEMA) is holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('x between 1 and "a"', "no value lies between a number and text"),
        ("x < true", "true or false has no comparator '<'"),
        ("x starts with 5", "a number has no comparator 'starts with'"),
        ("x matches 5", "a number has no comparator 'matches'"),
        ("x = 5 ignoring case", "a number has no comparator '= ignoring case'"),
        ("x of kind (thing)", "'thing' is not a kind of values"),
        ("price of kind (number)", "which has no comparator 'of kind'"),
        ("x = null", "write x is null"),
        ("x != null", "write x is not null"),
        ("x in (1, null)", "'null' is a word here"),
        ('y contains "oak"', "'y' has one value"),
        ("x = @at", "timestamp is not compared with a dynamic attribute"),
        ("x = 9223372036854775808", "outside the 64-bit integers"),
    ],
)
def test_what_no_value_can_satisfy_is_refused(text: str, message: str) -> None:
    with pytest.raises(TamisError) as raised:
        parse(text, SCHEMA)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (np.int8(5), 5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (Decimal(12), 12),
        (Decimal("1.5"), 1.5),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00Z"),
        (datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=1))), "2026-01-31T11:00:00Z"),
        (date(2026, 1, 31), "2026-01-31"),
        (b"bytes", b"bytes"),
    ],
)
def test_values_of_python_are_those_of_json(given: object, value: object) -> None:
    found = Dynamic().value(given)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 2**63, Decimal("NaN"), "\ud800"])
def test_what_is_no_number_and_no_text_is_refused(wrong: object) -> None:
    with pytest.raises(RefusalError):
        Dynamic().value(wrong)
    with pytest.raises(EventError, match="'x'"):
        SCHEMA.event({"x": wrong})


def test_true_and_one_are_two_values() -> None:
    assert SCHEMA.event({"x": [1, True, 1.0, None, None, "1"]}).values["x"] == (1, True, None, "1")


def test_is_null_of_a_typed_attribute_means_missing() -> None:
    for text, holds in (("price is null", True), ("price is not null", False)):
        assert satisfies(parse(text, SCHEMA), {"price": None}, SCHEMA) is holds
        assert satisfies(parse(text, SCHEMA), {"price": 5}, SCHEMA) is not holds


def test_explanations_show_null_and_objects() -> None:
    shown = str(explain(parse("x > 5 or x is null"), {"x": None}, SCHEMA))
    assert "no   x > 5: x is null" in shown
    assert "yes  x is null: x is null" in shown
    assert "x is an object" in str(explain(parse("x > 5"), {"x": {"a": 1}}, SCHEMA))
