"""The walk of events: validated once, matched, in steps that follow the number of pairs."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.replay.event_source import EventChunk, RowLayout
from tamis.replay.pipeline import BatchPace, match_with
from tests.schemas import one_type

SCHEMA = Schema.from_dict({"attributes": {"n": "integer", "json": "text"}})
DOCUMENT = json.dumps(SCHEMA.to_dict())


def _engine(condition: str) -> Engine:
    engine = Engine(SCHEMA)
    engine.subscribe(condition, id=1)
    return engine


def _chunk(table: pa.Table, layout: RowLayout) -> EventChunk:
    return EventChunk(np.arange(100, 100 + table.num_rows), table, layout)


@pytest.mark.parametrize(
    ("table", "layout"),
    [
        (pa.table({"n": [1, None, 3]}), RowLayout((("n", ("n",)),))),
        (pa.table({"n": [1, None, 3]}), RowLayout(document=DOCUMENT)),
        (pa.table({"json": ['{"n": 1}', "{}", '{"n": 3}']}), RowLayout(document=DOCUMENT)),
    ],
)
def test_rows_of_all_kinds(table: pa.Table, layout: RowLayout) -> None:
    schema = one_type("event", {"n": "integer!", "json": "text"})
    engine = Engine(Schema.from_dict(schema))
    engine.subscribe("n > 2", id=1)
    ((events, found),) = match_with(engine, [_chunk(table, layout)], BatchPace())
    assert events.numbers.tolist() == [100, 102]
    assert list(found) == [[], [1]]
    assert [row for row, _ in events.valid.refused] == [1]
    assert events.table.num_rows == 3
    assert json.loads(events.raw_texts()[0].as_py()) in ({}, {"n": None})


def test_an_attribute_named_json_is_not_a_line() -> None:
    """Only a log has lines; elsewhere it is a text like any other."""
    chunk = _chunk(pa.table({"json": ["oak", "elm"]}), RowLayout((("json", ("json",)),)))
    ((_, found),) = match_with(_engine("json = oak"), [chunk], BatchPace())
    assert list(found) == [[1], []]


def test_steps_grow_while_pairs_are_few() -> None:
    chunk = _chunk(pa.table({"n": np.arange(20_000)}), RowLayout((("n", ("n",)),)))
    steps = [len(events.valid) for events, _ in match_with(_engine("n < 0"), [chunk], BatchPace())]
    assert steps == [1024, 4096, 14_880]
    fixed = match_with(_engine("n < 0"), [chunk], BatchPace(8192, 8192))
    assert [len(events.valid) for events, _ in fixed] == [8192, 8192, 3616]
