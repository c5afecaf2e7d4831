"""One event as a dict takes the shortest way; the answers are those of the definition."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Engine, Schema
from tamis.errors import EventError
from tamis.language import parse
from tamis.match.default.matcher import Tamis
from tamis.model import semantics
from tamis.operators.operator import operator

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "price": "decimal",
            "size": {"kind": "integer", "low": 0, "high": 9},
            "title": "text",
            "tags": "text",
            "low": "decimal",
        },
        "unknown": "ignore",
    }
)
CONDITIONS = [
    "price < 0",
    "price = -2.5 or size = 3 or title = old",
    "size between 2 and 5",
    'title like "*air" and size > 1',
    'title starts with "ol"',
    "price < @low",
    "not (title = old and size = 3)",
    "tags missing and price >= 0",
    "tags exists",
    "not (price = 1 or title = a and (size = 2 or size = 4)) and price < @low + 2",
]
VALUES: dict[str, list[Any]] = {
    "price": [-2.5, -0.0, 0.0, 1, 1.5, 7, None],
    "size": [0, 2, 3, 4, 9, None],
    "title": ["old", "old chair", "hair", "a", "", None],
    "tags": ["oak", ["oak"], [], None],
    "low": [-1.0, 0.5, 3, None],
    "unknown": [1, {"a": 2}, None],
}
EVENTS = st.lists(st.sampled_from([*VALUES]), unique=True).flatmap(
    lambda names: st.fixed_dictionaries({n: st.sampled_from(VALUES[n]) for n in names})
)


def engine_with(conditions: list[str], **options: Any) -> Engine:
    engine = Engine(SCHEMA, **options)
    for number, condition in enumerate(conditions):
        engine.subscribe(condition, id=f"s{number}")
    return engine


ENGINE = engine_with(CONDITIONS)
SCAN = engine_with(CONDITIONS, matcher="scan")


@given(EVENTS)
def test_the_answer_is_that_of_the_definition(event: dict[str, Any]) -> None:
    valid = SCHEMA.event(event)
    expected = {
        f"s{number}"
        for number, condition in enumerate(CONDITIONS)
        if semantics.satisfies(parse(condition), valid, SCHEMA)
    }
    for engine in (ENGINE, SCAN):
        for _ in range(4):
            found = engine.match(event)
            assert len(found) == len(set(found))
            assert set(found) == expected
        batch = engine.match_batch([event] * 3)
        assert [set(each) for each in batch] == [expected] * 3


def counted(engine: Engine) -> int:
    assert isinstance(engine.matcher, Tamis)
    return engine.matcher.tally.events


def test_every_event_is_counted_once() -> None:
    engine = engine_with(CONDITIONS)
    for number in range(500):
        engine.match({"price": number - 250.5, "size": number % 10, "unknown": 1})
    assert counted(engine) == 500
    assert engine.report().ignored == {"unknown": 500}


def test_the_work_on_single_events_is_counted_whatever_becomes_of_the_matcher() -> None:
    engine = engine_with(CONDITIONS[:2])

    def match() -> None:
        for _ in range(10):
            engine.match({"price": 1.5, "size": 3})

    match()
    copy = pickle.loads(pickle.dumps(engine))
    assert (counted(engine), counted(copy)) == (10, 10)
    match()
    engine.torn = True  # as after Ctrl-C in a change
    match()
    assert counted(engine) == 30
    match()
    for id in engine.ids():
        engine.unsubscribe(id)
    assert counted(engine) == 40


def test_subscriptions_come_and_go_between_single_events() -> None:
    engine = Engine(SCHEMA)
    event = {"price": 3.5, "size": 4}
    live = set()
    for number in range(300):
        live.add(engine.subscribe(f"price > {number % 7} and size < {1 + number % 11}"))
        if number % 3 == 0:
            gone = min(live)
            engine.unsubscribe(gone)
            live.discard(gone)
        assert set(engine.match(event)) == set(engine.match_batch([event, event])[0])
        conditions = {each: engine.condition(each) for each in live}
        assert set(engine.match(event)) == {
            each
            for each, text in conditions.items()
            if text is not None and semantics.satisfies(parse(text), event, SCHEMA)
        }


def test_a_bad_event_is_refused_after_good_ones_of_its_shape() -> None:
    engine = engine_with(CONDITIONS)
    for _ in range(5):
        engine.match({"price": 1.5, "size": 3})
    with pytest.raises(EventError, match="'size'"):
        engine.match({"price": 1.5, "size": 10})
    with pytest.raises(EventError, match="event 1"):
        engine.match_batch([{"price": 1.5, "size": 3}, {"price": "x", "size": 3}])


def test_conditions_with_operators_see_the_event_as_published() -> None:
    seen = []

    @operator(reads=("price",), run="here")
    def look(price: float) -> bool:
        seen.append(price)
        return price < 0

    engine = Engine(SCHEMA, operators=look)
    engine.subscribe("size = 3 and look()", id="a")
    assert [engine.match({"price": price, "size": 3}) for price in (-1, 1, -1, -1)] == [
        ["a"], [], ["a"], ["a"],
    ]  # fmt: skip
    batch = engine.encode([{"price": -3, "size": 3}, {"price": 5, "size": 3}] * 2)
    assert [*engine.match_batch(batch)] == [["a"], [], ["a"], []]
    assert set(seen) == {-1, 1, -3, 5}


def test_a_pickled_engine_matches_single_events() -> None:
    for _ in range(4):
        ENGINE.match({"price": -1.0, "size": 3})
    copy = pickle.loads(pickle.dumps(ENGINE))
    for _ in range(4):
        assert set(copy.match({"price": -1.0})) == set(ENGINE.match({"price": -1.0}))


def test_an_engine_moves_to_another_schema_between_single_events() -> None:
    engine = Engine()
    engine.subscribe("price < 5", id="a")
    assert [engine.match({"price": 3, "x": 1}) for _ in range(4)] == [["a"]] * 4
    engine.declare(Schema.from_dict({"attributes": {"price": "decimal"}, "unknown": "refuse"}))
    with pytest.raises(EventError, match="unknown attribute"):
        engine.match({"price": 3, "x": 1})
    assert [engine.match({"price": 3}) for _ in range(4)] == [["a"]] * 4
