"""An event that leaves `event_type` out is of the schema's default event type."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
import yaml

from tamis.errors import EventError, SchemaError
from tamis.model.schema import Schema

ATTRIBUTES = {"price": "decimal", "bid": "decimal"}
ONE: dict[str, Any] = {
    "attributes": ATTRIBUTES,
    "event_types": {"offer": {"price": "mandatory"}},
}
TWO: dict[str, Any] = {
    "attributes": ATTRIBUTES,
    "event_types": {"offer": {"price": "mandatory"}, "bid": {"bid": "mandatory"}},
}
ABSENT: list[dict[str, Any]] = [
    {},
    {"event_type": None},
    {"event_type": []},
    {"event_type": [None]},
]


def test_the_only_type_is_the_default() -> None:
    assert Schema.from_dict(ONE).default_event_type == "offer"
    assert Schema.from_dict({"attributes": ATTRIBUTES}).default_event_type == "event"
    document = {"title": "offer", "properties": {"price": {"type": "number"}}}
    schema = Schema.from_json_schema(document)
    assert schema.default_event_type == "offer"
    assert schema.create_event_type("other", {}).event({"price": 5}).types == ("offer",)
    assert "offer (default)" in Schema.from_dict({**TWO, "default_event_type": "offer"}).summary()
    assert "(default)" not in Schema.from_dict(TWO).summary()


def test_several_types_without_the_key_have_no_default() -> None:
    schema = Schema.from_dict(TWO)
    assert schema.default_event_type is None
    assert "default_event_type" not in schema.to_dict()
    for absent in ABSENT:
        with pytest.raises(EventError, match="names no event type"):
            schema.event({"price": 5, **absent})


@pytest.mark.parametrize("name", ["offer", "bid"])
def test_a_document_names_the_default(name: str) -> None:
    schema = Schema.from_dict({**TWO, "default_event_type": name})
    assert schema.default_event_type == name
    attribute = {"offer": "price", "bid": "bid"}[name]
    for absent in ABSENT:
        assert schema.event({attribute: 5, **absent}).types == (name,)
    assert schema.event({"event_type": ["offer"], "price": 5}).types == ("offer",)
    with pytest.raises(EventError, match=f"event type {name}: '{attribute}' is mandatory"):
        schema.event({})


def test_the_document_records_it() -> None:
    for given in (ONE, {**TWO, "default_event_type": "bid"}):
        schema = Schema.from_dict(given)
        assert schema.to_dict()["default_event_type"] == schema.default_event_type
        for again in (
            Schema.from_dict(json.loads(json.dumps(schema.to_dict()))),
            Schema.from_dict(yaml.safe_load(schema.to_yaml())),
            pickle.loads(pickle.dumps(schema)),
        ):
            assert again == schema
            assert again.default_event_type == schema.default_event_type
    assert Schema.from_dict(TWO) != Schema.from_dict({**TWO, "default_event_type": "bid"})


@pytest.mark.parametrize(
    ("name", "message"),
    [("ofer", "default_event_type: unknown type 'ofer'; did you mean 'offer'"), (5, "5")],
)
def test_a_default_that_is_not_a_type_is_refused(name: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({**TWO, "default_event_type": name})


def test_creating_types_keeps_the_default() -> None:
    first = Schema.from_dict(ONE)
    grown = first.create_event_type("bid", {"bid": "mandatory"})
    grown = grown.create_attribute("note", "text").extend_event_type("offer", "note")
    grown = grown.create_event_type("note", {"note": "mandatory"})
    assert grown.default_event_type == "offer"
    assert grown.event({"price": 5}).types == ("offer",)
    grown.check_extends(first)
    none = Schema.from_dict(TWO).create_event_type("empty", {})
    assert none.default_event_type is None


@pytest.mark.parametrize(
    ("older", "newer", "advice"),
    [
        (ONE, TWO, "default_event_type: offer"),
        (ONE, {**TWO, "default_event_type": "bid"}, ""),
        (TWO, {**TWO, "default_event_type": "bid"}, ""),
        ({**TWO, "default_event_type": "offer"}, TWO, ""),
    ],
)
def test_an_extension_does_not_change_the_default(
    older: dict[str, Any], newer: dict[str, Any], advice: str
) -> None:
    with pytest.raises(SchemaError, match=f"default_event_type was changed from.*{advice}"):
        Schema.from_dict(newer).check_extends(Schema.from_dict(older))
