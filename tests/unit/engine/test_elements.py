"""Conditions on one element of a list of structs, at every door of an engine."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema, operator
from tamis.encode.elements.element_conditions import ElementConditions
from tamis.encode.encoder import Encoder
from tamis.encode.lines.json_lines import LineReader
from tamis.encode.validation import validate
from tamis.errors import ConditionError, EventError, NeverTrueError, SavedIndexError
from tamis.language import parse
from tamis.match.registry import entry, matchers
from tamis.model.condition import Condition, Some
from tamis.testing import cases
from tamis.testing.engine_checks import agree, subscribe_random
from tests.unit.engine.orders import ANSWERS, EVENTS, SCHEMA, TEXTS, engine_of, sets, table_of
from tests.unit.files.saved_index import edit

EXACT = [name for name in matchers() if entry(name).exact and not name.startswith("sql")]


@pytest.mark.parametrize("matcher", EXACT)
def test_each_form_matches_one_element(matcher: str) -> None:
    engine = engine_of(matcher)
    assert sets(engine.match_batch(EVENTS)) == ANSWERS
    assert [set(engine.match(event)) for event in EVENTS] == ANSWERS
    assert sets(engine.match_bitmap(EVENTS).matches()) == ANSWERS
    for event, right in zip(EVENTS, ANSWERS, strict=True):
        for id, text in TEXTS.items():
            assert bool(engine.explain(id, event)) == (id in right), (text, event)
    engine.check()


def test_columns_and_lines_of_json_give_the_same_answers() -> None:
    engine = engine_of()
    assert sets(engine.match_batch(table_of())) == ANSWERS
    large = pa.Table.from_batches(table_of().to_batches(max_chunksize=3))
    assert sets(engine.match_batch(large)) == ANSWERS
    lines = pa.array([json.dumps(event) for event in EVENTS])
    parsed = LineReader(Encoder(SCHEMA)).parse(lines)
    assert not parsed.valid.refused
    assert sets(engine.match_batch(parsed.valid.batch(engine.encoder))) == ANSWERS
    assert sets(engine.match_batch(parsed.events)) == ANSWERS


def test_lines_of_json_without_times_are_read_in_blocks() -> None:
    """Many lines at once, and those that Arrow cannot read alone."""
    chooser = cases.RandomChooser(5)
    engine = Engine(cases.SCHEMA)
    conditions = subscribe_random(engine, chooser, 100)
    events = [json.loads(json.dumps(cases.event(chooser), default=str)) for _ in range(300)]
    events[7] = {"event_type": "single", "items": [{"price": 2**53 + 1}]}  # has no double
    parsed = LineReader(Encoder(cases.SCHEMA)).parse(pa.array(map(json.dumps, events)))
    assert [each.row for each in parsed.valid.refused] == [7]
    del events[7]
    found = engine.match_batch(parsed.valid.batch(engine.encoder))
    assert [set(each) for each in found] == [set(each) for each in engine.match_batch(events)]
    agree(engine, conditions, events[:20])


def test_validated_events_serve_several_engines() -> None:
    """The elements are encoded once; each engine has conditions and texts of its own."""
    valid = validate(Encoder(SCHEMA), table_of())
    whole = engine_of()
    assert sets(whole.match_batch(valid.batch(whole.encoder))) == ANSWERS
    for id, text in TEXTS.items():
        engine = Engine(SCHEMA)
        engine.subscribe(text, id=id)
        right = [each & {id} for each in ANSWERS]
        assert sets(engine.match_batch(valid.batch(engine.encoder))) == right


def test_rows_with_wrong_elements_are_set_aside() -> None:
    table = pa.table({"items": [[{"qty": 1}], [{"qty": 2}, {"qty": -1}], None, [{"qty": 5}]]})
    valid = validate(Encoder(SCHEMA), table)
    wrong = "'items': element 2: 'qty': -1 is below the domain's low, 0"
    reasons = [(each.row, each.reason) for each in valid.refused]
    assert reasons == [(1, f"event type event: {wrong} (rule R2)")]
    engine = Engine(SCHEMA)
    engine.subscribe("some i in items (i.qty > 1)", id=1)
    assert list(engine.match_batch(valid.batch(engine.encoder))) == [[], [], [1]]
    with pytest.raises(EventError, match=r"event 1: .*below the domain's low"):
        engine.match_batch(table)
    with pytest.raises(EventError, match="expected an object"):
        engine.match({"items": [5]})
    with pytest.raises(EventError, match="expected an object"):
        engine.match_batch(pa.table({"items": [[5]]}))


def test_a_column_of_single_structs() -> None:
    table = pa.table({"items": [{"sku": "A1", "qty": 3}, None, {"sku": "B2", "qty": 3}]})
    assert pa.types.is_struct(table.schema.field("items").type)
    assert sets(engine_of().match_batch(table)) == [
        {"both", "there"},
        set(),
        {"none", "there", "like"},
    ]
    nothing = pa.table({"items": pa.array([[{}], None, [None]], pa.list_(pa.struct([])))})
    assert sets(engine_of().match_batch(nothing)) == [{"none", "there"}, set(), set()]


def test_lists_that_an_event_type_does_not_have_are_ignored() -> None:
    structs = {"kind": "structs", "attributes": {"n": "integer"}}
    schema = Schema.from_dict(
        {
            "attributes": {"items": structs},
            "event_types": {"with": {"items": "mandatory"}, "without": {}},
            "unknown": "ignore",
        }
    )
    engine = Engine(schema)
    engine.subscribe("some i in items (i.n = 1)", id=1)
    engine.subscribe("items missing", id=2)
    events = [
        {"event_type": "without", "items": [{"n": 1}]},
        {"event_type": "with", "items": [{"n": 0}, {"n": 1}]},
        {"event_type": "without", "items": [{"n": "not looked at"}]},
    ]
    assert list(engine.match_batch(events)) == [[2], [1], [2]]
    assert list(engine.match_batch(pa.Table.from_pylist(events[:2]))) == [[2], [1]]
    assert engine.report().ignored == {"items": 3}
    with pytest.raises(EventError, match="'items' is mandatory"):
        engine.match({"event_type": "with", "items": []})


def test_elements_follow_the_rule_for_unknown_attributes() -> None:
    event = {"items": [{"sku": "A1", "colour": "red", "event_type": "x"}, {"colour": "blue"}]}
    engine = engine_of()
    engine.match(event)
    assert engine.report().ignored == {"items.colour": 2, "items.event_type": 1}
    engine.match_batch(pa.Table.from_pylist([event]))
    assert engine.report().ignored == {"items.colour": 4, "items.event_type": 2}
    closed = Engine(Schema.from_dict({**SCHEMA.to_dict(), "unknown": "refuse"}))
    for name in ("colour", "event_type"):
        for events in ([{"items": [{name: "red"}]}], pa.table({"items": [[{name: "red"}]]})):
            with pytest.raises(EventError, match=name):
                closed.match_batch(events)
    assert closed.match_batch(pa.table({"items": [[{"colour": None}]]})).total == 0


def test_equal_conditions_on_elements_are_one() -> None:
    engine = Engine(SCHEMA)
    for text in (
        "some i in items (i.sku = A1 and i.qty > 2)",
        'not some x in items (x.qty > 2 and x.sku = "A1")',
        "total > 5 or some i in items (i.sku = A1 and i.qty > 2)",
    ):
        engine.subscribe(text)
    conditions = engine.encoder.elements[engine.encoder.positions["items"]]
    assert conditions.engine is not None
    assert len(conditions.engine) == 1
    engine.check()
    for id in engine.ids():
        engine.unsubscribe(id)
    assert len(conditions.engine) == 0
    engine.check()


def test_a_refused_condition_leaves_nothing_behind() -> None:
    engine = Engine(SCHEMA)
    with pytest.raises(NeverTrueError, match=r"never true: some i in items \(i.qty > 1\) and not"):
        engine.subscribe("some i in items (i.qty > 1) and not some i in items (i.qty > 1)")
    engine.subscribe("some i in items (i.qty > 2)", id=2)
    conditions = engine.encoder.elements[engine.encoder.positions["items"]]
    assert list(conditions.uses.values()) == [1]
    assert engine.match({"items": [{"qty": 3}]}) == [2]
    engine.check()


def test_what_no_element_can_satisfy() -> None:
    engine = Engine(SCHEMA)
    never = "some i in items (i.qty > 5 and i.qty < 2)"
    with pytest.raises(NeverTrueError, match="never true: some i in items"):
        engine.subscribe(never)
    engine.subscribe(f"{never} or total > 5", id="or")
    engine.subscribe(f"not {never}", id="not")
    events: list[dict[str, Any]] = [{"items": [{"qty": 6}]}, {"total": 6}, {"items": []}]
    assert sets(engine.match_batch(events)) == [{"not"}, {"or"}, set()]
    conditions = {0: parse(f"not {never}", SCHEMA)}
    other = Engine(SCHEMA)
    other.subscribe(conditions[0], id=0)
    agree(other, conditions, events)


def test_large_conditions_on_elements_and_around_them() -> None:
    """Residuals within elements, and elements within residuals."""
    pairs = " and ".join(f"(i.qty = {n} or i.price > {n} or i.tags = t{n})" for n in range(9))
    some = [f"some i in items (i.qty > {n} and i.price < {9 - n})" for n in range(8)]
    around = " and ".join(f"({each} or total = {n})" for n, each in enumerate(some))
    compared = " and ".join(f"({each} or total < @bid + {n})" for n, each in enumerate(some))
    schema = SCHEMA.create_attribute("bid", "decimal").create_event_type(
        "several",
        {"items": "optional", "total": "optional multiple", "bid": "optional multiple"},
    )
    engine = Engine(schema)
    conditions: dict[int, Condition] = {}
    for text in (f"some i in items ({pairs})", f"not some i in items ({pairs})", around, compared):
        conditions[int(engine.subscribe(text))] = parse(text, schema)
    chooser = cases.RandomChooser(6)
    items = [
        [
            {
                "qty": chooser.number(0, 9),
                "price": chooser.number(0, 9),
                "tags": [f"t{chooser.number(0, 8)}" for _ in range(chooser.number(0, 4))],
            }
            for _ in range(chooser.number(0, 3))
        ]
        for _ in range(120)
    ]
    events = [
        {
            "event_type": "several",
            "items": each,
            "total": [chooser.number(0, 9), chooser.number(0, 9)],
            "bid": [chooser.number(0, 3), chooser.number(0, 3)],
        }
        for each in items
    ]
    agree(engine, conditions, events)
    assert engine.match_batch(events).total > 100
    engine.check()


def test_a_table_of_conditions_is_loaded_at_once() -> None:
    engine = Engine(SCHEMA)
    texts = [f"some i in items (i.qty = {n % 90} and i.sku = s{n % 7})" for n in range(400)]
    engine.subscribe_table(pa.table({"id": range(400), "condition": texts}))
    engine.check()
    assert sorted(engine.match({"items": [{"qty": 3, "sku": "s3"}]})) == [3]
    bad = ["some i in items (i.qty = 999)", "some i in items (i.qtty = 1)"]
    table = pa.table({"id": [900, 901], "condition": bad})
    with pytest.raises(ConditionError, match="row 1"):
        engine.subscribe_table(table)
    assert len(engine) == 400
    engine.check()


def test_saved_and_pickled_engines_go_on(tmp_path: Path) -> None:
    engine = engine_of()
    engine.unsubscribe("cheap")
    right = [each - {"cheap"} for each in ANSWERS]
    engine.save(tmp_path / "index")
    opened = Engine.open(tmp_path / "index")
    for again in (opened, pickle.loads(pickle.dumps(engine)), pickle.loads(pickle.dumps(opened))):
        assert sets(again.match_batch(EVENTS)) == right
        again.check()
        again.subscribe(TEXTS["cheap"], id="cheap")
        again.subscribe(TEXTS["both"], id="same")
        more = [each | ({"same"} if "both" in each else set()) for each in ANSWERS]
        assert sets(again.match_batch(table_of())) == more
        again.check()
        for id in again.ids():
            again.unsubscribe(id)
        again.check()
    assert sets(Engine.open(tmp_path / "index", verify=False).match_batch(EVENTS)) == right


@pytest.mark.parametrize("forge", ["uses", "next", "elements"])
def test_forged_numbers_are_refused(forge: str, tmp_path: Path) -> None:
    engine_of().save(tmp_path / "index")

    def change(body: dict[str, Any]) -> None:
        inner = next(iter(body["facts"]["elements"].values()))
        if forge == "elements":
            body["facts"]["elements"] = {}
        elif forge == "next":
            inner["parts"]["numbers"]["next"] = 1
        else:
            names = [name for name in body["arrays"] if name.endswith("numbers.uses")]
            body["arrays"][names[0]], body["arrays"][names[0].replace("uses", "number")] = (
                body["arrays"][names[0].replace("uses", "number")],
                body["arrays"][names[0]],
            )

    edit(tmp_path / "index", change)
    with pytest.raises(SavedIndexError, match="inconsistent"):
        Engine.open(tmp_path / "index")


def test_a_batch_from_before_a_new_condition_is_out_of_date() -> None:
    engine = engine_of()
    batch = engine.encode(EVENTS)
    engine.subscribe(TEXTS["both"], id="same")  # known to the engine of elements
    assert sets(engine.match_batch(batch))[1] == {"both", "same", "there"}
    engine.subscribe("some i in items (i.qty = 77)")
    with pytest.raises(EventError, match="out of date"):
        engine.match_batch(batch)


def test_an_extension_may_bring_a_list() -> None:
    engine = Engine(Schema.from_dict({"attributes": {"n": "integer"}}))
    engine.subscribe("n > 1", id="n")
    more = engine.schema.create_attribute("parts", {"kind": "structs", "attributes": {"a": "text"}})
    engine.extend(more.extend_event_type("event", "parts"))
    engine.subscribe("some p in parts (p.a = x)", id="p")
    assert set(engine.match({"n": 2, "parts": [{"a": "x"}]})) == {"n", "p"}
    engine.check()


def test_an_operator_reads_elements_as_published() -> None:
    seen: list[Any] = []

    @operator(reads="items", run="here")
    def noted(items: Any) -> bool:
        seen.append(items)
        return True

    engine = Engine(SCHEMA, operators=noted)
    engine.subscribe("some i in items (i.qty > 1) and noted()", id=1)
    assert engine.match({"items": [{"qty": 2, "other": [1]}]}) == [1]
    assert seen == [{"qty": 2, "other": [1]}]


def test_a_schema_without_lists_has_no_engines_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(ElementConditions, "__init__", refuse)
    engine = Engine(Schema.from_dict({"attributes": {"n": "integer", "some": "integer"}}))
    engine.subscribe("some > 3 or n = 1", id=1)
    assert engine.match({"some": 4}) == [1]


def test_the_source_is_kept_as_written() -> None:
    engine = engine_of()
    for id, text in TEXTS.items():
        condition = engine.condition(id)
        assert condition is not None
        assert parse(condition) == parse(text)
    assert isinstance(parse(TEXTS["both"]), Some)
