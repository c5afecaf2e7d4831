"""Cells of CSV as values of their domains."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tamis import Schema
from tamis.cli.data.cells import CellReader

SCHEMA = Schema.from_dict(
    {
        "domains": {"size": {"kind": "enumerated", "values": ["small", "large"]}},
        "attributes": {
            "n": {"kind": "integer", "low": 0},
            "x": "decimal",
            "sold": "boolean",
            "title": "text",
            "size": "size",
            "at": "timestamp",
            "tags": "text",
            "marks": "integer",
            "dates": "timestamp",
        },
        "event_types": {
            "lot": {
                **dict.fromkeys(["n", "x", "sold", "title", "size", "at"], "optional"),
                **dict.fromkeys(["tags", "marks", "dates"], "optional multiple"),
            }
        },
    }
)


@pytest.mark.parametrize(
    ("name", "cell", "value"),
    [
        ("n", "5", 5),
        ("n", " +5 ", 5),
        ("n", "5.0", 5),
        ("n", "1e3", 1000),
        ("n", "9223372036854775807", 2**63 - 1),
        ("n", "", None),
        ("n", "NA", None),
        ("x", "-.5", -0.5),
        ("x", "-0", 0.0),
        ("x", "3.", 3.0),
        ("sold", "TRUE", True),
        ("sold", "false", False),
        ("title", " as it is ", " as it is "),
        ("title", "007", "007"),
        ("title", "[1]", "[1]"),
        ("title", "", None),
        ("at", "2026-01-31 12:00", "2026-01-31 12:00"),
        ("tags", "oak", ["oak"]),
        ("tags", '["oak", "old, oak", null]', ["oak", "old, oak"]),
        ("marks", "5", [5]),
        ("marks", "[5, 6.0]", [5, 6]),
        ("dates", "2026-01-31", [datetime(2026, 1, 31, tzinfo=UTC)]),
        ("unknown", "5", "5"),
    ],
)
def test_a_cell(name: str, cell: str, value: Any) -> None:
    found = CellReader(SCHEMA, ["NA"]).column(name, [cell, cell])
    assert found.values.to_pylist() == [value, value]
    assert not found.wrong


@pytest.mark.parametrize(
    ("name", "cell", "why"),
    [
        ("n", "five", "is not a number"),
        ("n", "1,000", "is not a number"),
        ("n", "1.5", "is not a whole number"),
        ("n", "-1", "is below the domain's low"),
        ("n", "9223372036854775808", "outside the 64-bit"),
        ("n", "9" * 5000, "is not a finite number"),
        ("n", "٣", "is not a number"),
        ("n", "true", "is not a number"),
        ("n", "null", "--absent null makes it absent"),
        ("x", "nan", "--absent nan makes it absent"),
        ("x", "inf", "is not a number"),
        ("x", "1e999", "is not a finite number"),
        ("x", "9007199254740993", "no exact double"),
        ("sold", "yes", "is not true or false"),
        ("sold", "1", "is not true or false"),
        ("tags", "[5]", "expected text"),
        ("tags", '["oak"', "is not a JSON array"),
        ("marks", "[true]", "is a boolean"),
        ("dates", "soon", "ISO 8601"),
    ],
)
def test_a_cell_that_is_refused(name: str, cell: str, why: str) -> None:
    found = CellReader(SCHEMA).column(name, ["", cell])
    assert found.values.to_pylist() == [None, None]
    assert list(found.wrong) == [1]
    assert why in found.wrong[1]
    assert len(found.wrong[1]) < 500
