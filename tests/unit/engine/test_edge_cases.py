"""Edges where the doors, the language and the schema meet."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tamis import Engine, Schema, TamisError, parse
from tamis.errors import EventError, NeverTrueError, SchemaError, SubscriptionError
from tamis.model.condition import And, Not, Predicate
from tamis.model.semantics import satisfies
from tests.schemas import one_type

SCHEMA = Schema.from_dict(
    one_type("event", {"i": "integer", "d": "decimal", "t": "text", "m": "text*"})
)


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        ("i = 9007199254740993.0", 9007199254740993, True),
        ("i = 9007199254740993.0", 9007199254740992, False),
        ("i >= 9223372036854775807.0", 2**63 - 1, True),
        ("i < 5.00000000000000000", 4, True),
    ],
)
def test_whole_numbers_with_a_point_are_exact(condition: str, value: int, holds: bool) -> None:
    engine = Engine(SCHEMA)
    engine.subscribe(condition, id=1)
    assert engine.match({"i": value}) == [1] * holds


@pytest.mark.parametrize("text", ["i = 1.0000000000000000001", "i <= 9007199254740993.5"])
def test_a_number_that_no_double_holds_is_refused(text: str) -> None:
    with pytest.raises(TamisError, match="not exact as a double"):
        Engine(SCHEMA).subscribe(text)


def test_an_attribute_within_another_is_refused() -> None:
    schema = Schema.from_dict({"attributes": {"s.r": "integer"}})
    with pytest.raises(SchemaError, match="is nested in"):
        schema.create_attribute("s", "opaque")
    with pytest.raises(SchemaError, match="is nested in"):
        Schema.from_dict({"attributes": {"s": "opaque", "s.r.q": "integer"}})


def test_a_batch_of_another_engine_is_refused() -> None:
    one, other = Engine(SCHEMA), Engine(SCHEMA)
    one.subscribe("t = zz", id=1)
    other.subscribe("t = a", id=1)
    with pytest.raises(EventError, match="another engine"):
        other.match_batch(one.encode([{"t": "zz"}]))


def test_a_long_list_under_many_clauses_is_kept_once() -> None:
    either = " or ".join(f"i = {k}" for k in range(200))
    values = ", ".join(f"v{k}" for k in range(9000))
    engine = Engine(SCHEMA)
    engine.subscribe(f"({either}) and not t in ({values})", id="x")
    assert len(engine.matcher) == 1
    assert engine.match({"i": 7, "t": "v9000"}) == ["x"]
    assert engine.match({"i": 7, "t": "v7"}) == engine.match({"i": 200, "t": "a"}) == []


def test_event_types_are_never_missing() -> None:
    for text in ("event_type missing", "not event_type exists and i = 1"):
        with pytest.raises(NeverTrueError):
            Engine(SCHEMA).subscribe(text)


def test_a_list_without_values_is_absent_at_both_doors() -> None:
    schema = Schema.from_dict(
        {
            "attributes": {"a": "integer", "c": "decimal"},
            "event_types": {"x": {"a": "mandatory"}, "y": {"c": "optional"}},
        }
    )
    engine = Engine(schema)
    engine.subscribe("c missing", id=1)
    for nothing in (None, [], [None]):
        assert engine.match({"event_type": "x", "a": 1, "c": nothing}) == [1]
        assert engine.match({"event_type": "x", "a": 1, "unknown": nothing}) == [1]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([["a", "b"]], pa.list_view(pa.string())),
        pa.array([["a", "b"]], pa.large_list_view(pa.string())),
        pa.array([["a", "b"]], pa.list_(pa.string(), 2)),
    ],
    ids=["list_view", "large_list_view", "fixed_size_list"],
)
def test_every_layout_of_lists_is_read(column: Any) -> None:
    engine = Engine(SCHEMA)
    engine.subscribe("m contains a and m contains b", id=1)
    assert list(engine.match_batch(pa.table({"m": column}))) == [[1]]


def test_run_ends_are_read_and_maps_are_refused() -> None:
    engine = Engine(SCHEMA)
    engine.subscribe("t = a", id=1)
    runs = pc.run_end_encode(pa.array(["a", "a", "b"]))
    assert list(engine.match_batch(pa.table({"t": runs}))) == [[1], [1], []]
    pairs = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    with pytest.raises(EventError):
        engine.match_batch(pa.table({"i": pairs}))


def test_bytes_that_are_not_text_are_refused_at_the_bulk_door() -> None:
    bad = pa.array([b"\xff"]).view(pa.string())
    for table in (
        {"id": bad, "condition": ["i = 1"]},
        {"id": [1], "condition": bad},
    ):
        with pytest.raises(SubscriptionError, match="UTF8"):
            Engine(SCHEMA).subscribe_table(pa.table(table))


def test_a_progress_that_raises_changes_nothing() -> None:
    engine = Engine(SCHEMA)
    with pytest.raises(ZeroDivisionError):
        engine.subscribe_table(
            pa.table({"id": [1], "condition": ["i = 1"]}), progress=lambda a, b: 1 // 0
        )
    assert len(engine) == 0


def test_what_only_equals_an_id_is_refused() -> None:
    engine = Engine(SCHEMA)
    engine.subscribe("i = 1", id=1)
    for id in (1.0, True):
        with pytest.raises(SubscriptionError):
            engine.unsubscribe(id)  # type: ignore[arg-type]
    assert len(engine) == 1


ENGINE = Engine(SCHEMA)
MISTAKES: dict[str, Any] = {
    "text for a condition": lambda: satisfies("i = 1", {"i": 1}, SCHEMA),  # type: ignore[arg-type]
    "no schema": lambda: satisfies(parse("i = 1"), {"i": 1}, None),  # type: ignore[arg-type]
    "unchecked constant": lambda: satisfies(parse("i = x"), {"i": 1}, SCHEMA),
    "parse with a dict": lambda: parse("i = 1", {}),  # type: ignore[arg-type]
    "extend with nothing": lambda: ENGINE.extend(None),  # type: ignore[arg-type]
    "arrow of nothing": lambda: Schema.from_arrow(None),
    "deep spark": lambda: Schema.from_spark('{"type":' * 100_000),
    "load nothing": lambda: Schema.load(None),  # type: ignore[arg-type]
    "load a null": lambda: Schema.load("\0"),
    "uses as a list": lambda: SCHEMA.create_event_type("z", ["i"]),  # type: ignore[arg-type]
    "no attribute": lambda: SCHEMA.extend_event_type("event", None),  # type: ignore[arg-type]
    "predicate of nothing": lambda: ENGINE.subscribe(Predicate(None, "=", 1)),  # type: ignore[arg-type]
    "not of nothing": lambda: ENGINE.subscribe(Not(None)),  # type: ignore[arg-type]
    "and of text": lambda: ENGINE.subscribe(And(("i = 1", "i = 2"))),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_an_error_of_ours(mistake: str) -> None:
    with pytest.raises(TamisError):
        MISTAKES[mistake]()
