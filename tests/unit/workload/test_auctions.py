"""Auctions: conditions in text over a schema that has one of everything."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tamis import workload
from tamis.workload.auction_schema import TYPES, branches, nodes


@pytest.fixture(scope="module")
def lots() -> list[dict[str, Any]]:
    return workload.as_dicts(workload.make("auctions", 1).events(2000))


def test_the_schema_is_a_document_with_a_type_for_each_branch() -> None:
    schema = workload.make("auctions", 1).schema
    assert json.loads(json.dumps(schema)) == schema
    categories = [name for name, _ in nodes(schema["domains"]["goods"]["tree"])]
    assert len(categories) == len(set(categories)) > 40
    assert len(branches()) == len(TYPES) - 1
    assert set(schema["event_types"]) == set(TYPES)


def test_events_bind_what_their_types_have(lots: list[dict[str, Any]]) -> None:
    types = workload.make("auctions", 1).schema["event_types"]
    for lot in lots:
        view = {name for kind in lot["event_type"] for name in types[kind]}
        must = {
            name
            for kind in lot["event_type"]
            for name, use in types[kind].items()
            if use.startswith("mandatory")
        }
        assert must <= lot.keys() - {"event_type"} <= view
        assert lot["title"].endswith(lot.get("category", "curiosity").replace("_", " "))


def test_most_conditions_match_now_and_then(lots: list[dict[str, Any]]) -> None:
    seen = {kind for lot in lots for kind in lot["event_type"]}
    assert seen == set(TYPES)
    assert {len(lot["event_type"]) for lot in lots} == {1, 2}
    assert {len(lot.get("tags", ())) for lot in lots} == {0, 1, 2, 3, 4}
    assert all(len(set(lot.get("tags", ()))) == len(lot.get("tags", ())) for lot in lots)
    assert len({lot["title"] for lot in lots}) > 1000
    assert min(lot["price"] for lot in lots) > 0
    every = {name for lot in lots for name in lot}
    assert every == {"event_type", *workload.make("auctions", 1).schema["attributes"]}


def test_conditions_use_the_whole_language() -> None:
    table = workload.make("auctions", 20_000).subscriptions
    assert table.column_names == ["id", "condition"]
    assert table["condition"].type == pa.string()
    assert table["condition"].null_count == 0
    conditions = table["condition"].to_pylist()
    assert all(conditions)
    together = "\n".join(conditions)
    for words in (
        "event_type contains antiques",
        "category <= table",
        "category < watch",
        "category in (",
        "not category <= ",
        "price between ",
        "(price < ",
        " or tags contains ",
        'tags excludes "',
        'title starts with "Grand"',
        'title ends with "',
        'title like "%oak%"',
        "period < XVIII",
        "period between XVI and XVIII",
        "state missing",
        "artist exists",
        "shipping = true",
        "closes < ",
        "not state < restored",
    ):
        assert words in together
    assert len(set(conditions)) > 10_000


def test_a_live_demonstration_starts_now() -> None:
    start = datetime(2031, 5, 17, 12, 30, tzinfo=UTC)
    made = workload.make("auctions", 2000, start=start)
    closes = made.events(500)["closes"].to_pylist()
    assert start <= min(closes)
    assert (max(closes) - start).days < 14
    assert any(
        'closes < "2031-05-2' in text for text in made.subscriptions["condition"].to_pylist()
    )
    assert made.parameters["start"] == "2031-05-17T12:30:00+00:00"
