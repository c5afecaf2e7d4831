"""The code of a shape encodes an event as the general way does, or leaves the event to it."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Engine, Schema
from tamis.encode.encoder import Encoder
from tamis.encode.shapes.event_shapes import EventShapes
from tamis.errors import EventError
from tamis.model.event import Event

DOMAINS = {
    "size": {"kind": "enumerated", "values": ["L", "M", "S"]},
    "thing": {"kind": "hierarchy", "tree": {"furniture": {"table": {}, "chair": {}}}},
}
ATTRIBUTES = {
    "n": "integer",
    "q": {"kind": "integer", "low": 0, "high": 3},
    "d": "decimal",
    "s": "text",
    "b": "boolean",
    "at": "timestamp",
    "size": "size",
    "thing": "thing",
    "o": "opaque",
    "any": "dynamic",
    "p.q": "decimal",
}
CLOSED = Schema.from_dict(
    {
        "domains": DOMAINS,
        "attributes": ATTRIBUTES,
        "event_types": {
            "one": dict.fromkeys(ATTRIBUTES, "optional") | {"n": "mandatory"},
            "many": dict.fromkeys(ATTRIBUTES, "optional multiple"),
            "few": {"d": "optional", "s": "mandatory"},
        },
        "default_event_type": "one",
    }
)
IGNORING = Schema.from_dict({"domains": DOMAINS, "attributes": ATTRIBUTES, "unknown": "ignore"})
ALONE = Schema.from_dict({"attributes": {"d": "decimal", "s": "text", "q": "integer"}})
VALUES: list[Any] = [
    None, True, False, 0, 1, 3, 4, -1, 2**53, 2**53 + 1, -(2**53), 2**63 - 1, -(2**63), 2**63,
    0.0, -0.0, 0.1, 1.0, -2.5, 5e-324, 1.7976931348623157e308, math.nan, math.inf, -math.inf,
    "", "a", "old", "old chair", "S", "table", "\ud800", "\U0010ffff", "2026-01-31T12:00:00Z",
    b"bytes", [], [None], ["a"], ["a", "b"], [1, 2.5], (1,), {"S"}, {}, {"q": 1}, {"r": [1]},
    datetime(1, 1, 1, tzinfo=UTC), date(2026, 1, 31),
    np.int64(3), np.float64(-0.5), np.float32(0.5), np.bool_(True), np.str_("a"),
]  # fmt: skip
NAMES = [*ATTRIBUTES, "p", "unknown", "other", "p.r", "event_type"]
TYPES = ["one", "many", "few", "none", ["one"], ["one", "many"], None, 3]


def events() -> st.SearchStrategy[dict[str, Any]]:
    return st.lists(st.sampled_from(NAMES), unique=True, max_size=6).flatmap(
        lambda names: st.fixed_dictionaries(
            {n: st.sampled_from(TYPES if n == "event_type" else VALUES) for n in names}
        )
    )


def encoder_of(schema: Schema) -> Encoder:
    """An encoder with some constants, of which one has a pattern."""
    engine = Engine(schema)
    engine.subscribe("s = old or s > M")
    if "n" in engine.schema.attributes:
        engine.subscribe('s like "*hair" and n > 3')
    return engine.encoder


ENCODERS = {
    "closed": encoder_of(CLOSED),
    "ignoring": encoder_of(IGNORING),
    "alone": encoder_of(ALONE),
}


def general(encoder: Encoder, event: dict[str, Any]) -> Any:
    """The pairs and the ignored names of an event, or None if it is refused."""
    try:
        valid = Event.of(encoder.schema, event)
    except EventError:
        return None
    pairs = encoder.events([valid]).pairs
    return pairs.attribute.tolist(), pairs.code.tolist(), sorted(valid.ignored)


def by_shape(shapes: EventShapes, event: dict[str, Any]) -> Any:
    """The same by the code of the shape, or None if it leaves the event to the general way."""
    for _ in range(3):  # code is made when a shape comes again, and then for one without null
        shapes.encode(event)
    shape = shapes.encode(event)
    if shape is None:
        return None
    pairs = shape.pairs()
    assert pairs.starts.tolist() == [0, len(pairs.code)]
    return pairs.attribute.tolist(), pairs.code.tolist(), sorted(shape.ignored)


@pytest.mark.parametrize("name", ENCODERS)
@given(st.data())
def test_shapes_encode_as_the_general_way_does(name: str, data: st.DataObject) -> None:
    encoder = ENCODERS[name]
    event = data.draw(events())
    found = by_shape(EventShapes(encoder), event)
    assert found is None or found == general(encoder, event)


@pytest.mark.parametrize("name", ENCODERS)
@given(st.data())
def test_a_shape_made_for_one_event_serves_others(name: str, data: st.DataObject) -> None:
    encoder = ENCODERS[name]
    shapes = EventShapes(encoder)
    names = data.draw(st.lists(st.sampled_from([*ATTRIBUTES, "other"]), unique=True, max_size=4))
    many = data.draw(
        st.lists(st.fixed_dictionaries({n: st.sampled_from(VALUES) for n in names}), max_size=12)
    )
    for event in many:
        found = by_shape(shapes, event)
        assert found is None or found == general(encoder, event)


@pytest.mark.parametrize("name", ENCODERS)
@given(st.lists(events(), max_size=12))
def test_batches_of_dicts(name: str, many: list[dict[str, Any]]) -> None:
    encoder = ENCODERS[name]
    shapes = EventShapes(encoder)
    for _ in range(2):
        expected = [general(encoder, event) for event in many]
        encoder.ignored.clear()
        batch = shapes.batch(many, None)
        if None in expected:
            assert batch is None
        if batch is not None:
            for row, (attributes, codes, _) in enumerate(expected):
                part = batch[row : row + 1].pairs
                assert (part.attribute.tolist(), part.code.tolist()) == (attributes, codes)
            assert sum(encoder.ignored.values()) == sum(len(each[2]) for each in expected)


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("closed", {"n": 1, "d": 2.5, "s": "x", "b": True, "size": "S", "thing": "table"}),
        ("closed", {"event_type": "few", "s": "old", "d": -1}),
        ("closed", {"n": 1, "at": "2026-01-31", "o": {"a": 1}}),
        ("ignoring", {"n": 1, "unknown": {"a": 1}, "other": 3}),
        ("alone", {"d": -0.0, "s": None, "q": 3}),
    ],
)
def test_plain_events_have_code_of_their_own(name: str, event: dict[str, Any]) -> None:
    encoder = ENCODERS[name]
    found = by_shape(EventShapes(encoder), event)
    assert found is not None
    assert found == general(encoder, event)


def test_code_is_made_again_when_the_schema_has_changed() -> None:
    engine = Engine()
    engine.subscribe("a = 1", id="first")
    event = {"a": 1, "b": 2}
    assert [engine.match(event) for _ in range(3)] == [["first"]] * 3
    engine.subscribe("b = 2", id="second")
    assert [sorted(engine.match(event)) for _ in range(3)] == [["first", "second"]] * 3


def test_publishers_who_never_repeat_a_shape_cost_no_memory() -> None:
    shapes = EventShapes(encoder_of(IGNORING))
    for number in range(10_000):
        event = {"n": 1, f"unknown{number}": 1}
        for _ in range(1 + number % 2):
            shapes.encode(event)
    assert len(shapes) <= 256


class Row(list[int]):
    """A list, as a library may have its own."""


@pytest.mark.parametrize("value", [Row(), Row([1]), ()])
def test_lists_of_any_class_go_the_general_way(value: Any) -> None:
    schema = Schema.from_dict({"attributes": {"blob": "opaque"}, "unknown": "ignore"})
    for name in ("blob", "other"):
        shapes = EventShapes(Encoder(schema))
        assert by_shape(shapes, {name: 1}) is not None
        assert shapes.encode({name: value}) is None


def test_an_event_with_very_many_names_is_not_remembered() -> None:
    schema = Schema.from_dict({"attributes": {"a": "integer"}, "unknown": "ignore"})
    shapes = EventShapes(Encoder(schema))
    assert by_shape(shapes, {"a": 1, **{f"n{number}": 1 for number in range(5000)}}) is None
    assert len(shapes) == 0


def test_very_long_names_are_not_kept() -> None:
    engine = Engine(IGNORING)
    shapes = EventShapes(engine.encoder)
    for event in ({"n": 1, "x" * 300: 1}, {"n": 1, "event_type": "x" * 300}):
        assert by_shape(shapes, event) is None
    assert len(shapes) == 0
    for length in (256, 1_000_000):
        engine.match({"n": 1, "x" * length: 1})
    assert engine.report().ignored == {"x" * 256: 1, "x" * 256 + "…": 1}
