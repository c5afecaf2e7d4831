"""Events and the rules R1 to R3, each refusal with its rule and attribute."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tamis import Schema
from tamis.errors import EventError
from tamis.model.event import Event

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "price": "decimal",
            "tags": "text",
            "seller.name": "text",
            "seller.address.city": "text",
            "image": "opaque",
            "images": "opaque",
            "other": "integer",
        },
        "event_types": {
            "offer": {
                "price": "mandatory",
                "tags": "optional",
                "seller.name": "optional",
                "seller.address.city": "optional",
                "image": "optional",
                "images": "optional multiple",
            },
            "tagged": {"tags": "mandatory multiple"},
        },
    }
)
SINGLE = Schema.from_dict({"attributes": {"n": "integer"}})

CONSISTENT: list[tuple[dict[str, Any], dict[str, tuple[Any, ...]]]] = [
    ({"price": 5}, {"price": (5.0,)}),
    ({"price": [5]}, {"price": (5.0,)}),
    ({"price": [5, 5.0]}, {"price": (5.0,)}),
    ({"price": (5, None)}, {"price": (5.0,)}),
    ({"price": 5, "tags": None}, {"price": (5.0,)}),
    ({"price": 5, "tags": []}, {"price": (5.0,)}),
    ({"price": 5, "seller": {"name": "Z"}}, {"price": (5.0,), "seller.name": ("Z",)}),
    ({"price": 5, "seller.name": "Z"}, {"price": (5.0,), "seller.name": ("Z",)}),
    (
        {"price": 5, "seller.name": None, "seller": {"name": "Z"}},
        {"price": (5.0,), "seller.name": ("Z",)},
    ),
    (
        {"price": 5, "seller": {"name": "Z"}, "seller.name": None},
        {"price": (5.0,), "seller.name": ("Z",)},
    ),
    (
        {"price": 5, "seller": {"address": {"city": "P"}, "name": None}},
        {"price": (5.0,), "seller.address.city": ("P",)},
    ),
    (
        {"price": 5, "seller": {"address.city": "P"}},
        {"price": (5.0,), "seller.address.city": ("P",)},
    ),
    ({"price": 5, "unknown": None}, {"price": (5.0,)}),
    ({"price": 5, "image": [1, 2]}, {"price": (5.0,), "image": ([1, 2],)}),
    ({"price": 5, "images": [{"a": 1}, b"x"]}, {"price": (5.0,), "images": ({"a": 1}, b"x")}),
]


@pytest.mark.parametrize(("given", "values"), CONSISTENT)
def test_a_consistent_event_binds(given: dict[str, Any], values: dict[str, Any]) -> None:
    event = SCHEMA.event({"event_type": "offer", **given})
    assert event.values == {"event_type": ("offer",), **values}
    assert event == Event.of(SCHEMA, event)  # type: ignore[arg-type]


def test_both_types_together_are_wider() -> None:
    event = SCHEMA.event(
        {"event_type": ["offer", "tagged", "offer"], "price": 1, "tags": {"a", "b"}}
    )
    assert event.types == ("offer", "tagged")
    assert set(event.values["tags"]) == {"a", "b"}


@pytest.mark.parametrize("given", [None, [], (), set(), [None], "event", ["event"], {"event"}])
def test_the_only_event_type_may_be_left_out(given: Any) -> None:
    assert SINGLE.event({"event_type": given, "n": 1}).types == ("event",)
    assert SINGLE.event({"n": 1}).types == ("event",)


REFUSED: list[tuple[dict[Any, Any], str, str | None, str]] = [
    ({"price": 5}, "R1", "event_type", "names no event type"),
    ({"event_type": None, "price": 5}, "R1", "event_type", "names no event type"),
    ({"event_type": [], "price": 5}, "R1", "event_type", "names no event type"),
    ({"event_type": ()}, "R1", "event_type", "names no event type"),
    ({"event_type": set()}, "R1", "event_type", "names no event type"),
    ({"event_type": [None]}, "R1", "event_type", "names no event type"),
    ({"event_type": "ofer"}, "R1", "event_type", "did you mean 'offer'"),
    ({"event_type": ["offer", "x"]}, "R1", "event_type", "unknown event type 'x'"),
    ({"event_type": 5}, "R1", "event_type", "5 is not an event type"),
    ({"event_type": [["offer"]]}, "R1", "event_type", "is not an event type"),
    ({"event_type": {"offer": 1}}, "R1", "event_type", "is not an event type"),
    ({"event_type": "offer"}, "R2", "price", "'price' is mandatory"),
    ({"event_type": "offer", "price": None}, "R2", "price", "'price' is mandatory"),
    ({"event_type": "offer", "price": []}, "R2", "price", "'price' is mandatory"),
    ({"event_type": "offer", "price": [1, 2]}, "R2", "price", "unique but has 2 values"),
    (
        {"event_type": "offer", "price": "5"},
        "R2",
        "price",
        "event type offer: 'price': '5' is text",
    ),
    ({"event_type": "offer", "price": [5, "x"]}, "R2", "price", "'price': element 2: 'x' is text"),
    ({"event_type": "offer", "price": [None, "x", 5]}, "R2", "price", "element 2: 'x' is text"),
    ({"event_type": "offer", "price": {"x"}}, "R2", "price", "'price': 'x' is text"),
    ({"event_type": "offer", "price": {"a": 5}}, "R2", "price", "is an object"),
    ({"event_type": "offer", "price": True}, "R2", "price", "is a boolean"),
    ({"event_type": "offer", "price": 5, "tags": ["a", "b"]}, "R2", "tags", "unique but has 2"),
    ({"event_type": "offer", "price": 5, "image": object()}, "R2", "image", "bytes or JSON"),
    ({"event_type": ["offer", "tagged"], "price": 5}, "R2", "tags", "offer + tagged"),
    ({"event_type": "tagged", "tags": "a", "price": 5}, "R3", "price", "has no attribute 'price'"),
    ({"event_type": "offer", "price": 5, "other": 1}, "R3", "other", "has no attribute 'other'"),
    ({"event_type": "offer", "price": 5, "prize": 1}, "R3", "prize", "did you mean 'price'"),
    (
        {"event_type": "offer", "price": 5, "seller": 1},
        "R3",
        "seller",
        "unknown attribute 'seller'",
    ),
    (
        {"event_type": "offer", "price": 5, "seller": {"x": 1}},
        "R3",
        "seller.x",
        "unknown attribute",
    ),
    ({"event_type": "offer", "price": 5, 7: 1}, "R3", None, "unknown attribute 7"),
    (
        {"event_type": "offer", "price": 5, "seller.name": "a", "seller": {"name": "b"}},
        "R2",
        "seller.name",
        "bound twice",
    ),
]


@pytest.mark.parametrize(("given", "rule", "attribute", "words"), REFUSED)
def test_a_refusal_names_rule_and_attribute(
    given: dict[Any, Any], rule: str, attribute: str | None, words: str
) -> None:
    with pytest.raises(EventError) as caught:
        SCHEMA.event(given)
    error = caught.value
    assert words in str(error)
    assert (error.rule, error.attribute, error.row) == (rule, attribute, None)
    assert f"(rule {rule})" in str(error)
    placed = pickle.loads(pickle.dumps(error.at_row(7)))
    assert (placed.rule, placed.attribute, placed.row) == (rule, attribute, 7)
    assert str(placed).startswith("event 7: ")


@pytest.mark.parametrize("given", [None, 5, "x", [("a", 1)], b""])
def test_an_event_is_an_object(given: Any) -> None:
    with pytest.raises(EventError, match="an event is an object"):
        SCHEMA.event(given)


def test_odd_events_are_refused_shortly() -> None:
    deep: dict[str, Any] = {"x": 1}
    for _ in range(5000):
        deep = {"x": deep}
    ring: list[Any] = []
    ring.append(ring)  # cannot be shown
    other = Schema.from_dict({"attributes": {"price": "text"}}).event({"price": "cheap"})
    offer = {"event_type": "offer", "price": 1}
    given: Any
    for given, words in (
        ({**offer, **deep}, "levels deep"),
        (other, "validated against"),
        ({**offer, "price": ring}, "price"),
    ):
        with pytest.raises(EventError, match=words) as caught:
            SCHEMA.event(given)
        assert len(str(caught.value)) < 300
