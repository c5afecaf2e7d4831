"""Engines without a schema: any JSON object, any condition, at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema, operator
from tamis.errors import EventError, SchemaError, TamisError
from tamis.language import parse
from tamis.model.semantics import satisfies

EVENTS: list[dict[str, Any]] = [
    {},
    {"action": "opened", "number": 7, "draft": False},
    {"action": "closed", "number": "7", "draft": None, "sender": {"login": "ann", "id": 1}},
    {"pull_request": {"user": {"login": "ann"}, "labels": [{"name": "bug"}, {"name": "ui"}]}},
    {"sender.login": "ann", "tags": ["a", 1, [True]], "event_type": "push"},
    {"sender": "ann", "event_type": {"of": "an object"}, "other": float("nan")},
    {"matrix": [[1, 2], [3]], "pull_request": [{"user": {"login": "bob"}}], "tags": []},
]
CONDITIONS = {
    "action = opened and number > 5": [1],
    "not number = 8": [1],
    'number = "7"': [2],
    "not draft": [1],
    "draft is null": [0, 2, 3, 4, 5, 6],
    "draft missing": [0, 3, 4, 5, 6],
    "sender.login = ann": [2, 4],
    "sender = ann": [5],
    "sender exists": [2, 5],
    "sender is not null": [2, 5],
    "pull_request.user.login in (ann, bob)": [3, 6],
    "pull_request.labels.name contains bug": [3],
    "pull_request.labels exists": [3],
    "tags contains true and tags contains 1": [4],
    "tags missing": [0, 1, 2, 3, 5, 6],
    "matrix > 2": [6],
    "event_type = push": [4],
    "event_type exists": [4, 5],
    "action > @number or draft = @number": [2],
}


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    for text in CONDITIONS:
        made.subscribe(text, id=text)
    return made


def test_any_object_matches_any_condition_at_once(engine: Engine) -> None:
    found = engine.match_batch(EVENTS)
    for text, right in CONDITIONS.items():
        assert [row for row in range(len(EVENTS)) if text in found[row]] == right, text
        condition = parse(text, Schema.open())
        assert [
            row for row, event in enumerate(EVENTS) if satisfies(condition, event, Schema.open())
        ] == right
        for row, event in enumerate(EVENTS):
            assert bool(engine.explain(text, event)) == (row in right)
    assert [engine.match(event) for event in EVENTS] == [list(ids) for ids in found]
    engine.check()


def test_attributes_come_when_a_condition_mentions_them() -> None:
    engine = Engine()
    assert list(engine.schema.attributes) == ["event_type"]
    before = engine.encode([{"a": 1, "b": {"c": 2}}])
    engine.subscribe("a = 1", id="first")
    engine.subscribe("b.c = 2 and a < 5", id="second")
    assert list(engine.schema.attributes) == ["event_type", "a", "b.c"]
    with pytest.raises(EventError, match="out of date"):
        engine.match_batch(before)
    assert sorted(engine.match({"a": 1, "b": {"c": 2}})) == ["first", "second"]
    engine.unsubscribe("second")
    assert engine.match({"a": 1, "b": {"c": 2}}) == ["first"]
    assert engine.report().ignored == {}


def test_a_batch_misses_no_attribute_that_comes_while_it_is_encoded() -> None:
    engine = Engine()

    def events() -> Iterator[dict[str, Any]]:
        yield {"a": 1}
        engine.subscribe("a = 1", id="first")
        yield {"a": 1}

    batch = engine.encode(events())
    with pytest.raises(EventError, match="out of date"):
        engine.match_batch(batch)


def test_a_refused_condition_leaves_the_engine_usable() -> None:
    engine = Engine()
    engine.subscribe("a = 1", id=1)
    for wrong in ("b < true", "b = 1 and b = 2", "c = null", "d in (", "`a\u2028` = 1"):
        with pytest.raises(TamisError):
            engine.subscribe(wrong)
    assert engine.match({"a": 1, "b": 2}) == [1]
    engine.check()


def test_a_word_that_someone_mentions_elsewhere_stays_a_word() -> None:
    engine = Engine()
    engine.subscribe("open exists", id=1)
    engine.subscribe("state = open", id=2)
    engine.subscribe("@state + @open > 3 or @open < open", id=3)
    assert engine.match({"state": "open"}) == [2]


@pytest.mark.parametrize("wrong", [float("inf"), 2**64, "\udfff"])
def test_wrong_values_are_refused_where_a_condition_looks(wrong: object) -> None:
    engine = Engine()
    engine.subscribe("a.b = 1", id=1)
    assert engine.match({"c": wrong}) == []
    with pytest.raises(EventError, match=r"event 1: 'a.b'"):
        engine.match_batch([{}, {"a": {"b": wrong}}])
    with pytest.raises(EventError, match="an event is an object"):
        engine.match([1])  # type: ignore[arg-type]


def test_names_with_dots_at_their_ends_are_keys() -> None:
    engine = Engine()
    for name in (".a", "a.", "a..b"):
        engine.subscribe(f"`{name}` = 1", id=name)
    assert engine.match({".a": 1, "a": {"": {"b": 1}}}) == [".a"]
    assert engine.match({"a": 1, "b": 1, "": {"a": 1}}) == []
    assert engine.match({"a..b": 1, "a.": 1}) == ["a.", "a..b"]


def test_tables_are_read_as_events(engine: Engine) -> None:
    table = pa.table(
        {
            "action": ["opened", "closed", None],
            "number": [7, None, 8],
            "draft": [False, True, None],
            "sender": [{"login": "ann", "id": 1}, None, {"login": None, "id": 2}],
            "tags": [["a"], [], None],
            "pull_request": [
                {"user": {"login": "ann"}, "labels": [{"name": "bug"}, {"name": "ui"}]},
                {"user": None, "labels": []},
                None,
            ],
            "unheard": [b"\x00", None, None],
        }
    )
    events = [
        {name: value for name, value in row.items() if value is not None}
        for row in table.to_pylist()
    ]
    assert [sorted(ids) for ids in engine.match_batch(table)] == [
        sorted(ids) for ids in engine.match_batch(events)
    ]


def test_operators_read_attributes_of_an_open_schema() -> None:
    @operator(reads=("body.text",), run="here")
    def long(body_text: Any) -> bool:
        return isinstance(body_text, str) and len(body_text) > 3

    engine = Engine(operators=long)
    engine.subscribe("long() and kind = note", id=1)
    assert engine.match({"kind": "note", "body": {"text": "a longer one"}}) == [1]
    assert engine.match({"kind": "note", "body": {"text": 5}}) == []


def test_tables_of_subscriptions() -> None:
    many, engine = 100, Engine()
    engine.subscribe_table(
        pa.table(
            {"id": range(many), "condition": [f"user.id = {n} or a{n} = x" for n in range(many)]}
        )
    )
    engine.subscribe_table(
        pa.table({"id": range(many, 2 * many), "condition": [f"k{n} > {n}" for n in range(many)]})
    )
    rows = [
        [{"attribute": "p.q", "comparator": ">=", "value": 1.0, "text": None}],
        [{"attribute": "p.q", "comparator": "=", "value": None, "text": "y"}],
    ]
    engine.subscribe_table(pa.table({"id": ["one", "two"], "predicates": rows}))
    assert engine.match({"user": {"id": 7}, "a9": "x", "k5": 6}) == [7, 9, 105]
    assert engine.match({"p": {"q": 1}}) == ["one"]
    assert engine.match({"p": {"q": ["y"]}}) == ["two"]
    engine.check()


def test_conditions_of_a_table_mean_the_same_as_one_by_one() -> None:
    constants = ("1", "2", "-0.0", "1.5", "9007199254740993", "a", '"3a"', '"1"', "true", '""')
    conditions = [
        f"{name} {comparator} {constant}" + (" and y exists" if name == "x.y" else "")
        for name in ("x", "x.y", "y")
        for comparator in ("=", "!=", "<", ">=")
        for constant in constants
        if not (constant in ("true", '""') and comparator in ("<", ">="))
    ]
    bulk, single = Engine(), Engine()
    bulk.subscribe_table(pa.table({"id": range(len(conditions)), "condition": conditions}))
    for id, condition in enumerate(conditions):
        single.subscribe(condition, id=id)
    values = [None, True, False, 0, 1, 1.5, 2, 2**53 + 1, 2.0**53, "a", "3a", "1", "", [1, "a"]]
    events = [
        *({"x": value} for value in values),
        *({"x": {"y": value}, "y": 1} for value in values),
        *({"y": value} for value in values),
    ]
    found = [sorted(ids) for ids in bulk.match_batch(events)]
    assert found == [sorted(ids) for ids in single.match_batch(events)]
    assert any(found)
    bulk.check()


def test_a_saved_engine_stays_open(engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path / "saved")
    again = Engine.open(tmp_path / "saved")
    assert again.schema.is_open
    for both in (engine, again):
        both.subscribe("later.on = 1", id="later")
    events = [*EVENTS, {"later": {"on": 1.0}}]
    assert [sorted(ids) for ids in again.match_batch(events)] == [
        sorted(ids) for ids in engine.match_batch(events)
    ]


def test_the_document_of_an_open_schema() -> None:
    schema = Schema.open().mentioning(["a", "a.b"])
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.to_dict()["unknown"] == "dynamic"
    assert Schema.from_dict({"unknown": "dynamic"}) == Schema.open()
    schema.check_extends(Schema.open())
    for wrong in (
        {"unknown": "dynamic", "attributes": {"a": "text"}},
        {"unknown": "dynamic", "event_types": {"event": {}}},
    ):
        with pytest.raises(SchemaError, match="open schema"):
            Schema.from_dict(wrong)


def test_an_open_schema_is_extended_by_any_other_open_one() -> None:
    engine = Engine()
    engine.subscribe("a = 1", id=1)
    engine.extend(Schema.open())
    engine.extend(Schema.open().mentioning(["b"]))
    assert list(engine.schema.attributes) == ["event_type", "a", "b"]
    assert engine.match({"a": 1}) == [1]
    with pytest.raises(SchemaError):
        engine.extend(Schema.from_dict({"attributes": {"a": "integer"}}))


@pytest.mark.parametrize(
    ("text", "event", "reason"),
    [
        ("size < 5", {"size": "4"}, 'no   size < 5: size is "4" (text, not a number)'),
        ("not size < 5", {"size": "4"}, 'no   not size < 5: size is "4" (text, not a number)'),
        ("size < 5", {"size": 6}, "no   size < 5: size is 6"),
        ("size = 5", {"size": None}, "no   size = 5: size is null (null, not a number)"),
        ('size = "5"', {"size": "5"}, 'yes  size = "5": size is "5"'),
        ('size in (1, "a")', {"size": True}, "size is true (a boolean, not a number or text)"),
        ("size = 5", {"size": {"a": 1}}, "size is an object (an object, not a number)"),
        ("size = 5", {"size": ["5", True]}, '"5", true (text and a boolean, not a number)'),
        ("size = @n", {"size": "5", "n": 5}, 'no   size = @n: size is "5" and n is 5'),
        ("size is not null", {"size": None}, "no   not size is null: size is null"),
    ],
)
def test_explanations_tell_kinds_apart(text: str, event: dict[str, Any], reason: str) -> None:
    engine = Engine()
    engine.subscribe(text, id=1)
    assert reason in str(engine.explain(1, event))
