"""Event patterns of EventBridge: each construct, on open and typed schemas, and each refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tamis import Engine
from tamis.errors import ConditionError
from tamis.language import parse, read, to_text
from tamis.language.dialects import eventbridge
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies

OPEN = Schema.open()
TYPED = Schema.from_dict(
    {
        "attributes": {
            "source": "text",
            "count": "integer",
            "at": "timestamp",
            "tags": "text",
            "detail.state": "text",
            "items": {"kind": "structs", "attributes": {"sku": "text", "qty": "integer"}},
        },
        "event_types": {
            "event": {
                **dict.fromkeys(("source", "count", "at", "detail.state", "items"), "optional"),
                "tags": "optional multiple",
            }
        },
    }
)

MEANING = [
    ({"a": ["x"]}, 'a = "x"'),
    ({"a": ["x", 5, True]}, 'a in ("x", 5, true)'),
    ({"a": [None]}, "a of kind (null)"),
    ({"a": [{"exactly": "x"}]}, 'a = "x"'),
    ({"a": [{"prefix": "x"}]}, 'a starts with "x"'),
    ({"a": [{"suffix": "x"}]}, 'a ends with "x"'),
    ({"a": [{"prefix": {"equals-ignore-case": "x"}}]}, 'a starts with "x" ignoring case'),
    ({"a": [{"suffix": {"equals-ignore-case": "x"}}]}, 'a ends with "x" ignoring case'),
    ({"a": [{"equals-ignore-case": "x"}]}, 'a = "x" ignoring case'),
    ({"a": [{"wildcard": "x*_\\*\\\\"}]}, 'a like "x%\\\\_*\\\\\\\\"'),
    ({"a": [{"cidr": "10.0.0.1/8"}]}, 'a within "10.0.0.0/8"'),
    ({"a": [{"numeric": ["<=", 5]}]}, "a <= 5"),
    ({"a": [{"numeric": [">", 0, "<=", 5]}]}, "a > 0 and a <= 5"),
    ({"a": [{"exists": True}]}, "a is scalar"),
    ({"a": [{"exists": False}]}, "not a is scalar"),
    ({"a": [{"exists": False}, "x"]}, 'a = "x" or not a is scalar'),
    ({"a": [{"anything-but": "x"}]}, 'not a in ("x") or a of kind (null, boolean, number)'),
    ({"a": [{"anything-but": [1, 2]}]}, "not a in (1, 2) or a of kind (null, boolean, text)"),
    (
        {"a": [{"anything-but": {"prefix": ["x", "y"]}}]},
        'not a starts with "x" and not a starts with "y" or a of kind (null, boolean, number)',
    ),
    (
        {"a": [{"anything-but": {"equals-ignore-case": "x"}}]},
        'not a = "x" ignoring case or a of kind (null, boolean, number)',
    ),
    (
        {"a": [{"anything-but": {"wildcard": "x*"}}]},
        'not a like "x%" or a of kind (null, boolean, number)',
    ),
    ({"a": {"b": ["x"]}}, 'a.b = "x"'),
    ({"a": {"b": [1], "c": [2]}}, "some item in a (item.b = 1 and item.c = 2)"),
    (
        {"a": {"b": {"x": [1], "y": [2]}}, "c": [3]},
        "some item in a.b (item.x = 1 and item.y = 2) and c = 3",
    ),
    ({"$or": [{"a": [1]}, {"b": [2]}]}, "a = 1 or b = 2"),
    (
        {"c": [3], "$or": [{"a": [1]}, {"b": [2]}]},
        "c = 3 and a = 1 or c = 3 and b = 2",
    ),
    ({"$or": ["x", "y"]}, '`$or` in ("x", "y")'),
    ({"detail-type": ["x"]}, '`detail-type` = "x"'),
]


@pytest.mark.parametrize(
    ("pattern", "text"), MEANING, ids=[json.dumps(each) for each, _ in MEANING]
)
def test_each_construct_means(pattern: dict[str, Any], text: str) -> None:
    condition = read(json.dumps(pattern), OPEN, language="eventbridge")
    assert to_text(condition) == text
    assert parse(text, OPEN) == condition


CASES = [
    ({"a": [{"exists": False}]}, {"a": {"b": 1}}, True),
    ({"a": [{"exists": False}]}, {"a": []}, True),
    ({"a": [{"exists": True}]}, {"a": None}, True),
    ({"a": [None]}, {"a": [1, None]}, True),
    ({"a": [None]}, {}, False),
    ({"a": [{"anything-but": "x"}]}, {"a": ["x", "y"]}, True),
    ({"a": [{"anything-but": "x"}]}, {"a": 5}, True),
    ({"a": [{"anything-but": "x"}]}, {}, False),
    ({"a": ["x"]}, {"a": [["x"]]}, True),
    ({"a": [300]}, {"a": 300.0}, True),
    ({"p": {"a": [1], "b": [2]}}, {"p": [{"a": 1}, {"b": 2}]}, False),
    ({"p": {"a": [1], "b": [2]}}, {"p": [{"a": 1, "b": 2}]}, True),
    ({"p": {"a": [1], "b": [2]}}, {"p": {"a": 1, "b": 2}}, True),
    ({"p": {"a": [1], "b": [{"exists": False}]}}, {"p": [{"a": 1}, {"b": 2}]}, True),
    ({"p": {"b": [1], "a": [{"exists": False}]}}, {"p": [{"b": 1}, {"a": 2}]}, False),
    ({"a": [1], "$or": [{"a": [2]}, {"b": [3]}]}, {"a": 2}, True),
]


@pytest.mark.parametrize(("pattern", "event", "holds"), CASES)
def test_events_match_as_in_event_ruler(
    pattern: dict[str, Any], event: dict[str, Any], holds: bool
) -> None:
    text = json.dumps(pattern)
    assert satisfies(read(text, OPEN, language="eventbridge"), event, OPEN) is holds
    engine = Engine()
    engine.subscribe(text, id=1, language="eventbridge")
    assert engine.match(event) == ([1] if holds else [])


TYPED_MEANING = [
    (
        {"source": ["a", "b"], "detail": {"state": ["on"]}},
        'source in ("a", "b") and detail.state = "on"',
    ),
    ({"count": [{"anything-but": [1, 2]}]}, "not count in (1, 2)"),
    ({"count": [{"exists": False}]}, "not count exists"),
    ({"tags": [{"anything-but": {"prefix": "x"}}]}, 'not tags starts with "x"'),
    (
        {"items": {"sku": ["A"], "qty": [{"numeric": [">", 1]}]}},
        'some item in items (item.sku = "A" and item.qty > 1)',
    ),
    ({"items": {"sku": ["A"]}}, 'some item in items (item.sku = "A")'),
    (
        {"items": {"sku": [{"exists": False}]}},
        "items missing or not some item in items (item.sku exists)",
    ),
    (
        {"items": {"qty": [1], "sku": [{"exists": False}]}},
        "some item in items (item.qty = 1 and not item.sku exists)",
    ),
]


@pytest.mark.parametrize(("pattern", "text"), TYPED_MEANING)
def test_patterns_on_a_typed_schema(pattern: dict[str, Any], text: str) -> None:
    condition = read(json.dumps(pattern), TYPED, language="eventbridge")
    assert to_text(condition) == text
    assert parse(text, TYPED) == condition


REFUSED = [
    ("[]", "[]", "an event pattern is an object, got a list"),
    ("{}", "{}", "an empty object"),
    ('{"a": {}}', "{}", "an empty object"),
    ('{"a": []}', "[]", "an empty list"),
    ('{"a": "x"}', '"x"', "expected a list of values or an object"),
    ('{"a": [[1]]}', "[1]", "a list in a list"),
    ('{"a": [{"prefix": 5}]}', "5", "'prefix' takes text, got a number"),
    ('{"a": [{"prefix": {"suffix": "x"}}]}', '{"suffix": "x"}', "unknown form 'suffix'"),
    ('{"a": [{"like": "x"}]}', '{"like": "x"}', "unknown test 'like'"),
    ('{"a": [{"prefix": "x", "suffix": "y"}]}', '{"prefix": "x", "suffix": "y"}', "one name"),
    ('{"a": [{"exists": 1}]}', "1", "'exists' is true or false"),
    ('{"a": [{"numeric": ["<", "5"]}]}', '"5"', "expected a number, got text"),
    ('{"a": [{"numeric": ["!=", 5]}]}', '["!=", 5]', "a comparator and a number"),
    ('{"a": [{"numeric": [">", 5, "<", 1]}]}', '[">", 5, "<", 1]', "the range is empty"),
    ('{"a": [{"cidr": "10.0.0.1"}]}', '"10.0.0.1"', "not a block of addresses"),
    ('{"a": [{"cidr": "10.0.0.0/255.0.0.0"}]}', '"10.0.0.0/255.0.0.0"', "not a block"),
    ('{"a": [{"cidr": "fe80::%1/64"}]}', '"fe80::%1/64"', "not a block"),
    ('{"": [1]}', "[1]", "the name of a field is empty"),
    ('{"a": [{"wildcard": "x**"}]}', '"x**"', "two '*' in a row"),
    ('{"a": [{"wildcard": "\\\\x"}]}', '"\\\\x"', "a backslash is followed by"),
    ('{"a": [{"anything-but": []}]}', "[]", "'anything-but' of nothing"),
    ('{"a": [{"anything-but": ["x", 5]}]}', "5", "takes texts, or numbers"),
    ('{"a": [{"anything-but": null}]}', "null", "takes texts, or numbers, got null"),
    ('{"a": [{"anything-but": {"cidr": "x"}}]}', '{"cidr": "x"}', "has no form 'cidr'"),
    ('{"a": [{"anything-but": {"prefix": ""}}]}', '""', "it is empty"),
    ('{"a": [1], "a": [2]}', '"a"', "occurs twice"),
    ('{"a": [1,]}', "]", "not JSON: expected a value"),
    ('{"a": [1] "b"}', '"', "not JSON: expected ',' or '}'"),
    ('{"a": ["x]}', '"', "not JSON: unterminated string"),
    ('{"a": [1e999]}', "1e999", "a number outside"),
    ('{"a": [99999999999999999999]}', "99999999999999999999", "64-bit"),
]


@pytest.mark.parametrize(("text", "marked", "message"), REFUSED, ids=[each[0] for each in REFUSED])
def test_what_is_no_pattern_is_refused_with_its_place(text: str, marked: str, message: str) -> None:
    with pytest.raises(ConditionError) as caught:
        Engine().subscribe(text, language="eventbridge")
    assert message in str(caught.value)
    assert caught.value.span is not None
    start, end = caught.value.span
    assert text[start:end] == marked


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ({"sauce": ["a"]}, "unknown attribute 'sauce'"),
        ({"source": [None]}, "its null is the same as no value"),
        ({"source": [5]}, "'source' is text: 5 is a number"),
        ({"at": [{"prefix": "2026"}]}, "'at' is timestamp, which has no comparator 'starts with'"),
        ({"count": [{"cidr": "10.0.0.0/8"}]}, "'count' is integer, which has no comparator"),
        ({"items": ["x"]}, "elements would be mixed"),
    ],
)
def test_what_a_typed_schema_cannot_say_is_refused(pattern: dict[str, Any], message: str) -> None:
    with pytest.raises(ConditionError, match="line 1") as caught:
        Engine(TYPED).subscribe(json.dumps(pattern), language="eventbridge")
    assert message in str(caught.value)


def test_too_many_combinations_are_refused() -> None:
    two = {"$or": [{"a": [1]}, {"b": [1]}]}
    pattern = {str(number): two for number in range(11)}
    with pytest.raises(ConditionError, match="1,000 combinations"):
        read(json.dumps(pattern), OPEN, language="eventbridge")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ({"$or": [{"a": [number]} for number in range(1000)]} | {f"f{n}": [1] for n in range(2000)},
         "10,000 fields"),
        ({"$or": [{"a": [n]} for n in range(900)], "x": {"$or": [{"b": [n]} for n in range(2000)]}},
         "1,000 combinations"),
        ({"a." * 20_000 + "a": [1]}, "256 characters"),
    ],
)  # fmt: skip
def test_patterns_that_grow_are_refused_before_they_have_grown(
    pattern: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = 0
    original = eventbridge._with_field

    def counted(found: list[Any], *rest: Any) -> list[Any]:
        nonlocal copied
        copied += sum(map(len, found))
        return original(found, *rest)

    monkeypatch.setattr(eventbridge, "_with_field", counted)
    with pytest.raises(ConditionError, match=message):
        read(json.dumps(pattern), OPEN, language="eventbridge")
    assert copied < 100_000


def test_many_fields_below_one_object_are_grouped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    original = eventbridge._together

    def counted(alike: Any) -> Any:
        nonlocal calls
        calls += 1
        return original(alike)

    monkeypatch.setattr(eventbridge, "_together", counted)
    pattern = {"a": {f"f{number}": [1] for number in range(3000)}}
    read(json.dumps(pattern), OPEN, language="eventbridge")
    assert calls == 1


def test_alternatives_with_one_and_true_are_different() -> None:
    engine = Engine()
    engine.subscribe('{"$or": [{"a": [1]}, {"a": [true]}]}', id="either", language="eventbridge")
    assert engine.match({"a": True}) == engine.match({"a": 1}) == ["either"]


def test_deep_nesting_is_refused() -> None:
    text = '{"a":' * 200 + "[1]" + "}" * 200
    with pytest.raises(ConditionError, match="nested deeper"):
        read(text, OPEN, language="eventbridge")


NESTED = [{"a": {"b": ["x"], "z": [1]}}, {"a": {"b": {"c": [1]}, "z": [1]}}]
"""Elements with `b` and with `b.c`."""


def test_fields_of_elements_that_are_nested_in_each_other_are_saved(tmp_path: Path) -> None:
    engine = Engine()
    for number, pattern in enumerate(NESTED):
        engine.subscribe(json.dumps(pattern), id=number, language="eventbridge")
    engine.subscribe("some i in k (i.event_type = x)", id=2)
    event = {"a": [{"b": "x", "z": 1}, {"b": {"c": 1}, "z": 1}], "k": [{"event_type": "x"}]}
    document = engine.schema.to_dict()
    assert Schema.from_dict(document).to_dict() == document
    engine.save(tmp_path / "index")
    assert Engine.open(tmp_path / "index").match(event) == engine.match(event) == [0, 1, 2]
    assert engine.match_lines(json.dumps(event)).total == 3
