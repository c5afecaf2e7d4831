"""Events without `event_type` are matched as the semantics say, at every door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine
from tamis.encode.encoder import Encoder
from tamis.encode.validation import validate
from tamis.errors import EventError, SchemaError
from tamis.model.schema import Schema
from tests.unit.engine.world import COLUMNS, SCHEMA, conditions, events, expected, fill

DEFAULT = "many"
SEVERAL = Schema.from_dict({**SCHEMA.to_dict(), "default_event_type": DEFAULT})


def shortened(event: dict[str, Any], absent: Any) -> dict[str, Any]:
    """The event as a publisher writes it who leaves the default out."""
    event = {name: value for name, value in event.items() if name != "o"}
    if event["event_type"] != [DEFAULT]:
        return event
    return {**event, "event_type": absent}


@settings(max_examples=150)
@given(
    batch=st.lists(events(), min_size=1, max_size=6),
    absent=st.lists(st.sampled_from([None, [], [None], [DEFAULT]]), min_size=6, max_size=6),
    live=st.lists(conditions(), max_size=5),
)
@pytest.mark.slow
def test_all_doors_agree_with_the_semantics(
    batch: list[dict[str, Any]], absent: list[Any], live: list[Any]
) -> None:
    engine = Engine(SEVERAL)
    asked = fill(engine, live)
    short = [shortened(event, absent[row]) for row, event in enumerate(batch)]
    full = [{name: value for name, value in event.items() if name != "o"} for event in batch]
    wanted = [expected(asked, event, SEVERAL) for event in full]
    assert [expected(asked, event, SEVERAL) for event in short] == wanted
    table = pa.Table.from_pylist(short, COLUMNS)
    assert [set(answer) for answer in engine.match_batch(short)] == wanted
    assert [set(answer) for answer in engine.match_batch(table)] == wanted
    for event, ids in zip(short, wanted, strict=True):
        assert set(engine.match(event)) == ids
        for id in asked:
            assert bool(engine.explain(id, event)) == (id in ids)


def table(types: Any, **columns: Any) -> pa.Table:
    return pa.table({"event_type": types, **columns})


@pytest.mark.parametrize(
    "events",
    [
        pa.table({"price": [1.0, 2.0]}),
        table(pa.array([None, "offer"]), price=[1.0, 2.0]),
        table(pa.array([None, None], pa.string()), price=[1.0, 2.0]),
        table(pa.array([["offer"], []]), price=[1.0, 2.0]),
        table(pa.array([None, ["offer", "bid"]]), price=[1.0, 2.0], bid=[None, 3.0]),
        table(pa.array([None, "bid"]).dictionary_encode(), price=[1.0, None], bid=[None, 3.0]),
    ],
)
def test_columns_without_types_are_events_as_rows_are(events: pa.Table) -> None:
    engine = Engine(offers().create_event_type("bid", {"bid": "mandatory"}))
    engine.subscribe("event_type = offer", id="offers")
    engine.subscribe("event_type contains bid", id="bids")
    engine.subscribe("price < 5", id="cheap")
    rows = [{k: v for k, v in row.items() if v is not None} for row in events.to_pylist()]
    wanted = [set(engine.match(row)) for row in rows]
    assert [set(answer) for answer in engine.match_batch(events)] == wanted
    assert validate(Encoder(engine.schema), events).refused == []


def test_a_row_that_breaks_the_default_type_is_named() -> None:
    engine = Engine(offers().create_event_type("bid", {"bid": "mandatory"}))
    events = table(pa.array(["bid", None]), price=pa.nulls(2, pa.float64()), bid=[1.0, 2.0])
    with pytest.raises(EventError, match="event 1: event type offer: has no attribute 'bid'"):
        engine.match_batch(events)


def offers() -> Schema:
    return Schema.from_dict(
        {
            "attributes": {"price": "decimal", "bid": "decimal"},
            "event_types": {"offer": {"price": "mandatory"}},
        }
    )


def test_publishers_who_leave_it_out_go_on_when_a_type_is_created(tmp_path: Path) -> None:
    engine = Engine(offers())
    engine.subscribe("price < 5", id="cheap")
    engine.subscribe("event_type = offer", id="offers")
    before = engine.match({"price": 1})
    engine.extend(engine.schema.create_event_type("bid", {"bid": "mandatory"}))
    engine.save(tmp_path / "index")
    for each in (engine, Engine.open(tmp_path / "index")):
        assert each.schema.default_event_type == "offer"
        assert sorted(each.match({"price": 1})) == sorted(before) == ["cheap", "offers"]
        assert each.match_batch(pa.table({"price": [1.0]}))[0] == before
        assert each.match({"event_type": "bid", "bid": 1}) == []


def test_an_engine_refuses_a_schema_with_another_default() -> None:
    engine = Engine(offers())
    document = engine.schema.create_event_type("bid", {}).to_dict()
    with pytest.raises(SchemaError, match="default_event_type was changed"):
        engine.extend(Schema.from_dict({**document, "default_event_type": "bid"}))
