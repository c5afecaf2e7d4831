"""Engines whose domains grow: nothing is lost, and what could never hold may hold."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema, parse
from tamis.encode.terms import Terms
from tamis.encode.validation import validate
from tamis.errors import EventError, MatcherError, NeverTrueError, SchemaError
from tamis.match.base import Slots
from tamis.match.lesubscribe.naive import Naive
from tamis.model.operator import Signature
from tamis.model.semantics import satisfies
from tamis.operators.operator import Operator
from tamis.operators.registry import Operators
from tests.unit.engine.world import predicate_row, predicate_table

SCHEMA = Schema.from_dict(
    {
        "domains": {
            "century": {
                "kind": "enumerated",
                "values": ["XVI", "XVII", "XVIII"],
                "order": [["XVI", "XVII"], ["XVII", "XVIII"]],
            },
            "airport": {
                "kind": "hierarchy",
                "tree": {"west": {"SFO": {}, "LAX": {}}, "east": {"JFK": {}}},
            },
        },
        "attributes": {
            "made": "century",
            "sold": "century",
            "dest": "airport",
            "n": "integer",
            "title": "text",
            "colour": {"kind": "enumerated", "values": ["red", "green"]},
        },
    }
)
WIDER = (
    SCHEMA.grow_domain("century", ["XV", "XIX"], [("XV", "XVI"), ("XVIII", "XIX")])
    .grow_domain("airport", {"SEA": "west", "coast": (), "SFO": "coast"})
    .grow_domain("colour", ["blue"])
)
CONDITIONS = {
    "below": "made < XVI or n = 1",
    "not": "not made <= XVII",
    "west": "dest <= west",
    "not west": "not dest <= west and title like '%a%'",
    "not red": "colour != red",
    "both": "made < @sold",
    "excludes": "colour excludes red and colour exists",
    "between": "made between XVI and XVIII",
    "tangle": "n exists and " + " and ".join(
        f"(made < XVI and n < {n} or colour = green or n > {n})" for n in range(6)
    ),
    "text": "title = a and n > 0",
}  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {"made": made, "sold": sold, "dest": dest, "colour": colour, "n": n, "title": title}
    for made, sold, dest, colour, n, title in (
        ("XV", "XVI", "SEA", "blue", 0, "a"),
        ("XVI", "XVI", "SFO", "red", 1, "ab"),
        ("XIX", "XV", "coast", "green", 3, "b"),
        ("XVII", "XIX", "LAX", "blue", 9, "a"),
        ("XVIII", "XIX", "JFK", "red", 2, None),
    )
]


def _agree(engine: Engine, conditions: dict[Any, str]) -> None:
    for event in EVENTS:
        right = {
            id for id, text in conditions.items() if satisfies(parse(text), event, engine.schema)
        }
        assert set(engine.match(event)) == right
        assert set(engine.match_bitmap([event])[0]) == right
        for id in conditions:
            assert engine.explain(id, event).holds == (id in right)
    engine.check()


@pytest.fixture(params=[0, 200], ids=["all mention it", "few mention it"])
def others(request: pytest.FixtureRequest) -> dict[Any, str]:
    """Conditions that do not mention a domain that grows."""
    return {number: f"n = {number % 7}" for number in range(request.param)}


@pytest.mark.parametrize("how", ["one by one", "texts", "saved"])
def test_all_conditions_go_on(others: dict[Any, str], how: str, tmp_path: Path) -> None:
    engine, live = Engine(SCHEMA), others | CONDITIONS
    if how == "one by one":
        for id, text in live.items():
            engine.subscribe(text, id=id)
    else:
        for some in (others, CONDITIONS):
            ids = pa.array(list(some), pa.int64() if some is others else pa.string())
            texts = pa.array(list(some.values()), pa.string())
            engine.subscribe_table(pa.table({"id": ids, "condition": texts}))
    if how == "saved":
        engine.save(tmp_path / "engine")
        engine = Engine.open(tmp_path / "engine")
    before = engine.encode([{"n": 1}])
    engine.extend(WIDER)
    assert engine.ids() == list(live)
    _agree(engine, live)
    with pytest.raises(EventError, match="out of date"):
        engine.match_batch(before)
    engine.unsubscribe("below")
    engine.subscribe("made = XV", id="below")
    _agree(engine, live | {"below": "made = XV"})


def test_rows_of_predicates_go_on(others: dict[Any, str]) -> None:
    engine = Engine(SCHEMA)
    for id, text in others.items():
        engine.subscribe(text, id=id)
    rows = [[predicate_row("colour", "!=", "red")], [predicate_row("dest", "<=", "west")], []]
    engine.subscribe_table(predicate_table(rows, ["blue", "west", "all"]))
    engine.extend(WIDER)
    found = set(engine.match({"colour": "blue", "dest": "SEA"}))
    assert found == {"blue", "west", "all"}
    engine.check()


def test_a_condition_that_was_refused_does_not_come_back() -> None:
    engine = Engine(SCHEMA)
    with pytest.raises(NeverTrueError):
        engine.subscribe("made < XVI")
    engine.extend(WIDER)
    assert engine.match({"made": "XV"}) == []
    engine.subscribe("made < XVI", id="now")
    assert engine.match({"made": "XV"}) == ["now"]


def test_a_subscription_keeps_the_operators_of_its_day(others: dict[Any, str]) -> None:
    always, never = (
        Operator(function, Signature("holds", (), ()), run="here")
        for function in (lambda: True, lambda: False)
    )
    engine = Engine(SCHEMA, operators=always)
    for id, text in others.items():
        engine.subscribe(text, id=id)
    engine.subscribe("made <= XVI and holds() or n = -1", id="old")
    engine.calls.operators = Operators.of(never)
    engine.extend(WIDER)
    engine.subscribe("made <= XVI and holds()", id="new")
    assert engine.match({"made": "XV"}) == ["old"]
    engine.check()


class Full(Naive):
    """Has room for some clauses, and refuses some calls."""

    room = 1000
    refusals = 0

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        self.refusals -= 1
        if len(self) > self.room or self.refusals >= 0:
            raise MatcherError("full")


def test_a_matcher_without_room_for_both_clauses(others: dict[Any, str]) -> None:
    matcher, live = Full(), others | {"west": "dest <= west and n > 0"}
    engine = Engine(SCHEMA, matcher)
    for id, text in live.items():
        engine.subscribe(text, id=id)
    matcher.room = len(matcher)
    engine.extend(WIDER)
    _agree(engine, live)


def test_a_matcher_that_refuses_leaves_all_as_it_was(others: dict[Any, str]) -> None:
    matcher, live = Full(), others | {"west": "dest <= west"}
    engine = Engine(SCHEMA, matcher)
    for id, text in live.items():
        engine.subscribe(text, id=id)
    matcher.refusals = 2 if others else 1  # beside the old clauses, and all clauses anew
    with pytest.raises(MatcherError, match="full"):
        engine.extend(WIDER)
    assert matcher.refusals < 0
    assert engine.schema == SCHEMA
    assert set(engine.match({"dest": "SFO", "n": 100})) == {"west"}
    engine.check()


def test_an_interrupt_loses_nothing(
    others: dict[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    live = others | CONDITIONS
    for stop in range(1, 30, 3):
        engine, left = Engine(SCHEMA), [stop]
        for id, text in live.items():
            engine.subscribe(text, id=id)
        add, remove = engine.matcher.add, engine.matcher.remove

        def counted(do: Any, left: list[int] = left) -> Any:
            def call(*given: Any) -> None:
                left[0] -= 1
                if not left[0]:
                    raise KeyboardInterrupt
                do(*given)

            return call

        with monkeypatch.context() as patched:
            patched.setattr(engine.matcher, "add", counted(add))
            patched.setattr(engine.matcher, "remove", counted(remove))
            with suppress(KeyboardInterrupt):
                engine.extend(WIDER)
        if engine.schema == WIDER:
            _agree(engine, live)
        assert engine.ids() == list(live)
        engine.extend(WIDER)
        _agree(engine, live)


def test_a_domain_grows_beside_conditions_on_elements() -> None:
    """Few conditions mention the domain, and one of them has a condition on elements."""
    document = SCHEMA.to_dict()
    document["attributes"]["items"] = {"kind": "structs", "attributes": {"qty": "integer"}}
    document["event_types"]["event"]["items"] = "optional"
    schema = Schema.from_dict(document)
    engine = Engine(schema)
    for number in range(20):
        engine.subscribe(f"n = {number}", id=number)
    engine.subscribe("made = XVI and some item in items (item.qty > 2)", id=100)
    engine.extend(schema.grow_domain("century", ["XIX"], [("XVIII", "XIX")]))
    engine.subscribe("made = XIX and not some item in items (item.qty > 2)", id=101)
    assert engine.match({"made": "XVI", "items": [{"qty": 3}]}) == [100]
    assert engine.match({"made": "XIX", "items": [{"qty": 1}]}) == [101]
    engine.check()


def _with_elements() -> Schema:
    document = SCHEMA.to_dict()
    inner = {"kind": "structs", "attributes": {"made": "century"}}
    document["attributes"]["items"] = {
        "kind": "structs",
        "attributes": {"made": "century", "n": "integer", "parts": inner},
    }
    document["event_types"]["event"]["items"] = "optional"
    return Schema.from_dict(document)


ELEMENT_CONDITIONS = (
    "some i in items (i.made < XVIII)",
    "not some i in items (i.made = XVI)",
    "some i in items (not i.made <= XVII)",
    "some i in items (i.made > XVIII) or n = 7",  # never true of an element at first
    "some i in items (i.n = 1 and some p in i.parts (p.made >= XVII))",
    "made = XVI and items missing",
)
ELEMENTS: list[dict[str, Any]] = [
    {"items": [{"made": "XVI", "n": 1}, {"made": "XVIII"}]},
    {"items": [{"made": "XVII", "n": 1, "parts": [{"made": "XVIII"}, {"made": "XVI"}]}]},
    {"made": "XVI"},
    {"n": 7, "items": [{}]},
]
NEW_ELEMENTS: list[dict[str, Any]] = [
    {"items": [{"made": "XIX", "n": 1, "parts": [{"made": "XV"}]}]},
    {"items": [{"made": "XV"}, {"made": "XIX"}]},
]


def _grown(schema: Schema) -> Schema:
    return schema.grow_domain("century", ["XV", "XIX"], [("XV", "XVI"), ("XVIII", "XIX")])


def _agree_on_elements(engine: Engine, events: list[dict[str, Any]]) -> None:
    schema = engine.schema
    right = [
        {text for text in ELEMENT_CONDITIONS if satisfies(parse(text, schema), event, schema)}
        for event in events
    ]
    assert [set(ids) for ids in engine.match_batch(events)] == right
    engine.check()


def test_a_domain_within_elements_grows(tmp_path: Path) -> None:
    schema = _with_elements()
    engine = Engine(schema)
    for text in ELEMENT_CONDITIONS:
        engine.subscribe(text, id=text)
    _agree_on_elements(engine, ELEMENTS)
    with pytest.raises(EventError, match="XIX"):
        engine.match(NEW_ELEMENTS[0])
    engine.save(tmp_path / "saved")
    opened = Engine.open(tmp_path / "saved")
    wider = _grown(schema)
    wider.check_extends(schema)
    assert Schema.from_dict(wider.to_dict()) == wider
    for each in (engine, opened):
        each.extend(wider)
        _agree_on_elements(each, [*ELEMENTS, *NEW_ELEMENTS])
    again = _grown_again(wider)
    engine.extend(again)
    _agree_on_elements(engine, [*ELEMENTS, *NEW_ELEMENTS, {"items": [{"made": "XX"}]}])


def _grown_again(schema: Schema) -> Schema:
    return schema.grow_domain("century", ["XX"], [("XIX", "XX")])


def test_elements_of_an_earlier_schema_are_matched_by_an_engine_ahead_of_them() -> None:
    schema = _with_elements()
    wider = _grown(schema)
    engine = Engine(wider)
    for text in ELEMENT_CONDITIONS:
        engine.subscribe(text, id=text)
    table = pa.Table.from_pylist([{"made": None, "n": None, **event} for event in ELEMENTS])
    valid = validate(Engine(schema).encoder, table)
    assert not valid.refused
    found = engine.match_batch(valid.batch(engine.encoder))
    right = [set(ids) for ids in engine.match_batch(ELEMENTS)]
    assert [set(ids) for ids in found] == right


def test_elements_keep_their_attributes() -> None:
    schema = _with_elements()
    document = schema.to_dict()
    document["attributes"]["items"]["attributes"]["made"] = {
        "kind": "enumerated",
        "values": ["XVI"],
    }
    document["version"] += 1
    with pytest.raises(SchemaError, match=r"'items', attribute 'made'"):
        Schema.from_dict(document).check_extends(schema)
