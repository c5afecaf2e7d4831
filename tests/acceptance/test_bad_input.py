"""Bad input: each is refused with a `TamisError` that can be understood, and changes nothing.

Sizes are those of an attack or an accident. None of these may hang, exhaust the stack or leave a
half-made subscription behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema, TamisError
from tamis.errors import (
    ConditionError,
    EventError,
    LimitError,
    NeverTrueError,
    SubscriptionError,
)
from tamis.model.condition import And, Condition, Not, Or, Predicate

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "price": "decimal",
            "quantity": "integer",
            "title": "text",
            "photo": "opaque",
            "sold": "boolean",
            "closes": "timestamp",
        },
        "unknown": "refuse",
    }
)
EVENT = {"price": 3, "quantity": 2, "title": "old chair", "sold": False}
DEEP = 10_000
TEN_MEGABYTES = 10 * 1024 * 1024


def nested(level: Callable[[Any], Any], inner: Any) -> Any:
    for _ in range(DEEP):
        inner = level(inner)
    return inner


def alternating(inner: Condition) -> Condition:
    """`and` and `or` in turn, so that no level can be merged into the one around it."""
    leaf = Predicate("price", "<", 5)
    for level in range(DEEP):
        inner = (And if level % 2 else Or)((leaf, inner))
    return inner


LEAF = Predicate("price", "<", 5)

CONDITIONS: dict[str, tuple[Callable[[], Any], type[TamisError], str]] = {
    "unknown attribute": (lambda: "prise < 5", ConditionError, "did you mean 'price'"),
    "number where text belongs": (lambda: "title = 5", ConditionError, "is text"),
    "text where a number belongs": (lambda: 'price = "5"', ConditionError, "expected a number"),
    "boolean where a number belongs": (lambda: "price = true", ConditionError, "boolean"),
    "no timestamp": (lambda: 'closes < "soon"', ConditionError, "ISO 8601"),
    "comparator that is not there": (lambda: "sold < true", ConditionError, "no comparator"),
    "NaN by name": (lambda: "price < NaN", ConditionError, "expected a number"),
    "NaN in a program": (
        lambda: Predicate("price", "<", float("nan")),
        ConditionError,
        "not a finite number",
    ),
    "infinity": (lambda: "price < 1e999", ConditionError, "too large"),
    "2^63": (lambda: f"quantity < {2**63}", ConditionError, "64-bit"),
    "a number of 10,000 digits": (lambda: f"quantity < {'9' * DEEP}", ConditionError, "64-bit"),
    "lone surrogate": (lambda: 'title = "\\ud800"', ConditionError, "surrogate"),
    "never true": (lambda: "price < 5 and price > 9", NeverTrueError, "never true"),
    "nothing": (lambda: "", ConditionError, "empty"),
    "not text": (lambda: 5, ConditionError, "a condition is text"),
    "None": (lambda: None, ConditionError, "a condition is text"),
    "parentheses 10,000 deep": (
        lambda: "(" * DEEP + "price < 5" + ")" * DEEP,
        LimitError,
        "100 levels",
    ),
    "not 10,000 deep": (lambda: "not " * DEEP + "price < 5", LimitError, "100 levels"),
    "Not 10,000 deep": (lambda: nested(Not, LEAF), LimitError, "100 levels"),
    "And and Or 10,000 deep": (lambda: alternating(LEAF), LimitError, "100 levels"),
    "10 MB of text": (
        lambda: f'title = "{"x" * TEN_MEGABYTES}"',
        LimitError,
        "65,536 bytes",
    ),
    "10 MB of text in a program": (
        lambda: Predicate("title", "=", "x" * TEN_MEGABYTES),
        ConditionError,
        "longer than",
    ),
    "a million ors as text": (
        lambda: " or ".join(["price < 5"] * 1_000_000),
        LimitError,
        "65,536 bytes",
    ),
    "a million ors in a program": (lambda: Or((LEAF,) * 1_000_000), LimitError, "at most 10,000"),
    "a million ands in a program": (lambda: And((LEAF,) * 1_000_000), LimitError, "at most 10,000"),
    "a list of 10,001": (
        lambda: f"quantity in ({','.join(str(n) for n in range(10_001))})",
        LimitError,
        "10,000",
    ),
}

EVENTS: dict[str, tuple[Callable[[], Any], str]] = {
    "unknown attribute": (lambda: {"prise": 5}, "did you mean 'price'"),
    "wrong type": (lambda: {"price": "5"}, "is text"),
    "boolean for a number": (lambda: {"price": True}, "boolean"),
    "NaN": (lambda: {"price": float("nan")}, "not a finite number"),
    "infinity": (lambda: {"price": float("-inf")}, "not a finite number"),
    "2^63": (lambda: {"quantity": 2**63}, "64-bit"),
    "2^63 as a double": (lambda: {"quantity": 2.0**63}, "64-bit"),
    "2^100000": (lambda: {"quantity": 2**100_000}, "64-bit"),
    "2^53 + 1 for a decimal": (lambda: {"price": 2**53 + 1}, "no exact double"),
    "fraction for an integer": (lambda: {"quantity": 1.5}, "whole number"),
    "two values of a unique attribute": (lambda: {"price": [1, 2]}, "unique"),
    "lone surrogate": (lambda: {"title": "\ud800"}, "surrogate"),
    "10 MB of text": (lambda: {"title": "x" * TEN_MEGABYTES}, "longer than"),
    "objects 10,000 deep": (lambda: nested(lambda inner: {"a": inner}, 1), "levels deep"),
    "objects 10,000 deep in a number": (
        lambda: {"price": nested(lambda inner: {"a": inner}, 1)},
        "an object",
    ),
    "objects 10,000 deep in an opaque value": (
        lambda: {"photo": nested(lambda inner: {"a": inner}, 1)},
        "levels deep",
    ),
    "lists 10,000 deep": (lambda: {"price": nested(lambda inner: [inner], 1)}, "a list"),
    "lists 10,000 deep in an opaque value": (
        lambda: {"photo": nested(lambda inner: [inner], 1)},
        "levels deep",
    ),
    "a list": (lambda: [1], "an event is an object"),
    "a number": (lambda: 5, "an event is an object"),
    "text": (lambda: '{"price": 5}', "an event is an object"),
    "None": (lambda: None, "an event is an object"),
    "a key that is not text": (lambda: {5: 5}, "unknown attribute"),
    "unknown event type": (lambda: {"event_type": "evnt"}, "did you mean 'event'"),
}


@pytest.fixture
def engine() -> Engine:
    # One matcher is enough: what is refused never reaches it.
    made = Engine(SCHEMA)
    made.subscribe('price < 5 and title starts with "old"', id="a")
    made.subscribe("quantity in (1, 2) or sold = true", id="b")
    made.subscribe('title like "%table"', id=3)
    return made


def assert_unchanged(engine: Engine) -> None:
    assert engine.ids() == ["a", "b", 3]
    assert set(engine.match(EVENT)) == {"a", "b"}
    assert engine.match({"title": "a table"}) == [3]
    engine.check()


def assert_understandable(error: TamisError, said: str) -> None:
    text = str(error)
    assert said in text
    assert len(text) < 1000, "a refusal is short, however long what it refuses"


@pytest.mark.parametrize("case", CONDITIONS)
def test_bad_conditions(engine: Engine, case: str) -> None:
    make, kind, said = CONDITIONS[case]
    with pytest.raises(kind) as refusal:
        engine.subscribe(make(), id="new")
    assert_understandable(refusal.value, said)
    assert_unchanged(engine)


@pytest.mark.parametrize("case", CONDITIONS)
def test_bad_conditions_in_a_table(case: str) -> None:
    make, _, _ = CONDITIONS[case]
    condition = make()
    if not isinstance(condition, str):
        pytest.skip("a column of conditions holds text")
    engine = Engine(SCHEMA)
    engine.subscribe("price < 5", id=0)
    table = pa.table({"id": [1, 2], "condition": ["price < 9", condition]})
    with pytest.raises(ConditionError) as refusal:
        engine.subscribe_table(table)
    assert refusal.value.row == 1
    assert engine.ids() == [0]
    assert engine.match({"price": 3}) == [0]
    engine.check()


@pytest.mark.parametrize("case", EVENTS)
def test_bad_events(engine: Engine, case: str) -> None:
    make, said = EVENTS[case]
    event = make()
    with pytest.raises(EventError) as refusal:
        engine.match(event)
    assert_understandable(refusal.value, said)
    with pytest.raises(EventError) as in_batch:
        engine.match_batch([EVENT, event])
    assert in_batch.value.row == 1
    assert_unchanged(engine)


@pytest.mark.parametrize(
    "id", ["", 1.0, 1.5, True, 2**63, -(2**63) - 1, b"a", "\ud800", ["a"], (1,), []]
)
def test_a_malformed_id(engine: Engine, id: Any) -> None:
    with pytest.raises(SubscriptionError) as refusal:
        engine.subscribe("price < 1", id=id)
    assert_understandable(refusal.value, "id")
    assert_unchanged(engine)


@pytest.mark.parametrize("batch", [5, "text", b"bytes", EVENT, None, object()])
def test_a_malformed_batch(engine: Engine, batch: Any) -> None:
    with pytest.raises(
        EventError, match="expected a list of events, an Arrow table or a DataFrame"
    ):
        engine.match_batch(batch)
    assert_unchanged(engine)
