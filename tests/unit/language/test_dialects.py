"""Another language for conditions is one function and one line; engines subscribe through it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis import Engine, Schema
from tamis.errors import ConditionError, LimitError, NeverTrueError
from tamis.language import read
from tamis.language.dialects import NATIVE, DialectEntry, dialects, entry, register, registry
from tamis.language.limits import TEXT_LIMIT
from tamis.model.condition import And, Condition, Predicate

SCHEMA = Schema.from_dict({"attributes": {"price": "decimal", "kind": "text", "n": "integer"}})


def read_query(text: str, schema: Schema) -> Condition:
    """`kind=oak&price=1..5`: a conjunction of equalities and ranges."""
    parts: list[Condition] = []
    start = 0
    for part in text.split("&"):
        name, equals, value = part.partition("=")
        span = (start, start + len(part))
        start += len(part) + 1
        if not equals:
            raise ConditionError("expected name=value", span=span, text=text)
        low, dots, high = value.partition("..")
        if dots:
            parts.append(Predicate(name, "between", (float(low), float(high)), span))
        else:
            parts.append(Predicate(name, "=", value, span))
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def read_nothing(text: str, schema: Schema) -> Any:
    return text


@pytest.fixture(autouse=True)
def query(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The dialects `query` and `nothing`, for one test."""
    module = ModuleType("query_dialect")
    vars(module).update(read=read_query, nothing=read_nothing)
    monkeypatch.setitem(sys.modules, "query_dialect", module)
    monkeypatch.setattr(registry, "_readers", {})
    for name, path in (("query", "query_dialect:read"), ("nothing", "query_dialect:nothing")):
        monkeypatch.delitem(registry._TABLE, name, raising=False)  # a page of the docs has one too
        register(DialectEntry(name, path, "for one test"))
    yield
    for name in ("query", "nothing", "gone"):
        registry._TABLE.pop(name, None)


def test_the_native_language_is_the_default_dialect() -> None:
    assert dialects()[0] == NATIVE == "tamis"
    assert tamis.dialects() == dialects()
    assert entry(NATIVE).idea
    assert read("price < 5", SCHEMA) == read("price < 5", SCHEMA, language=NATIVE)
    assert read("price < 5", SCHEMA) == tamis.parse("price < 5", SCHEMA)


def test_subscribe_through_a_dialect(tmp_path: Path) -> None:
    engine = Engine(SCHEMA)
    engine.subscribe("kind=oak&price=1..5", id="query", language="query")
    engine.subscribe('kind = "oak" and price between 1 and 5', id="native")
    assert engine.condition("query") == 'kind = "oak" and price between 1.0 and 5.0'
    engine.save(tmp_path / "index")
    for each in (engine, Engine.open(tmp_path / "index")):
        assert sorted(each.match({"kind": "oak", "price": 3})) == ["native", "query"]
        assert each.match({"kind": "oak", "price": 6}) == []
        assert each.explain("query", {"kind": "oak", "price": 3})


def test_a_condition_needs_no_translation() -> None:
    engine = Engine(SCHEMA)
    engine.subscribe(Predicate("price", "<", 5), id=1, language="query")
    assert engine.match({"price": 3}) == [1]


@pytest.mark.parametrize("rows", [3, 60])
def test_subscribe_a_table_through_a_dialect(rows: int) -> None:
    engine = Engine(SCHEMA)
    texts = [f"price={n}..{n + 1}&kind=oak" for n in range(rows)]
    table = pa.table({"id": list(range(rows)), "condition": texts})
    assert engine.subscribe_table(table, language="query") == rows
    assert sorted(engine.match({"kind": "oak", "price": 1})) == [0, 1]
    assert engine.condition(2) == 'price between 2.0 and 3.0 and kind = "oak"'
    wrong = pa.table({"id": [100, 101], "condition": ["kind=oak", "kind"]})
    with pytest.raises(ConditionError, match="row 1: expected name=value"):
        engine.subscribe_table(wrong, language="query")
    assert len(engine) == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind", "expected name=value (line 1, column 1)\n  kind\n  ^^^^"),
        ("kind=oak&prise=1..2", "unknown attribute 'prise' (line 1, column 10)"),
        ("price=oak", "'price' is decimal: 'oak' is text, expected a number (line 1, column 1)"),
        ("kind=oak&n=5..1", "never true: n between 5.0 and 1.0 (line 1, column 10)"),
    ],
)
def test_errors_show_the_place_in_the_text_of_the_dialect(text: str, message: str) -> None:
    for attempt in (
        lambda: Engine(SCHEMA).subscribe(text, language="query"),
        lambda: Engine(SCHEMA).compile(text, "query"),
    ):
        with pytest.raises(ConditionError) as caught:
            attempt()
        assert str(caught.value).startswith(message)


def test_limits_hold_for_every_dialect() -> None:
    with pytest.raises(LimitError):
        read("kind=" + "x" * TEXT_LIMIT, SCHEMA, language="query")
    with pytest.raises(LimitError, match="predicates"):
        read("&".join(["k=o"] * 10_001), SCHEMA, language="query")
    with pytest.raises(NeverTrueError):
        Engine(SCHEMA).subscribe("n=1..1&n=2..2", language="query")


def test_wrong_dialects_are_refused() -> None:
    register(DialectEntry("gone", "no_such_module:read", ""))
    for text, language, message in (
        ("kind=oak", "qery", "unknown language 'qery'; did you mean 'query'"),
        ("kind=oak", ["query"], "unknown language"),
        ("kind=oak", "gone", "'gone' cannot be imported"),
        ("kind=oak", "nothing", "returned str, expected a Condition"),
        (5, "query", "a condition is text, got int"),
    ):
        with pytest.raises(ConditionError, match=message):
            read(text, SCHEMA, language=language)  # type: ignore[arg-type]
    with pytest.raises(ConditionError, match="'query' is registered already"):
        register(DialectEntry("query", "query_dialect:read", ""))
