"""Events as JSON in text: the answers are those for the same events as objects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Engine, Schema
from tamis.errors import EventError
from tamis.language import parse
from tamis.model import semantics

OPEN = [
    "a = 1",
    "a.b = x or c = true",
    "a.b.c exists and c != x",
    "not (c = 1 or a.b = y)",
    'c like "%x%" and a exists',
    "c < 2 and c > -3",
    "a.b is null",
    "a.b = @c",
    "d.e contains 3 and d.e < 9000000000000000000",
    '"a.b" = "x"',
]
ENGINE = Engine()
for number, text in enumerate(OPEN[:-1]):
    ENGINE.subscribe(text, id=number)
VALUES = st.recursive(
    st.sampled_from(
        [None, True, False, 0, 1, 3, -2, 2**53 + 1, 2**63 - 1, 1.5, -0.0, 1e300, "x", "y", "xx", ""]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "b.c", "e", "z"]), inner, max_size=3)
    ),
    max_leaves=8,
)
EVENTS = st.dictionaries(st.sampled_from(["a", "c", "d", "a.b", "d.e", "z"]), VALUES, max_size=4)


BEYOND_ASCII = Engine()
for number, text in enumerate(["größe > 3", "`日本.é` = 1", "`a.ñ.b` exists", "a.c = x"]):
    BEYOND_ASCII.subscribe(text, id=number)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"größe": 4, "a": {"c": "x"}}, [0, 3]),
        ({"日本": {"é": 1, "z": [1]}}, [1]),
        ({"日本": [{"é": 2}, {"é": 1}]}, [1]),
        ({"a": {"ñ": {"b": 0}, "c": "x"}}, [2, 3]),
        ({"": 4, "a": {"": "x", "c": "y"}}, []),
    ],
)
def test_keys_beyond_ascii_are_found(event: dict[str, Any], expected: list[int]) -> None:
    for ascii_only in (True, False):
        written = json.dumps(event, ensure_ascii=ascii_only)
        assert sorted(BEYOND_ASCII.match(event)) == expected
        assert sorted(BEYOND_ASCII.match_json(written)) == expected
        assert [sorted(each) for each in BEYOND_ASCII.match_lines(written)] == [expected]


@given(EVENTS)
def test_any_json_means_what_the_definition_says(event: dict[str, Any]) -> None:
    schema = ENGINE.schema
    expected = {
        number
        for number, text in enumerate(OPEN[:-1])
        if semantics.satisfies(parse(text), event, schema)
    }
    written = json.dumps(event)
    for _ in range(2):
        assert set(ENGINE.match(event)) == expected
        assert set(ENGINE.match_json(written)) == expected
        assert set(ENGINE.match_json(written.encode())) == expected
    assert [set(each) for each in ENGINE.match_json([written] * 3)] == [expected] * 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '{"c": 99999999999999999999}',
        '{"c": NaN}',
        '{"a": {"b": 1e999}}',
        "\xff",
    ],
)
def test_what_is_no_event_is_refused(text: str) -> None:
    for event in (text, text.encode("latin-1")):
        for _ in range(3):
            with pytest.raises(EventError):
                ENGINE.match_json(event)
    with pytest.raises(EventError, match="event 1"):
        ENGINE.match_json(["{}", text])


@pytest.mark.parametrize("text", [b'{"a": 1, "z": "\xff"}', b'{"\xff": 2}', "{}".encode("utf-16")])
def test_bytes_are_utf_8_also_where_nobody_looks(text: bytes) -> None:
    for _ in range(3):
        with pytest.raises(EventError, match="not UTF-8"):
            ENGINE.match_json(text)
        with pytest.raises(EventError, match="event 1: not UTF-8"):
            ENGINE.match_json([b"{}", text])


@pytest.mark.parametrize("text", ['{"c": 1, "z": NaN}', '{"c": 1, "z": "\\ud800"}'])
def test_what_no_condition_mentions_is_not_judged_in_a_list_either(text: str) -> None:
    alone = ENGINE.match_json(text)
    assert alone
    assert [*ENGINE.match_json([text])] == [*ENGINE.match_lines(text)] == [alone]


def test_half_of_a_surrogate_pair_is_refused_as_an_event_is() -> None:
    declared = Engine(Schema.from_dict({"attributes": {"c": "text"}}))
    declared.subscribe("c exists", id="c")
    for engine in (ENGINE, declared):
        for text in ('{"c": "\ud800"}', '{"c": "\\ud800"}'):
            with pytest.raises(EventError):
                engine.match_json(text)
            with pytest.raises(EventError, match="event 1"):
                engine.match_json(["{}", text])
            found = engine.match_lines("{}\n" + text, bad="report")
            assert [row for row, _ in found.refused] == [1]


@pytest.mark.parametrize(
    "text",
    [
        '{"a.b.c": 1}',
        '{"a": {"b.c": 1}}',
        '{"a.b": {"c": 1}}',
        '{"a": {"b": {"c": 1}}}',
        '{"a": {"b": null}, "a.b.c": 1}',
        '{"a.b.c": null, "a": {"b": {"c": 1}}}',
        '{"a": {"b": {"c": 1}}, "a.b.c": null}',
        '{"items": [{"x.y": 1}]}',
        '{"items": [{"x": {"y": 1}}]}',
        '{"items": {"x.y": 1}}',
    ],
)
def test_names_with_dots_have_many_spellings(text: str) -> None:
    items = {"kind": "structs", "attributes": {"x.y": "integer", "z": "text"}}
    attributes = {"a.b.c": "integer", "t": "text", "items": items}
    engine = Engine(Schema.from_dict({"attributes": attributes, "unknown": "ignore"}))
    engine.subscribe("a.b.c = 1 or some item in items (item.x.y = 1)", id="found")
    engine.subscribe("t = x", id="other")
    others = ['{"t": "x"}', '{"a": {"b": {"c": 2}}, "more": 1}'] * 40
    assert engine.match_json(text) == ["found"]
    assert [*engine.match_json([text])] == [*engine.match_lines(text)] == [["found"]]
    many = engine.match_lines("\n".join([*others, text, *others]))
    assert [*many] == [*[["other"], []] * 40, ["found"], *[["other"], []] * 40]


@pytest.mark.parametrize("given", [None, 3, {}])
def test_what_is_no_text_is_refused(given: Any) -> None:
    for match in (ENGINE.match_json, ENGINE.match_lines):
        with pytest.raises(EventError, match="text"):
            match(given)
    with pytest.raises(EventError, match="text"):
        ENGINE.match_json(["{}", given])


def test_bad_lines_may_be_left_out() -> None:
    engine = Engine(Schema.from_dict({"attributes": {"price": "decimal", "tags": "text"}}))
    engine.subscribe("price < 5", id="cheap")
    lines = '{"price": 3}\n{"price": "x"}\n{"price": 7}\nnonsense\n{"price": -1, "more": 2}\n'
    found = engine.match_lines(lines, bad="report")
    assert [*found] == [["cheap"], [], [], [], ["cheap"]]
    assert [row for row, _ in found.refused] == [1, 3]
    assert [*engine.match_lines(lines.encode(), bad="skip")] == [*found]
    with pytest.raises(EventError, match="event 1"):
        engine.match_lines(lines)
    assert len(engine.match_lines("")) == 0
    assert engine.match_json('{"price": 3.5}') == ["cheap"]


def test_lines_take_a_moment() -> None:
    engine = Engine(Schema.from_dict({"attributes": {"at": "timestamp"}}))
    engine.subscribe("at > now - 1h", id="fresh")
    line = '{"at": "2030-01-01T10:30:00Z"}'
    for now, expected in (("2030-01-01T11:00:00Z", ["fresh"]), ("2030-01-01T12:00:00Z", [])):
        assert engine.match_json(line, now=now) == expected
        assert [*engine.match_lines(line, now=now)] == [expected]
