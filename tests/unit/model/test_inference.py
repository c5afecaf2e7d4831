"""A typed schema from a sample of events."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Engine, parse
from tamis.errors import EventError, SchemaError
from tamis.model.frame_values import without_missing
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies

EVENTS: list[dict[str, Any]] = [
    {
        "n": 1,
        "d": 1,
        "b": True,
        "t": "2026-01-31",
        "x": "oak",
        "m": 1,
        "big": 2**53 + 1,
        "none": None,
        "tags": ["a", "b"],
        "user": {"id": 1, "org": {"name": "x"}},
        "items": [{"sku": "A", "parts": [{"n": 1}]}, {"sku": "B"}],
        "either": {"inner": 1},
        "huge": 2**70,
        "empty": {},
        "bad`name": 1,
    },
    {
        "n": None,
        "d": 1.5,
        "b": None,
        "t": "2026-01-31T12:00:00Z",
        "x": "2026-01-31",
        "m": "1",
        "big": 0.5,
        "tags": "c",
        "user": {"id": 2**40},
        "items": [],
        "either": 5,
    },
]
RIGHT = {
    "n": "integer",
    "d": "decimal",
    "b": "boolean",
    "t": "timestamp",
    "x": "text",
    "m": "dynamic",
    "big": "dynamic",
    "tags": "text",
    "user.id": "integer",
    "user.org.name": "text",
    "items": {
        "kind": "structs",
        "attributes": {
            "sku": "text",
            "parts": {"kind": "structs", "attributes": {"n": "integer"}},
        },
        "multiple": ["parts"],
    },
    "either": "dynamic",
    "huge": "opaque",
}


def test_each_attribute_has_the_domain_of_all_its_values() -> None:
    schema = Schema.infer(EVENTS, "order")
    document = schema.to_dict()
    assert document["attributes"] == RIGHT
    uses = document["event_types"]["order"]
    assert {name for name, use in uses.items() if use == "optional multiple"} == {
        "tags",
        "items",
    }
    assert document["unknown"] == "ignore"
    for event in EVENTS:
        schema.event(event)
    assert [each.values["sku"] for each in schema.event(EVENTS[0]).elements["items"]] == [
        ("A",),
        ("B",),
    ]


def test_lines_of_json_tables_and_frames() -> None:
    plain = [{"a": 1, "b": {"c": "x"}}, {"a": 2.5, "b": {"c": None}}]
    right = Schema.infer(plain)
    lines = "\n".join(map(json.dumps, plain))
    for form in (lines, lines.encode(), lines.splitlines(), pa.Table.from_pylist(plain)):
        assert Schema.infer(form) == right
    frame = pytest.importorskip("pandas").DataFrame(
        {"at": [datetime(2026, 1, 31, tzinfo=UTC)], "n": [5]}
    )
    found = Schema.infer(frame).to_dict()["attributes"]
    assert found == {"at": "timestamp", "n": "integer"}
    mixed = pytest.importorskip("pandas").DataFrame({"m": [1, "one"], "n": [1, 2]}, [5, 6])
    assert Schema.infer(mixed).to_dict()["attributes"] == {"m": "dynamic", "n": "integer"}
    gaps = pytest.importorskip("pandas").DataFrame({"n": [1.5, float("nan")]}, index=[5, 6])
    assert Schema.infer(gaps).to_dict()["attributes"] == {"n": "decimal"}


def test_event_types_are_those_of_the_sample() -> None:
    schema = Schema.infer([{"event_type": "push", "n": 1}, {"event_type": ["fork", "push"]}])
    assert list(schema.event_types) == ["push", "fork"]
    assert schema.event({"event_type": "fork", "n": 5}).values["n"] == (5,)
    mixed = Schema.infer([{"event_type": "push"}, {"event_type": None, "n": 1}, {}], "other")
    assert list(mixed.event_types) == ["push", "other"]
    assert mixed.event({}).types == ("other",)
    for wrong in (5, {"a": 1}, ["push", ""]):  # no schema takes it but the open one
        with pytest.raises(SchemaError, match=r"event 1: 'event_type' is .* the open schema"):
            Schema.infer([{}, {"event_type": wrong}])


SPECIAL: list[list[dict[str, Any]]] = [
    [{"a": [[1, 2], [3]]}, {"a": 5}],  # a list in a list
    [{"a": [{"b": 1}, 5, None]}, {"a": {"b": "x"}}],
    [{"a": [{"b": 1}]}, {"a": {"b": 2}}, {"a": []}],  # a single element may be bare
    [{"a": [{"b": 1}], "a.b": 5}],
    [{"a": {"b": 1}, "a.b": 2, "c": 1}],  # bound twice
    [{"a": {"b": 1}, "a.b": {"c": 2}}],
    [{"a": 1e400}, {"a": 1}],
    [{"a": 10**30}, {"a": "x"}],
    [{"a": "\ud800"}],
    [{"a": float("nan")}, {"a": 1}],
    [{"a": {}}, {"a": {"b": 1}}],
    [{"a": [{}, {}]}],
    [{"a": [{"event_type": 5, "b": 1}]}],
    [{"": 1, "a..b": 2, "x`y": 3, "a.": {"": 1}}],
]


@pytest.mark.parametrize("sample", SPECIAL, ids=str)
def test_special_samples_are_accepted(sample: list[dict[str, Any]]) -> None:
    schema = Schema.infer(sample)
    engine = Engine(schema)
    engine.match_batch(sample, missing="absent")


def test_lists_of_lists_are_opaque_and_what_fits_nowhere_is_left_out() -> None:
    assert _domains(SPECIAL[0]) == {"a": "opaque"}
    assert _domains(SPECIAL[1]) == {"a": "dynamic"}
    assert _domains(SPECIAL[2])["a"]["attributes"] == {"b": "integer"}
    assert _domains(SPECIAL[4]) == {"c": "integer"}
    assert _domains(SPECIAL[6]) == {}


def _domains(sample: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = Schema.infer(sample).to_dict()["attributes"]
    return found


KEYS = st.sampled_from(["a", "b", "a.b", "b.a", "c", "event_type ", ""])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.sampled_from(["", "x", "2026-01-31", "\ud800", 1, 2.5, 2**53 + 1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["push", None, ["push", "fork"], [], ["fork", None]])
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
TYPED = st.tuples(OBJECTS, TYPES).map(lambda pair: {**pair[0], "event_type": pair[1]})


@given(st.lists(OBJECTS | TYPED, max_size=4))
def test_a_schema_accepts_the_sample_it_is_inferred_from(sample: list[dict[str, Any]]) -> None:
    schema = Schema.infer(sample)
    Engine(schema).match_batch(sample, missing="absent")
    assert Schema.from_dict(schema.to_dict()) == schema
    again = Schema.infer("\n".join(json.dumps(event) for event in sample))
    assert again == schema


@given(st.lists(OBJECTS, min_size=1, max_size=3))
def test_an_engine_moves_to_it_or_names_what_does_not_fit(sample: list[dict[str, Any]]) -> None:
    engine = Engine()
    texts = ["a = 1", "b = x", "a.b exists", "c is null", "some i in a (i.b = 1)", "c", "b > 2"]
    for text in texts:
        engine.subscribe(text, id=text)
    schema = Schema.infer(sample)
    try:
        engine.declare(schema)
    except SchemaError as why:
        named = [text for text in texts if f"{text!r}: " in str(why)]
        assert named
        assert engine.schema.is_open
        for text in named:
            engine.unsubscribe(text)
        engine.declare(schema)
    found = engine.match_batch(sample, missing="absent")
    for event, ids in zip(sample, found, strict=True):
        clean = schema.event(without_missing(event))
        kept = [text for text in texts if text in engine]
        assert sorted(ids) == sorted(
            text for text in kept if satisfies(parse(text, schema), clean, schema)
        )
    engine.check()


@pytest.mark.parametrize("wrong", [5, {"a": 1}, [5], ["{"], "nonsense"])
def test_what_is_no_sample_is_refused(wrong: object) -> None:
    with pytest.raises(EventError):
        Schema.infer(wrong)
