"""Missing values and bad rows at the doors of an engine: dicts, Arrow tables, DataFrames."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Engine, Schema, TamisError
from tamis.errors import EngineError, EventError
from tamis.store import Log

pd: Any = import_module("pandas")  # has no types
SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "price": "decimal",
            "quantity": "integer",
            "title": "text",
            "sold": "boolean",
            "at": "timestamp",
            "bids": "decimal",
        },
        "event_types": {
            "lot": {
                "price": "optional",
                "quantity": "optional",
                "title": "optional",
                "sold": "optional",
                "at": "optional",
                "bids": "optional multiple",
            }
        },
    }
)
NAMES = [name for name in SCHEMA.attributes if name != "event_type"]
TIME = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def engine() -> Engine:
    made = Engine(SCHEMA)
    for name in NAMES:
        made.subscribe(f"{name} exists", id=name)
        made.subscribe(f"{name} missing", id=f"no {name}")
    return made


def _answers(engine: Engine, events: Any, **how: Any) -> list[set[str]]:
    return [{id for id in ids if " " not in id} for ids in engine.match_batch(events, **how)]


def _frame(index: Any = None) -> Any:
    return pd.DataFrame(
        {
            "price": [1.5, np.nan, 2.0],
            "quantity": pd.array([1, pd.NA, 3], "Int64"),
            "title": ["oak", None, np.nan],
            "sold": pd.array([True, pd.NA, None], "boolean"),
            "at": [pd.Timestamp(TIME), pd.NaT, pd.NaT],
            "bids": [[1.0, 2.0], [math.nan], None],
        },
        index=index,
    )


RIGHT = [set(NAMES), set(), {"price", "quantity"}]


def test_in_a_dataframe_missing_values_are_absent(engine: Engine) -> None:
    assert _answers(engine, _frame()) == RIGHT
    assert engine.match_batch(_frame()).total == 3 * len(NAMES)
    assert _answers(engine, _frame(), bad="report") == RIGHT
    assert engine.match_batch(_frame(), bad="report").refused == ()


@pytest.mark.parametrize("index", [["a", "b", "c"], [(0, 1), (0, 2), (1, 1)], [5, 6, 7]])
def test_an_unnamed_index_is_dropped_and_a_named_one_is_a_column(index: Any) -> None:
    closed = Engine(Schema.from_dict({**SCHEMA.to_dict(), "unknown": "refuse"}))
    closed.subscribe("price > 1")
    rows = pd.MultiIndex.from_tuples(index) if isinstance(index[0], tuple) else index
    assert [len(ids) for ids in closed.match_batch(_frame(rows))] == [1, 0, 1]
    named = pd.DataFrame({"price": [1.0, 5.0]}, index=pd.Index([1, 2], name="quantity"))
    closed.subscribe("quantity = 2", id="two")
    assert [len(ids) for ids in closed.match_batch(named)] == [0, 2]
    with pytest.raises(EventError, match="unknown attribute 'lot'"):
        closed.match_batch(named.rename_axis("lot"))


def test_columns_of_arrow_in_a_dataframe(engine: Engine) -> None:
    """A double of Arrow may be NaN, and null as well."""
    column = pd.array(pa.array([1.0, math.nan, None]), dtype=pd.ArrowDtype(pa.float64()))
    frame = pd.DataFrame({"price": column})
    assert _answers(engine, frame) == [{"price"}, set(), set()]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_nan_in_a_table_of_arrow_is_refused_unless_the_door_is_asked(
    engine: Engine, kind: pa.DataType
) -> None:
    values = pa.array([1.0, None, 2.0], kind)
    nan = pa.array(np.array([1, math.nan, 2], kind.to_pandas_dtype()))
    assert _answers(engine, pa.table({"price": values})) == [{"price"}, set(), {"price"}]
    table = pa.table({"price": nan})
    if kind == pa.float64():
        with pytest.raises(EventError, match=r"event 1: .*'price': nan is not a finite number"):
            engine.match_batch(table)
    assert _answers(engine, table, missing="absent") == [{"price"}, set(), {"price"}]
    lists = pa.table({"bids": [[1.0], [math.nan, 2.0], [math.nan], None]})
    found = _answers(engine, lists, missing="absent")
    assert found == [{"bids"}, {"bids"}, set(), set()]
    nested = Engine(Schema.from_dict({"attributes": {"lot.price": "decimal"}}))
    nested.subscribe("`lot.price` exists", id="price")
    structs = pa.table({"lot": [{"price": 1.0}, {"price": math.nan}, None]})
    assert _answers(nested, structs, missing="absent") == [{"price"}, set(), set()]


MISSING = [math.nan, np.float64("nan"), np.float32("nan"), Decimal("NaN"), pd.NA, pd.NaT]


@pytest.mark.parametrize("value", MISSING, ids=lambda each: type(each).__name__)
def test_in_dicts_missing_values_are_refused_unless_the_door_is_asked(
    engine: Engine, value: Any
) -> None:
    name = "at" if value is pd.NaT else "price"
    with pytest.raises(EventError, match=f"'{name}': "):
        engine.match({name: value})
    assert engine.match({name: value, "quantity": 1}, missing="absent").count("quantity") == 1
    assert _answers(engine, [{name: value}, {name: None}], missing="absent") == [set(), set()]
    found = engine.match_batch([{name: value}, {"quantity": 1}], bad="report")
    assert [len(ids) for ids in found] == [0, len(NAMES)]
    ((row, reason),) = found.refused
    assert row == 0
    assert f"'{name}': " in reason
    assert _answers(engine, [{"bids": [1.0, math.nan]}], missing="absent") == [{"bids"}]


def test_a_missing_time_is_named(engine: Engine) -> None:
    with pytest.raises(EventError, match="NaT is a missing time; leave the attribute out"):
        engine.match({"at": pd.NaT})


def test_a_dataframe_may_be_refused_for_its_missing_values(engine: Engine) -> None:
    with pytest.raises(EventError, match=r"event 1: 'price': nan is a missing value"):
        engine.match_batch(_frame(), missing="refuse")
    found = engine.match_batch(_frame(), missing="refuse", bad="report")
    assert [len(ids) for ids in found] == [len(NAMES), 0, 0]
    assert [row for row, _ in found.refused] == [1, 2]
    assert found.refused[0][1].startswith("'price': nan is a missing value")
    none = pd.DataFrame({"title": ["oak", None]})
    assert _answers(engine, none, missing="refuse") == [{"title"}, set()]
    with pytest.raises(TamisError, match="missing is one of 'absent', 'refuse', got 'no'"):
        engine.match_batch(_frame(), missing="no")


BAD_ROWS: list[Any] = [
    {"price": 1.0},
    {"price": "dear"},
    {"price": 2.0, "quantity": 1},
    7,
    {"price": math.inf},
    {"quantity": 5},
]


@pytest.mark.parametrize("bad", ["skip", "report"])
def test_one_bad_row_does_not_sink_a_batch(engine: Engine, bad: str) -> None:
    with pytest.raises(EventError, match="event 1: "):
        engine.match_batch(BAD_ROWS)
    found = engine.match_batch(BAD_ROWS, bad=bad)
    assert len(found) == 6
    kept = [{id for id in ids if " " not in id} for ids in found]
    assert kept == [{"price"}, set(), {"price", "quantity"}, set(), set(), {"quantity"}]
    assert set(found.to_arrow()["event"].to_pylist()) == {0, 2, 5}
    if bad == "skip":
        assert found.refused == ()
    else:
        assert [row for row, _ in found.refused] == [1, 3, 4]
        assert "'price': 'dear' is text, expected a number" in found.refused[0][1]
        assert repr(found) == f"<Matches: {found.total} of 6 events, 3 refused>"
    with pytest.raises(EventError, match="bad is one of 'refuse', 'skip', 'report', got 'drop'"):
        engine.match_batch(BAD_ROWS, bad="drop")


def test_bad_rows_of_a_table_keep_their_numbers(engine: Engine) -> None:
    table = pa.table({"price": [1.0, math.inf, 3.0, math.nan], "quantity": [None, 1, 2, 3]})
    found = engine.match_batch(table, bad="report")
    assert [row for row, _ in found.refused] == [1, 3]
    assert _answers(engine, table, bad="skip") == [{"price"}, set(), {"price", "quantity"}, set()]
    both = engine.match_batch(table, bad="report", missing="absent")
    assert [row for row, _ in both.refused] == [1]
    every = engine.match_batch(pa.table({"price": [math.inf] * 2}), bad="report")
    assert (len(every), every.total, len(every.refused)) == (2, 0, 2)
    assert engine.match_batch([], bad="report").refused == ()


def test_names_that_the_schema_ignores_are_counted_at_every_door() -> None:
    schema = Schema.from_dict({"attributes": {"price": "decimal"}, "unknown": "ignore"})
    for events in (
        [{"price": 1.0, "prise": 2.0}, {"prise": 3.0}],
        pa.table({"price": [1.0, None], "prise": [2.0, 3.0]}),
        pd.DataFrame({"price": [1.0, None], "prise": [2.0, 3.0]}),
    ):
        for bad in ("refuse", "skip", "report"):
            engine = Engine(schema)
            engine.subscribe("price > 0")
            assert engine.match_batch(events, bad=bad).total == 1
            assert engine.report().ignored == {"prise": 2}
            assert "ignored: prise (2)" in str(engine.report())
    closed = Engine(Schema.from_dict({"attributes": {"price": "decimal"}, "unknown": "refuse"}))
    with pytest.raises(EventError, match="unknown attribute 'prise'"):
        closed.match_batch(pd.DataFrame({"price": [1.0], "prise": [2.0]}))


def test_a_log_takes_dataframes(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", SCHEMA.to_dict())
    assert len(log.publish(_frame(["a", "b", "c"]))) == 3


def test_answers_as_dataframes(engine: Engine) -> None:
    found = engine.match_batch([{"price": 1.0}, {"title": "oak"}])
    frame = found.to_pandas()
    assert list(frame.columns) == ["event", "subscription"]
    assert len(frame) == found.total
    if find_spec("polars") is None:  # tests/unit/engine/test_frames.py has more of it
        with pytest.raises(EngineError, match="to_polars needs polars"):
            found.to_polars()


def test_an_open_engine_looks_only_at_what_conditions_mention() -> None:
    """The same at every door, with and without a report of bad rows."""
    engine = Engine()
    engine.subscribe("price < 5", id=1)
    table = pa.table({"price": [4.0, 9.0], "other": [float("nan"), 1.0]})
    assert list(engine.match_batch(table)) == [[1], []]
    assert list(engine.match_batch(table, bad="report")) == [[1], []]
    assert engine.match({"price": 4, "other": 2**64}) == [1]


@pytest.mark.parametrize("value", [float("nan"), pd.NA, pd.NaT])
def test_a_missing_value_of_a_dynamic_attribute(value: Any) -> None:
    """It is refused in a dict, or absent if the door is asked; it is never null or an object."""
    engine = Engine()
    for condition in ("a missing", "a exists"):
        engine.subscribe(condition, id=condition)
    assert list(engine.match_batch([{"a": value}], missing="absent")) == [["a missing"]]
    with pytest.raises(EventError, match="'a'"):
        engine.match({"a": value})
    found = engine.match_batch([{"a": value}, {"a": 1}], bad="report")
    assert [list(found), [row for row, _ in found.refused]] == [[[], ["a exists"]], [0]]


def test_a_column_of_mixed_types_does_not_sink_a_dataframe() -> None:
    """Arrow cannot convert it, so it is read by rows."""
    frame = pd.DataFrame({"price": [1, "dear", None]})
    typed = Engine(Schema.from_dict({"attributes": {"price": "decimal"}}))
    typed.subscribe("price < 5", id=1)
    found = typed.match_batch(frame, bad="report")
    assert [list(found), [row for row, _ in found.refused]] == [[[1], [], []], [1]]
    with pytest.raises(EventError, match="event 1"):
        typed.match_batch(frame)
    open_engine = Engine()
    open_engine.subscribe("price = dear", id=1)
    assert list(open_engine.match_batch(frame)) == [[], [1], []]
