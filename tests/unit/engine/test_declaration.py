"""From the open schema to a declared one, with all subscriptions or not at all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema, operator
from tamis.errors import EventError, SchemaError

EVENTS: list[dict[str, Any]] = [
    {"action": "opened", "pr": {"n": 5, "draft": False, "at": "2026-01-31T12:00:00Z"}},
    {"action": "closed", "pr": {"n": 50, "draft": True, "at": "2026-02-01T00:00:00Z"}},
    {"labels": [{"name": "bug"}, {"name": "ui"}], "tags": ["a", "b"]},
    {"labels": [], "tags": "c"},
]


@operator(reads=("action",), run="here")
def shouts(action: Any) -> bool:
    return bool(action == str(action).upper())


def made() -> Engine:
    engine = Engine(operators=shouts)
    engine.subscribe("action = opened and not pr.draft", id="opened")
    engine.subscribe("pr.n > 5 or some l in labels (l.name = bug)", id="large")
    engine.subscribe("pr.at >= 2026-02-01", id="late")
    engine.subscribe("not shouts()", id="quiet")
    engine.subscribe_table(
        pa.table(
            {"id": range(50), "condition": [f"pr.n = {n} and action exists" for n in range(50)]}
        )
    )
    rows = [[{"attribute": "tags", "comparator": "=", "value": None, "text": "c"}], []]
    engine.subscribe_table(pa.table({"id": ["c", "all"], "predicates": rows}))
    return engine


def test_an_engine_moves_to_the_schema_of_its_events() -> None:
    engine = made()
    before = [sorted(map(str, ids)) for ids in engine.match_batch(EVENTS)]
    engine.declare(Schema.infer(EVENTS))
    assert [sorted(map(str, ids)) for ids in engine.match_batch(EVENTS)] == before
    assert engine.schema.attributes["pr.at"].kind == "timestamp"
    engine.check()
    engine.unsubscribe("opened")
    assert engine.subscribe("pr.n < 6") not in range(50)
    with pytest.raises(EventError, match=r"'pr\.n'"):
        engine.match({"pr": {"n": "five"}})


def test_an_engine_moves_back_to_the_open_schema_without_old_attributes() -> None:
    engine = Engine(Schema.from_dict({"attributes": {"a": "integer", "b": "text"}}))
    engine.subscribe("a > 1", id=1)
    engine.declare(Schema.open())
    assert list(engine.schema.attributes) == ["event_type", "a"]
    engine.subscribe("a = x and c exists", id=2)
    assert engine.match({"a": 2.5}) == [1]
    assert engine.match({"a": "x", "c": None}) == [2]
    engine.check()


def test_subscriptions_that_do_not_fit_are_named_and_nothing_changes() -> None:
    engine = made()
    right = [sorted(map(str, ids)) for ids in engine.match_batch(EVENTS)]
    wrong = Schema.from_dict({"attributes": {"action": "text", "pr.n": "text", "pr.at": "text"}})
    with pytest.raises(SchemaError) as raised:
        engine.declare(wrong)
    message = str(raised.value)
    assert message.startswith("53 of 56 subscriptions do not fit the schema:")
    assert "'opened': unknown attribute 'pr.draft'" in message
    assert "'large': 'pr.n' is text: 5 is a number" in message
    assert "'late'" not in message
    assert message.endswith("and 43 more")
    assert engine.schema.is_open
    assert [sorted(map(str, ids)) for ids in engine.match_batch(EVENTS)] == right
    engine.check()


def test_an_interrupted_move_is_finished_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = made()
    right = [sorted(map(str, ids)) for ids in engine.match_batch(EVENTS)]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(engine.matcher), "reset", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.declare(Schema.infer(EVENTS))
    assert [sorted(map(str, ids)) for ids in engine.match_batch(EVENTS)] == right
    assert not engine.schema.is_open
    engine.check()


def test_a_declared_schema_reads_through_lists_of_objects_for_multiple_attributes() -> None:
    schema = Schema.from_dict(
        {
            "attributes": {"items.sku": "text", "items.n": "integer"},
            "event_types": {"order": {"items.sku": "optional multiple", "items.n": "optional"}},
            "unknown": "ignore",
        }
    )
    engine = Engine(schema)
    engine.subscribe("items.sku contains A", id="sku")
    engine.subscribe("items.n exists", id="n")
    event = {"items": [{"sku": "A", "n": 1}, {"sku": "B", "n": 2}, 5]}
    assert engine.match(event) == ["sku"]
    table = pa.Table.from_pylist([{"items": event["items"][:2]}, {"items": []}, {"items": None}])
    assert [list(ids) for ids in engine.match_batch(table)] == [["sku"], [], []]
