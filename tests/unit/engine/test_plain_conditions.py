"""What is read of a column of conditions is what the parser reads in each, mistakes included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tamis.encode.bulk_terms import BulkTerms
from tamis.encode.plain_conditions import read_plain
from tamis.engine import Engine
from tamis.errors import TamisError
from tamis.language.limits import PREDICATE_LIMIT, TEXT_LIMIT
from tamis.model.schema import Schema
from tests.schemas import one_type

SCHEMA = Schema.from_dict(
    one_type(
        "lot",
        {
            "n": "integer",
            "x": "decimal",
            "seller.rating": "integer",
            "kind": {"kind": "enumerated", "values": ["oak", "elm", "and"]},
            "name": "text",
            "tags": "text*",
            "when": "timestamp",
            "new": "boolean",
            "in": "integer",
        },
    )
)
NAMES = [*(name for name in SCHEMA.attributes if name != "event_type"), "`in`", "zz", "And"]
COMPARATORS = ["=", "==", "!=", "<>", "<", "<=", ">", ">=", "=<", "!", "=!", "contains", "like"]
NUMBERS = ["0", "-0", "-0.0", "007", "5", "-5", "- 5", "+5", "2.5", ".5", "5.", "1e3", "1E-3",
           "1e400", "1e-400", "9007199254740993", "9007199254740993.0", "-9223372036854775808",
           "9223372036854775808", "1.0000000000000000001", "0.1234567890123456789", "5abc",
           "1" * 40]  # fmt: skip
WORDS = ["oak", "'oak'", '"oak"', "'an and b'", '"x = 1 and n = 2"', '"a\\"b"', "'it\\'s'", "''",
         "true", "FALSE", "And", "2026-01-01", '"2026-01-01T10:00Z"', "ash.tree", "'é'", "é",
         '"a', "oak elm"]  # fmt: skip
SPACE = st.sampled_from(["", " ", "  ", "\t", "\n", "\u00a0", "\f"])
WIDE = st.sampled_from([" ", "  ", "\t", "\n", " \r\n", "\u00a0"])


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    parts = [
        draw(st.sampled_from(NAMES)),
        draw(st.sampled_from(COMPARATORS)),
        draw(st.sampled_from(NUMBERS + WORDS) | st.integers().map(str) | st.floats().map(str)),
    ]
    return draw(SPACE) + draw(SPACE).join(parts) + draw(SPACE)


@st.composite
def conditions(draw: st.DrawFn) -> str:
    text = draw(comparisons())
    for _ in range(draw(st.integers(0, 3))):
        joint = draw(st.sampled_from(["and", "AND", "And", "and", "or", "and not"]))
        text += draw(WIDE) + joint + draw(WIDE) + draw(comparisons())
    return text


VALUES: dict[str, list[Any]] = {
    "n": [0, 1, 5, 6, 7, -5, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 10**15],
    "x": [0.0, 2.5, 5.0, 1000.0, 0.001, 0.1234567890123456789, 1.0, -5.0, 2.0**53],
    "seller.rating": [0, 2, 3, 5, 7, -5],
    "kind": ["oak", "elm", "and"],
    "name": ["oak", "an and b", "x = 1 and n = 2", 'a"b', "it's", "é", "ash.tree", "And", "5"],
    "tags": [["oak", "elm"], ["é"], ["an and b"], ["oak", "a"]],
    "when": ["2026-01-01", "2026-01-01T10:00Z", "2025-01-01"],
    "new": [True, False],
    "in": [0, 5, 7],
}
EVENTS: list[dict[str, Any]] = [
    {},
    *({name: value} for name, values in VALUES.items() for value in values),
    *({name: values[i % len(values)] for name, values in VALUES.items()} for i in range(12)),
]


def _outcome(text: str, bulk: bool) -> Any:
    """Which events it matches, or what is wrong with it."""
    engine = Engine(SCHEMA)
    try:
        if bulk:
            engine.subscribe_table(pa.table({"id": [1], "condition": [text]}))
        else:
            engine.subscribe(text, id=1)
    except TamisError as why:
        return str(why).removeprefix("row 0: ")
    clauses = engine.matcher.clauses
    terms = len(clauses.terms(clauses.live_slots())[1][0])
    return terms, engine.condition(1), np.diff(engine.match_batch(EVENTS).starts).tolist()


@pytest.fixture(autouse=True)
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few conditions would all be left to the parser."""
    monkeypatch.setattr("tamis.engine.bulk_load._MANY", 1)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conditions())
