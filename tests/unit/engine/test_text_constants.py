"""Texts in the engine: relabelling under live subscriptions, patterns at both doors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine, Schema, parse
from tamis.encode.pattern import Pattern
from tamis.model.condition import Condition
from tests.schemas import one_type
from tests.unit.engine.world import PREDICATES, expected, predicate_row

SCHEMA = Schema.from_dict(one_type("e", {"s": "text", "w": "text*", "n": "integer"}))
MATCHERS = ("naive", "scan")


def quoted(text: str) -> str:
    inner = "".join(c if c.isalnum() else f"\\U{ord(c):08x}" for c in text)
    return f'"{inner}"'


@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize(
    "constants",
    [
        ["a", *("a" + "\0" * (150 - i) for i in range(149))],
        [f"{i:03}" for i in reversed(range(150))],
        ["m", *(f"m{'z' * i}" for i in range(1, 100))],
        [f"a{i:03}" if i % 2 else f"b{999 - i:03}" for i in range(150)],
    ],
    ids=["each just below the last", "descending", "ascending", "from both sides"],
)
def test_live_subscriptions_follow_labels_that_move(matcher: str, constants: list[str]) -> None:
    engine = Engine(SCHEMA, matcher=matcher)
    signs = ("=", "!=", "<", "<=", ">", ">=", "starts with", "contains", "excludes")
    live: dict[Any, Condition] = {}
    for number, constant in enumerate(constants):
        text = f"s {signs[number % len(signs)]} {quoted(constant)}"
        live[engine.subscribe(text, stored=True)] = parse(text)
    engine.check()
    gone = list(live)[::3]
    for id in gone:
        engine.unsubscribe(id)
        del live[id]
    engine.check()
    values = [*constants[::10], *(text + "\0" for text in constants[::15]), "", "\U0010ffff"]
    batch = [{"s": value} for value in values]
    for answers in (engine.match_batch(batch), engine.match_batch(pa.Table.from_pylist(batch))):
        for event, answer in zip(batch, answers, strict=True):
            assert set(answer) == expected(live, event, SCHEMA)


def test_a_table_moves_what_came_before_and_what_came_before_moves_the_table() -> None:
    engine = Engine(SCHEMA)
    live: dict[Any, Condition] = {}
    for i in range(40):
        text = f's >= "k{i:03}"'
        live[engine.subscribe(text, id=f"one {i}", stored=True)] = parse(text)
    words = [f"k{i:03}x" for i in range(200)]
    rows = [
        [predicate_row("s", "=" if i % 2 else "<", word), predicate_row("w", "=", word)]
        for i, word in enumerate(words)
    ]
    ids = [f"row {i}" for i in range(len(rows))]
    engine.subscribe_table(pa.table({"id": ids, "predicates": pa.array(rows, PREDICATES)}))
    for id in ids:
        live[id] = parse(engine.condition(id) or "")
    for i in range(40):
        text = f's <= "k{i:03}x{i}"'
        live[engine.subscribe(text, id=f"late {i}", stored=True)] = parse(text)
    engine.check()
    for value in ("k000", "k017x", "k017y", "k199x", "a", "z"):
        event = {"s": value, "w": [value, "k017x"]}
        assert set(engine.match(event)) == expected(live, event, SCHEMA)


PATTERNED = (
    'w ends with "x"',
    'w like "%b%"',
    'not w like "%b%"',
    'not w ends with "x"',
    'w like "a%x"',
    'w like "a%" and w ends with "x"',
    'w > "b" and w ends with "x"',
    'w in ("ax", "bx") and not w like "a%"',
    'w ends with "x" and not w ends with "bx" and w excludes "ax"',
    'w like "_"',
    'w like "%" or s ends with "x"',
    's like "%\\\\%%"',
    'w contains "ax" and w ends with "b"',
    'w missing or w like "%x%x"',
)
words = st.sampled_from(["", "x", "b", "ax", "bx", "abx", "bb", "a%", "%x%x", "xx"])


@settings(max_examples=100)
@given(
    batch=st.lists(
        st.fixed_dictionaries({}, optional={"w": st.lists(words, max_size=3), "s": words}),
        min_size=1,
        max_size=5,
    ),
    chosen=st.lists(st.sampled_from(PATTERNED), min_size=1, unique=True),
)
def test_patterns_hold_for_one_value_at_both_doors(
    batch: list[dict[str, Any]], chosen: list[str]
) -> None:
    engine = Engine(SCHEMA)
    live: dict[Any, Condition] = {}
    for text in chosen:
        live[engine.subscribe(text, stored=True)] = parse(text)
    kinds = pa.schema([("w", pa.list_(pa.string())), ("s", pa.string())])
    table = pa.Table.from_pylist(batch, kinds)
    doors = (batch, table, table.slice(0), engine.encode(batch)[:])
    for door in doors:
        for event, answer in zip(batch, engine.match_batch(door), strict=True):
            assert set(answer) == expected(live, event, SCHEMA), event


@pytest.mark.parametrize(
    ("text", "values", "truth"),
    [
        ('w > "b" and w ends with "x"', ["ax", "c"], False),
        ('w > "b" and w ends with "x"', ["a", "cx"], True),
        ('w ends with "x" and not w like "a%"', ["ax", "b"], False),
        ('w ends with "x" and w like "%b%"', ["ax", "ab"], False),
        ('w ends with "x" and w like "%b%"', ["q", "abx"], True),
        ('w != "ax" and w ends with "x"', ["ax", "b"], False),
    ],
)
def test_one_value_fits_the_intervals_and_the_patterns(
    text: str, values: list[str], truth: bool
) -> None:
    engine = Engine(SCHEMA)
    engine.subscribe(text, id=1)
    assert engine.match({"w": values}) == [1] * truth
    assert engine.match_batch(pa.table({"w": [values]}))[0] == [1] * truth


def test_raw_texts_are_kept_only_while_a_pattern_asks() -> None:
    engine = Engine(SCHEMA)
    engine.subscribe('s = "a"')
    assert engine.encode([{"s": "a"}]).texts == {}
    id = engine.subscribe('s ends with "a"')
    assert engine.encode([{"s": "a"}]).texts
    assert engine.encode(pa.table({"s": ["a"]})).texts
    engine.unsubscribe(id)
    assert engine.encode([{"s": "a"}]).texts == {}


def test_patterns_are_tried_only_where_the_intervals_let_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []
    compiled = Pattern.compiled

    def spy(pattern: Pattern) -> Callable[[str], bool]:
        holds = compiled(pattern)

        def tried_by(text: str) -> bool:
            tried.append(text)
            return holds(text)

        return tried_by

    monkeypatch.setattr(Pattern, "compiled", spy)
    engine = Engine(SCHEMA)
    engine.subscribe('s like "a%x" and n = 1')
    engine.match_batch([{"s": "bx", "n": 1}, {"s": "ax", "n": 2}, {"s": "ax", "n": 1}])
    assert tried == ["ax"]
    tried.clear()
    engine.match_batch([{"s": "ax", "n": 1}, {"s": "abx", "n": 1}, {"s": "ax", "n": 1}])
    assert sorted(tried) == ["abx", "ax"], "each text once"
