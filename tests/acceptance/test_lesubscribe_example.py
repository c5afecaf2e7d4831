"""The example of Le Subscribe, section 2: antiques and furniture."""

from __future__ import annotations

from typing import Any

import pytest

from tamis import Engine, Schema
from tamis.errors import EventError
from tamis.match.registry import entry, matchers

SCHEMA = Schema.from_dict(
    {
        "domains": {
            "furniture": {
                "kind": "hierarchy",
                "tree": {
                    "furniture": {
                        "table": {"dining_table": {"oval_table": {}}, "desk": {}},
                        "chair": {},
                    }
                },
            },
            "century": {
                "kind": "enumerated",
                "values": ["XVI", "XVII", "XVIII"],
                "order": [["XVI", "XVII"], ["XVII", "XVIII"]],
            },
        },
        "attributes": {
            "price": "decimal",
            "quantity": {"kind": "integer", "low": 0},
            "period": "century",
            "furniture_category": "furniture",
        },
        "event_types": {
            "antiques": {"price": "mandatory", "period": "mandatory", "quantity": "mandatory"},
            "furniture": {
                "price": "mandatory",
                "quantity": "mandatory",
                "furniture_category": "mandatory",
            },
        },
    }
)
BOTH = ["antiques", "furniture"]
COMMON: dict[str, Any] = {"price": 200, "quantity": 1, "period": "XVII"}
E1 = {"event_type": BOTH, **COMMON, "furniture_category": "oval_table"}
E2 = {"event_type": BOTH, **COMMON}
CONDITION = "event_type contains antiques and furniture_category < dining_table"


@pytest.fixture(params=[name for name in matchers() if entry(name).exact])
def engine(request: pytest.FixtureRequest) -> Engine:
    made = Engine(SCHEMA, request.param)
    made.subscribe(CONDITION, id="s1")
    return made


def test_only_a_proper_kind_of_antique_dining_table_matches(engine: Engine) -> None:
    assert engine.match(E1) == ["s1"]
    assert engine.match({"event_type": "antiques", **COMMON}) == [], "it needs no category"
    for category in ("dining_table", "desk", "table", "chair"):
        assert engine.match({**E1, "furniture_category": category}) == []
    event = {name: value for name, value in E1.items() if name != "period"}
    assert engine.match({**event, "event_type": "furniture"}) == []


def test_inconsistent_events_are_refused(engine: Engine) -> None:
    with pytest.raises(EventError) as refusal:
        engine.match(E2)
    assert refusal.value.rule == "R2"
    assert refusal.value.attribute == "furniture_category"
    assert "antiques + furniture" in str(refusal.value)
    assert "mandatory" in str(refusal.value)
    with pytest.raises(EventError) as refusal:
        engine.match({**E1, "event_type": "antiques"})
    assert refusal.value.rule == "R3"