@example("n > 9007199254740992 and n < 9007199254740994")
@example("x = -0.0 and n = -0")
@example("name = 'an and b' and n = 5")
@example("kind = And")
@example("in = 5")
@example("And = 5")
@example("new = true and new = FALSE")
@example("tags = oak and tags = elm and n = 5")
@example("x < 2.5 and x > 2.5")
@example("n between 1 and 5 and n = 5")
@pytest.mark.slow
def test_a_column_says_what_each_text_says(text: str) -> None:
    assert _outcome(text, bulk=True) == _outcome(text, bulk=False)


PLAIN = [
    "n < 5",
    "  n<5  ",
    "n >= -5 AND x <= 2.5\nand seller.rating = 3",
    "kind = oak and name = 'an oak' and tags = \"a,b\" and n <> 7",
    "x >= 0.1034103410341034 and x <= 1e3",
    "when >= '2026-01-01'",
]
OTHERS = ["n < 5 or n > 7", "not n = 5", "n in (1, 2)", "n exists", "(n < 5)", "n < 5 and", "",
          "  ", "name = 'a' 'b'", "n < 5 n > 3", "f(n) and n < 5", "?x > 5", None]  # fmt: skip


def _fast(texts: list[str | None], kind: pa.DataType) -> list[int]:
    lists = read_plain(pa.array(texts, pa.string()).cast(kind), TEXT_LIMIT)
    lists.validate(full=True)
    return list(BulkTerms(Engine(SCHEMA).encoder, lists, PREDICATE_LIMIT).fast.tolist())


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
)
def test_plain_ones_do_not_go_through_the_parser(kind: pa.DataType) -> None:
    texts = [*OTHERS[:4], *PLAIN, *OTHERS[4:]]
    assert _fast(texts, kind) == [4 + at for at in range(len(PLAIN))]


def test_rows_of_both_sorts_get_their_own_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain ones, those with several clauses, and more of them than are read at once."""
    monkeypatch.setattr("tamis.encode.plain_conditions._AT_ONCE", 7)
    rng = np.random.default_rng(3)
    texts = [
        f"n = {i % 5} and x < 2.5" if rng.random() < 0.5 else f"n = {i % 5} or n = {i % 5 + 100}"
        for i in range(60)
    ]
    one, many = Engine(SCHEMA), Engine(SCHEMA)
    for i, text in enumerate(texts):
        one.subscribe(text, id=i)
    seen: list[tuple[int, int]] = []
    many.subscribe_table(
        pa.table({"id": list(range(60)), "condition": texts}),
        lambda done, rows: seen.append((done, rows)),
    )
    assert seen[-1] == (60, 60)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 60 // 7
    for event in ({"n": 3, "x": 1.0}, {"n": 103}, {"n": 0}, {"x": 1.0}):
        assert sorted(many.match(event)) == sorted(one.match(event))
    assert [many.condition(i) for i in range(60)] == texts
    for i in range(0, 60, 2):
        many.unsubscribe(i)
        one.unsubscribe(i)
    assert sorted(many.match({"n": 3, "x": 1.0})) == sorted(one.match({"n": 3, "x": 1.0}))


def test_a_few_are_left_to_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.engine.bulk_load._MANY", 3)
    read: list[str] = []
    compiled = Engine.compile

    def noted(self: Engine, text: Any, *more: Any, **named: Any) -> Any:
        read.append(text)
        return compiled(self, text, *more, **named)

    def for_many(column: pa.Array, *more: Any) -> Any:
        assert len(column) >= 3, "Arrow is not called for a few: that alone takes a millisecond"
        return read_plain(column, *more)

    monkeypatch.setattr(Engine, "compile", noted)
    monkeypatch.setattr("tamis.engine.bulk_load.read_plain", for_many)
    for rows in (2, 3):
        engine = Engine(SCHEMA)
        engine.subscribe_table(pa.table({"id": list(range(rows)), "condition": ["n = 5"] * rows}))
        assert len(engine.match({"n": 5})) == rows
        assert len(read) == 2


def test_a_table_with_a_mistake_changes_nothing() -> None:
    engine = Engine(SCHEMA)
    long = " and ".join(["n < 5"] * (TEXT_LIMIT // 8))
    for last, message in (("n = oak", "^row 2: "), (long, "row 2: .*the limit is 65,536 bytes")):
        table = pa.table({"id": [1, 2, 3], "condition": ["n = 5", "name = oak", last]})
        with pytest.raises(TamisError, match=message):
            engine.subscribe_table(table)
        assert len(engine) == 0
    assert engine.match({"n": 5, "name": "oak"}) == []
    many = " and ".join(["n < 5"] * (PREDICATE_LIMIT + 1))
    assert _outcome(many, bulk=True) == _outcome(many, bulk=False)
