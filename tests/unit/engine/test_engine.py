"""The engine: ids, slots, batches, extensions, pickles."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine, Schema, parse
from tamis.engine.change_matcher import change_matcher
from tamis.errors import (
    ConditionError,
    EventError,
    MatcherError,
    NeverTrueError,
    SchemaError,
    SubscriptionError,
)
from tamis.model.condition import Predicate
from tests.unit.engine.world import SCHEMA, conditions, events, expected, fill, predicate_table

SIMPLE = Schema.from_dict({"attributes": {"n": "integer", "s": "text", "d": "decimal"}})


@pytest.fixture
def engine() -> Engine:
    return Engine(SIMPLE)


# -- ids ------------------------------------------------------------------------------------------


def test_ids_are_given_in_order_and_never_twice(engine: Engine) -> None:
    assert [engine.subscribe("n = 1") for _ in range(3)] == [0, 1, 2]
    engine.subscribe("n = 1", id=4)
    assert [engine.subscribe("n = 1") for _ in range(2)] == [3, 5], "one that is taken is left out"
    engine.unsubscribe(5)
    assert engine.subscribe("n = 1") == 6
    for id in engine.ids():
        engine.unsubscribe(id)
    assert engine.subscribe("n = 1") == 7, "not even when all are gone"


def test_the_last_integer_may_be_an_id_and_so_may_one_of_numpy(engine: Engine) -> None:
    engine.subscribe("n = 1", id=2**63 - 1)
    engine.subscribe("n = 1", id=-(2**63))
    assert engine.subscribe("n = 1", id=np.int64(5)) == 5  # type: ignore[arg-type]
    given_ = engine.subscribe("n = 1")
    assert set(engine.match({"n": 1})) == {2**63 - 1, -(2**63), 5, given_}
    engine.unsubscribe(5)
    assert len(engine) == 3


def test_a_taken_id_is_refused_and_a_freed_one_is_not(engine: Engine) -> None:
    engine.subscribe("n = 1", id="a")
    with pytest.raises(SubscriptionError, match="taken"):
        engine.subscribe("n = 2", id="a")
    assert engine.match({"n": 1}) == ["a"]
    engine.unsubscribe("a")
    engine.subscribe("n = 2", id="a")
    assert engine.match({"n": 1}) == []


@pytest.mark.parametrize("id", ["no", 7, True, None, [], ["a"], 1.5])
def test_unsubscribing_an_unknown_id_is_refused(id: Any, engine: Engine) -> None:
    engine.subscribe("n = 1", id=1)
    for ask in (engine.unsubscribe, engine.condition, lambda id: engine.explain(id, {"n": 1})):
        with pytest.raises(SubscriptionError, match="no subscription"):
            ask(id)
    assert id not in engine
    assert 1 in engine


@pytest.mark.parametrize(
    ("ids", "kind", "shown"),
    [
        ([3, 4], pa.int64(), [3, 4]),
        (["a", "b"], pa.string(), ["a", "b"]),
        ([3, "a"], pa.string(), ["3", "a"]),
    ],
)
def test_answers_as_arrow(
    ids: list[Any], kind: pa.DataType, shown: list[Any], engine: Engine
) -> None:
    for id in ids:
        engine.subscribe("n = 1 or n = 2", id=id)
    found = engine.match_batch([{"n": 0}, {"n": 1}, {"n": 2}])
    table = found.to_arrow()
    assert table.schema.field("subscription").type == kind
    assert table["event"].to_pylist() == [1, 1, 2, 2]
    assert sorted(table["subscription"].to_pylist()[:2]) == sorted(shown)
    assert found.total == 4
    assert sorted(map(str, found.subscriptions.tolist())) == sorted(map(str, ids * 2))
    empty = engine.match_batch([]).to_arrow()
    assert empty.schema == table.schema
    assert empty.num_rows == 0


def test_numbers_stay_numbers_once_the_texts_are_gone(engine: Engine) -> None:
    engine.subscribe("n = 1", id="a")
    engine.subscribe("n = 1", id=5)
    engine.unsubscribe("a")
    engine.subscribe("n = 1", id=6)  # takes the slot of "a"
    assert sorted(engine.match({"n": 1})) == [5, 6]
    assert engine.match_batch([{"n": 1}]).to_arrow()["subscription"].type == pa.int64()


def test_matches_count_from_either_end_and_stay_what_they_were(engine: Engine) -> None:
    engine.subscribe("n = 1", id="a")
    engine.subscribe("n = 1", id="b")
    found = engine.match_batch([{"n": 1}, {"n": 2}])
    engine.unsubscribe("a")
    engine.subscribe("n = 2", id="c")
    assert (sorted(found[0]), sorted(found[-2]), found[-1]) == (["a", "b"], ["a", "b"], [])
    for event in (2, -3):
        with pytest.raises(IndexError):
            found[event]


# -- or, refusals ---------------------------------------------------------------------------------


def test_an_or_answers_once_whichever_branches_hold(engine: Engine) -> None:
    engine.subscribe('n > 0 or n > 1 or s = "x"', id=1)
    assert len(engine.matcher) == 3
    assert list(engine.match_batch([{"n": 5, "s": "x"}, {"s": "x"}, {"n": 0}])) == [[1], [1], []]
    engine.unsubscribe(1)
    assert len(engine.matcher) == 0


def test_a_refused_condition_leaves_nothing_behind(engine: Engine) -> None:
    before = engine.encoder.stamp, engine.matcher.nbytes
    for text in ("n <", "x = 1", 's = "a" and n < 1 and n > 2', 's = "b" and n = 1.5'):
        with pytest.raises(ConditionError):
            engine.subscribe(text, id="a")
    assert (engine.encoder.stamp, engine.matcher.nbytes) == before
    assert len(engine) == 0
    assert all(len(labels) == 0 for labels in engine.encoder.labels.values())
    engine.subscribe("n = 1", id="a")


@pytest.mark.parametrize("given_", [None, 5, b"n = 1", ["n = 1"]])
def test_a_condition_is_text_or_a_condition(given_: Any) -> None:
    with pytest.raises(ConditionError, match="a condition is text"):
        Engine(SIMPLE).subscribe(given_)


def test_never_true_names_predicates_and_place() -> None:
    with pytest.raises(NeverTrueError, match="never true: n < 5 and n > 9") as caught:
        Engine(SIMPLE).subscribe('s = "a" and n < 5 and n > 9')
    assert (caught.value.line, caught.value.column) == (1, 13)


def test_numpy_constants_come_back_as_plain_text(engine: Engine) -> None:
    assert engine.condition(engine.subscribe(Predicate("d", "<", np.float64(5.5)))) == "d < 5.5"
    given_ = Predicate("n", "<", np.int64(5))  # type: ignore[arg-type]
    assert engine.condition(engine.subscribe(given_)) == "n < 5"


# -- batches --------------------------------------------------------------------------------------


def test_a_batch_encoded_before_new_constants_is_refused(engine: Engine) -> None:
    engine.subscribe('s = "m"')
    batch = engine.encode([{"s": "x"}])
    engine.subscribe("n = 1")
    engine.subscribe('s != "m"')
    assert list(engine.match_batch(batch)) == [[2]], "no new constant: still good"
    engine.subscribe('s > "p"')
    with pytest.raises(EventError, match="encode it again"):
        engine.match_batch(batch)
    assert sorted(engine.match({"s": "x"})) == [2, 3]


def test_a_batch_encoded_before_its_texts_were_needed_is_refused(engine: Engine) -> None:
    engine.subscribe("n = 1")
    for given_ in ([{"s": "ax"}], pa.table({"s": ["ax"]})):
        batch = engine.encode(given_)
        id = engine.subscribe('s ends with "x"')
        with pytest.raises(EventError, match="encode it again"):
            engine.match_batch(batch)
        assert list(engine.match_batch(given_)) == [[id]]
        engine.unsubscribe(id)


def test_a_batch_stays_good_when_subscriptions_go(engine: Engine) -> None:
    ids = [engine.subscribe(f's >= "{letter}"') for letter in "abcdefgh"]
    batch = engine.encode([{"s": "d"}, {"s": "dd"}, {"s": ""}])
    for id in ids[1:]:
        engine.unsubscribe(id)
    assert list(engine.match_batch(batch)) == [[ids[0]], [ids[0]], []]


def test_generators_of_events_are_batches(engine: Engine) -> None:
    engine.subscribe("n = 1", id=1)
    assert list(engine.match_batch({"n": i} for i in range(3))) == [[], [1], []]


# -- extensions -----------------------------------------------------------------------------------


def test_subscriptions_live_on_through_extensions() -> None:
    old = Schema.from_dict(
        {"attributes": {"n": "integer"}, "event_types": {"a": {"n": "optional"}, "b": {}}}
    )
    engine = Engine(old)
    asked = {
        "not a": "event_type != a",
        "neither": "not event_type in (a, b)",
        "either": "event_type in (a, b)",
        "any": "event_type exists",
        "without a": "event_type excludes a",
        "b": "event_type contains b",
        "n": "n > 5 or n missing",
    }
    for id, text in asked.items():
        engine.subscribe(text, id=id)
    new = old.create_attribute("t", "text").extend_event_type("a", "t")
    new = new.create_event_type("c", {"t": "optional multiple", "n": "optional"})
    engine.extend(new)
    engine.subscribe('t ends with "x"', id="t")
    live = {id: parse(engine.condition(id) or "") for id in engine.ids()}
    for event in (
        {"event_type": "c", "t": ["yx", "z"]},
        {"event_type": ["a", "c"], "t": "x", "n": 6},
        {"event_type": "a"},
        {"event_type": ["b"]},
        {"event_type": ["b", "c"], "n": 1},
    ):
        assert set(engine.match(event)) == expected(live, event, new)
    engine.check()


def test_what_does_not_extend_the_schema_is_refused_and_changes_nothing(engine: Engine) -> None:
    engine.subscribe("n = 1", id=1)
    with pytest.raises(SchemaError):
        engine.extend(Schema.from_dict({"attributes": {"n": "decimal"}}))
    assert engine.schema is SIMPLE
    assert engine.match({"n": 1}) == [1]


def test_unknown_matchers_and_options_are_refused() -> None:
    with pytest.raises(MatcherError, match="did you mean 'scan'"):
        Engine(SIMPLE, matcher="scann")
    with pytest.raises(MatcherError, match="no option 'depth'"):
        Engine(SIMPLE, matcher="naive", depth=3)


# -- pickles --------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(given_=st.lists(conditions(), max_size=5), batch=st.lists(events(), max_size=3))
def test_a_pickled_engine_answers_alike_and_goes_on(
    given_: list[Any], batch: list[dict[str, Any]]
) -> None:
    engine = Engine(SCHEMA)
    live = fill(engine, given_)
    engine.subscribe_table(predicate_table([[]], [1000]))
    again: Engine = pickle.loads(pickle.dumps(engine))
    again.check()
    assert again.ids() == engine.ids()
    assert again.schema == engine.schema
    more = again.subscribe('s > "abc" and ws ends with "a"')
    again.unsubscribe(more)
    for event, answer in zip(batch, again.match_batch(batch), strict=True):
        assert set(answer) == expected(live, event) | {1000}
    assert [again.condition(id) for id in live] == [engine.condition(id) for id in live]


def test_short_texts() -> None:
    engine = Engine(Schema.from_dict({"attributes": {"price": "decimal", "title": "text"}}))
    engine.subscribe("price < 5")
    assert repr(engine) == "<Engine: 1 subscription over 2 attributes, matcher tamis>"
    assert repr(engine.match_batch([{"price": 1}, {}])) == "<Matches: 1 of 2 events>"
    assert repr(engine.schema).startswith("Schema(version=")


def test_an_empty_id_is_refused_as_such() -> None:
    engine = Engine(Schema.from_dict({"attributes": {"price": "decimal"}}))
    with pytest.raises(SubscriptionError, match="an id cannot be empty text; leave it out"):
        engine.subscribe("price < 5", id="")


# -- another matcher ------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.lists(conditions(), min_size=1, max_size=20), st.lists(events(), min_size=1, max_size=5))
def test_another_matcher_gives_the_same_answers(wanted: list[Any], given_events: list[Any]) -> None:
    engine = Engine(SCHEMA, "scan")
    known = fill(engine, wanted)
    if known:
        engine.unsubscribe(known.popitem()[0])
    before = [sorted(engine.match(event)) for event in given_events]
    change_matcher(engine, "tamis")
    assert "matcher tamis" in repr(engine)
    engine.check()
    assert [sorted(engine.match(event)) for event in given_events] == before
    for id in known:  # it can be changed as before
        engine.unsubscribe(id)
    assert all(engine.match(event) == [] for event in given_events)
