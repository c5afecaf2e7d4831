"""Lists of structs: documents, values, and what explanations say of their elements."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tamis import Schema
from tamis.errors import EventError, SchemaError
from tamis.language import parse
from tamis.model.elements.structs import Structs
from tamis.model.explain import explain
from tamis.model.semantics import satisfies

DOCUMENT: dict[str, Any] = {
    "domains": {"colour": {"kind": "enumerated", "values": ["red", "blue"]}},
    "attributes": {
        "items": {
            "kind": "structs",
            "attributes": {
                "qty": {"kind": "integer", "low": 0},
                "colour": "colour",
                "tags": "text",
            },
            "multiple": ["tags"],
        }
    },
}
SCHEMA = Schema.from_dict(DOCUMENT)


def test_a_document_is_read_and_written() -> None:
    written = SCHEMA.to_dict()
    assert written["attributes"] == DOCUMENT["attributes"], "named domains keep their names"
    assert Schema.from_dict(written) == SCHEMA
    assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA
    assert "structs of qty, colour, tags" in SCHEMA.summary()
    item = {"kind": "structs", "attributes": {"a": "text"}}
    two = {"one": "item", "two": "item"}
    again = Schema.from_dict({"domains": {"item": item}, "attributes": two})
    assert again.to_dict()["attributes"] == two
    assert Schema.from_dict(again.to_dict()) == again


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"kind": "structs"}, "at least one attribute"),
        ({"kind": "structs", "attributes": {"a": "txt"}}, "attribute 'a': unknown domain 'txt'"),
        ({"kind": "structs", "attributes": {"a": "text"}, "multiple": ["b"]}, "unknown attribute"),
        ({"kind": "structs", "attributes": {"a": "text"}, "multiple": "a"}, "list of names"),
        ({"kind": "structs", "attributes": {"a": "text"}, "fields": {}}, "unknown entry 'fields'"),
        ({"kind": "structs", "attributes": {"event_type": "text"}}, "in every schema"),
        ({"kind": "structs", "attributes": {"a": "text", "a.b": "text"}}, "is nested in"),
        ({"kind": "struct", "attributes": {"a": "text"}}, "did you mean 'structs'"),
    ],
)
def test_mistakes_in_documents(spec: dict[str, Any], what: str) -> None:
    with pytest.raises(SchemaError, match=what) as error:
        Schema.from_dict({"attributes": {"items": spec}})
    assert "attribute 'items'" in str(error.value)


def test_nesting_has_a_limit() -> None:
    spec: Any = "text"
    for _ in range(2000):
        spec = {"kind": "structs", "attributes": {"a": spec}}
    with pytest.raises(SchemaError, match="nested deeper than 8 levels"):
        Schema.from_dict({"attributes": {"items": spec}})


def test_a_name_cannot_be_both_a_list_and_a_prefix() -> None:
    attributes = {**DOCUMENT["attributes"], "items.qty": "text"}
    with pytest.raises(SchemaError, match=r"'items\.qty' is nested in attribute 'items'"):
        Schema.from_dict({**DOCUMENT, "attributes": attributes})


def test_a_list_cannot_change_when_a_schema_is_extended() -> None:
    wider = Schema.from_dict(SCHEMA.create_attribute("n", "integer").to_dict())
    wider.check_extends(SCHEMA)
    other = {**DOCUMENT["attributes"]["items"], "multiple": []}
    with pytest.raises(SchemaError, match="'items': the attributes of its elements were changed"):
        Schema.from_dict({**DOCUMENT, "attributes": {"items": other}}).check_extends(SCHEMA)


def test_elements_of_an_event() -> None:
    given = [{"qty": 1.0, "tags": ["a", "a", "b"]}, None, {"colour": None, "size": 4}, {}]
    event = SCHEMA.event({"items": given})
    assert event.values["items"] == (given[0], given[2], given[3]), "as published"
    first, second, third = event.elements["items"]
    assert (first.values["qty"], first.values["tags"]) == ((1,), ("a", "b"))
    assert second.values.keys() == third.values.keys() == {"event_type"}
    assert event.ignored == ("items.size",)
    assert not SCHEMA.event({"items": []}).elements
    assert not SCHEMA.event({}).elements
    assert pickle.loads(pickle.dumps(event)) == event


@pytest.mark.parametrize(
    ("items", "what"),
    [
        (5, "5 is a number, expected an object"),
        (["a"], "'a' is text, expected an object"),
        ([{"qty": 1}, {"qty": "one"}], "'qty': 'one' is text"),
        ([{"qty": [1, 2]}], "'qty' is unique but has 2 values"),
        ([[{"qty": 1}]], "is a list, expected an object"),
    ],
)
def test_elements_that_are_refused(items: Any, what: str) -> None:
    with pytest.raises(EventError, match=what) as error:
        SCHEMA.event({"items": items})
    assert error.value.attribute == "items"


def test_the_rule_for_unknown_attributes_is_that_of_the_schema() -> None:
    for unknown in ("ignore", "refuse"):
        schema = Schema.from_dict({**DOCUMENT, "unknown": unknown})
        domain = schema.attributes["items"]
        assert isinstance(domain, Structs)
        assert domain.element.unknown == unknown
        assert domain == SCHEMA.attributes["items"]


def test_satisfied_by_one_element() -> None:
    events: list[Any] = [
        [{"qty": 1, "colour": "red"}, {"qty": 5, "colour": "blue"}],
        [{"qty": 5, "colour": "red"}],
        [{}],
        [],
        None,
    ]
    text = "some i in items (i.qty > 2 and i.colour = red)"
    both = (text, f"not {text}")
    found = [
        tuple(satisfies(parse(each, SCHEMA), {"items": items}, SCHEMA) for each in both)
        for items in events
    ]
    assert found == [(False, True), (True, False), (False, True), (False, False), (False, False)]


def test_explanations_name_the_nearest_element() -> None:
    condition = parse("some i in items (i.qty > 2 and i.colour = red)", SCHEMA)
    items = [{"colour": "blue"}, {"qty": 1, "colour": "red"}]
    shown = str(explain(condition, {"items": items}, SCHEMA))
    assert "none of 2 elements satisfies it; the nearest is element 2: no i.qty > 2" in shown
    assert "element 2 satisfies it" in str(
        explain(condition, {"items": [{}, {"qty": 3, "colour": "red"}]}, SCHEMA)
    )
    assert "the only element: no i.qty > 2 (qty is not bound)" in str(
        explain(condition, {"items": {"colour": "red"}}, SCHEMA)
    )
    assert "items is not bound" in str(explain(condition, {}, SCHEMA))
    tags = parse("some i in items (i.tags > b and i.tags < d)", SCHEMA)
    mixed = explain(tags, {"items": [{"tags": ["a", "e"]}]}, SCHEMA)
    assert "no one value of tags" in str(mixed)
