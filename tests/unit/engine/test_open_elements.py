"""Conditions on elements in an open schema, where nothing is declared."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.encode.encoder import Encoder
from tamis.encode.lines.json_lines import LineReader
from tamis.errors import ConditionError, SchemaError
from tamis.language import parse
from tamis.match.base import Matches
from tamis.model.semantics import satisfies

TEXTS = {
    "bug": "some label in labels (label.name = bug)",
    "red bug": "some l in issue.labels (l.name = bug and l.colour = red)",
    "no bug": "not some label in labels (label.name = bug)",
    "deep": "some o in orders (o.paid and some l in o.lines (l.sku = A1 and l.qty > 1))",
    "mixed": "labels.name = bug and labels.colour = red",
    "plain": "labels = bug or some l in labels (l.n > 1 and l.event_type is null)",
    "there": "labels exists",
    "large": " and ".join(f"(some l in labels (l.n != {n}) or size = {n})" for n in range(8)),
}
EVENTS: list[dict[str, Any]] = [
    {"labels": [{"name": "bug", "colour": "blue"}, {"name": "ui", "colour": "red"}]},
    {"issue": {"labels": [{"name": "bug", "colour": "red"}]}, "labels": []},
    {"issue": {"labels": [{"name": "bug"}, {"colour": "red"}]}},
    {"labels": ["bug", "ui"]},
    {"labels": [{"n": 2}, {"n": "2"}, {"n": None}, {"n": {"a": 1}}], "size": 3},
    {"labels": {"name": "bug"}},
    {"labels": [5, {"name": "bug"}]},
    {"orders": [{"paid": True, "lines": [{"sku": "A1", "qty": 1}, {"sku": "B", "qty": 2}]}]},
    {"orders": [{"paid": 1, "lines": [{"sku": "A1", "qty": 2}]}]},
    {"orders": [{"paid": True, "lines": {"sku": "A1", "qty": 2}}, {}]},
    {"labels": [{"n": 5, "event_type": "x"}, [{"n": 1}]]},
    {},
]


def _engine() -> Engine:
    engine = Engine()
    for id, text in TEXTS.items():
        engine.subscribe(text, id=id)
    return engine


def _sets(found: Matches) -> list[set[str]]:
    return [set(each) for each in found]


RIGHT = [
    {id for id, text in TEXTS.items() if satisfies(parse(text), event, Schema.open())}
    for event in EVENTS
]


def test_what_is_right() -> None:
    """A flattened attribute mixes elements, and a condition on one element does not."""
    assert RIGHT[0] >= {"bug", "mixed"}
    assert "red bug" not in RIGHT[0]
    assert RIGHT[1] == {"red bug"}
    assert RIGHT[2] == set()
    assert RIGHT[3] == {"plain", "there"}
    assert RIGHT[5] >= {"bug"}
    assert RIGHT[7:10] == [set(), set(), {"deep"}]


def test_all_doors_agree(tmp_path: Path) -> None:
    engine = _engine()
    engine.check()
    assert _sets(engine.match_batch(EVENTS)) == RIGHT
    assert _sets(engine.match_bitmap(EVENTS).matches()) == RIGHT
    for event, right in zip(EVENTS, RIGHT, strict=True):
        assert {id for id in TEXTS if engine.explain(id, event).holds} == right
    lines = pa.array([json.dumps(event) for event in EVENTS])
    parsed = LineReader(Encoder(Schema.open())).parse(lines)
    assert _sets(engine.match_batch(parsed.valid.batch(engine.encoder))) == RIGHT
    engine.save(tmp_path / "index")
    for again in (Engine.open(tmp_path / "index"), pickle.loads(pickle.dumps(engine))):
        assert _sets(again.match_batch(EVENTS)) == RIGHT
        again.subscribe("some l in labels (l.fresh = 1 and l.name = bug)", id="fresh")
        assert "fresh" in again.match({"labels": [{"name": "bug", "fresh": 1}]})
        again.check()
        for id in again.ids():
            again.unsubscribe(id)
        again.check()


def test_tables_of_events_and_of_conditions() -> None:
    engine = Engine()
    ids = ["bug", "red bug", "no bug", "deep"]
    engine.subscribe_table(pa.table({"id": ids, "condition": [TEXTS[id] for id in ids]}))
    table = pa.table(
        {
            "labels": [[{"name": "bug"}, {"name": "ui"}], [{"name": "ui"}], None],
            "issue": [None, {"labels": [{"name": "bug", "colour": "red"}]}, None],
        }
    )
    assert _sets(engine.match_batch(table)) == [{"bug"}, {"no bug", "red bug"}, set()]
    engine.check()


def test_a_declared_schema_takes_the_conditions_over() -> None:
    engine = Engine()
    engine.subscribe(TEXTS["bug"], id="bug")
    labels = {"kind": "structs", "attributes": {"name": "text"}}
    engine.declare(Schema.from_dict({"attributes": {"labels": labels}}))
    assert engine.match({"labels": [{"name": "bug"}]}) == ["bug"]
    engine.check()
    with pytest.raises(SchemaError, match="'labels' is text, not a list of structs"):
        engine.declare(Schema.from_dict({"attributes": {"labels": "text"}}))
    assert engine.match({"labels": [{"name": "bug"}]}) == ["bug"]


def test_limits_of_open_lists() -> None:
    engine = Engine()
    deep = "some a in b (" + "some a in a.b (" * 8 + "a.c = 1" + ")" * 9
    with pytest.raises(ConditionError, match="nested deeper than 8 levels"):
        engine.subscribe(deep)
    with pytest.raises(ConditionError, match=r"no name ends in \[\]"):
        engine.subscribe("`labels[]` = 1")
    engine.subscribe(deep.replace("some a in a.b (", "", 1)[:-1], id=1)
    event: Any = {"c": 1}
    for _ in range(8):
        event = {"b": [{}, event]}
    assert engine.match(event) == [1]
    engine.check()


def test_the_schema_is_written_and_read() -> None:
    schema = _engine().schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.lists == {"labels[]", "issue.labels[]", "orders[]"}
