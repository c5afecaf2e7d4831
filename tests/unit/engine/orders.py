"""Orders with items: lists of structs, conditions on them, and the right answers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tamis import Engine, Schema
from tamis.match.base import Matches

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "total": "decimal",
            "items": {
                "kind": "structs",
                "attributes": {
                    "sku": "text",
                    "qty": {"kind": "integer", "low": 0},
                    "price": "decimal",
                    "list_price": "decimal",
                    "tags": "text",
                    "made.year": "integer",
                    "sent": "timestamp",
                },
                "multiple": ["tags"],
            },
            "orders": {
                "kind": "structs",
                "attributes": {
                    "paid": "boolean",
                    "lines": {
                        "kind": "structs",
                        "attributes": {"sku": "text", "qty": "integer"},
                    },
                },
            },
        }
    }
)
TEXTS = {
    "both": "some item in items (item.sku = A1 and item.qty >= 2)",
    "none": "not some item in items (item.sku = A1 and item.qty >= 2)",
    "or": "total > 100 or some i in items (i.tags contains red and i.made.year < 2000)",
    "cheap": "some i in items (i.price < @i.list_price)",
    "two": "some i in items (i.sku = A1) and some i in items (i.sku = B2)",
    "nested": "some o in orders (o.paid and some l in o.lines (l.sku = A1))",
    "unpaid": "some o in orders (not o.paid and not some l in o.lines (l.qty > 1))",
    "there": "items exists and orders missing",
    "like": 'some i in items (i.sku like "%2%" and i.qty < 9)',
    "late": "some i in items (i.sent > 2026-01-01)",
}
EVENTS: list[dict[str, Any]] = [
    {"items": [{"sku": "A1", "qty": 1}, {"sku": "B2", "qty": 7}]},
    {"items": [{"sku": "A1", "qty": 2}]},
    {"items": {"sku": "A1", "qty": 3, "tags": ["red", "old"], "made": {"year": 1990}}},
    {"items": [{"tags": "red", "made": {"year": 2001}}, {"made": {"year": 1990}}]},
    {"items": [{"price": 1, "list_price": 2, "sent": "2026-03-01"}], "total": 5},
    {"items": [{"price": 3, "list_price": 2}], "total": 500},
    {"orders": [{"paid": True, "lines": [{"sku": "A1"}]}, {"paid": False}]},
    {"orders": [{"paid": True, "lines": [{"sku": "B2"}]}, {"lines": [{"sku": "A1"}]}]},
    {"orders": [{"paid": False, "lines": [{"qty": 1}]}]},
    {"items": []},
    {"items": [None]},
    {"items": [{}]},
    {"items": None, "total": 101},
    {},
]
ANSWERS: list[set[str]] = [
    {"none", "two", "there", "like"},
    {"both", "there"},
    {"both", "or", "there"},
    {"none", "there"},
    {"none", "cheap", "there", "late"},
    {"none", "or", "there"},
    {"nested"},
    set(),
    {"unpaid"},
    set(),
    set(),
    {"none", "there"},
    {"or"},
    set(),
]


def engine_of(matcher: str = "tamis") -> Engine:
    engine = Engine(SCHEMA, matcher)
    for id, text in TEXTS.items():
        engine.subscribe(text, id=id)
    return engine


def sets(found: Matches) -> list[set[str]]:
    return [set(each) for each in found]


def table_of() -> pa.Table:
    """The events as columns; a single element has to be a list of one there."""
    rows = [dict.fromkeys(("total", "items", "orders")) | event for event in EVENTS]
    for row in rows:
        if isinstance(row["items"], dict):
            row["items"] = [row["items"]]
        for item in row["items"] or ():
            if item and isinstance(item.get("tags"), str):
                item["tags"] = [item["tags"]]
    return pa.Table.from_pylist(rows)
