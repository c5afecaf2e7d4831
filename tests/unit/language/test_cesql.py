"""CESQL: what expressions mean on typed and open schemas, and each refusal."""

from __future__ import annotations

import pytest

from tamis import Engine
from tamis.errors import ConditionError, LimitError, NeverTrueError
from tamis.language import clauses, read, to_text
from tamis.language.dialects.cesql.value_sets import (
    InexpressibleError,
    in_case,
    of_length,
    part_of,
    spread,
    trimmed,
    whole_numbers,
)
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies

TYPED = Schema.from_dict(
    {
        "attributes": {
            **dict.fromkeys(("id", "source", "type", "subject"), "text"),
            "level": "integer",
            "depth": "integer",
            "urgent": "boolean",
            "time": "timestamp",
        }
    }
)
CONTEXT = Schema.from_dict({"attributes": {"ce.subject": "text", "price": "decimal"}})

MEANING = [
    ("source = 'a'", 'source = "a"'),
    ('subject <> "it\'s"', 'not subject = "it\'s"'),
    ("NOT (subject = 'a')", 'not subject = "a"'),
    ("subject = 5", 'subject matches "^(?s:[+]?0*5)$"'),
    ("subject LIKE 'a\\%%'", 'subject like "a\\\\%%"'),
    ("subject NOT IN ('a', 5)", 'not subject in ("a", "5")'),
    ("level IN ('5', 7)", "level in (5, 7)"),
    ("level < 5", "level <= 4"),
    ("2 * level + 1 = 7", "level = 3"),
    ("level / 2 = 0", "level between -1 and 1"),
    ("ABS(level) = 5", "level in (-5, 5)"),
    ("-level >= 5", "level between -2147483647 and -5"),
    ("level < depth", "level < @depth"),
    ("source = type", "source = @type"),
    ("urgent", "urgent = true"),
    ("urgent = 'true'", "urgent = true"),
    ("urgent = 1", "urgent = true"),
    ("EXISTS subject", "subject exists"),
    ("NOT EXISTS time", "time missing"),
    ("EXISTS id AND urgent", "urgent = true"),
    ("subject = 'a' OR urgent", 'subject = "a" or subject exists and urgent = true'),
    ("source = 'a' OR urgent", 'source = "a" or urgent = true'),
    ("urgent OR FALSE AND level = 1", "urgent = true and level = 1"),
    ("urgent XOR level = 1", None),
    ("LEFT(subject, 2) = 'a_'", 'subject like "a\\\\_%"'),
    ("RIGHT(subject, 1) = 'ab'", NeverTrueError),
    ("LENGTH(subject) > 2", 'subject like "___%"'),
    ("CONCAT('a', subject) = 'ab'", 'subject = "b"'),
    ("subject = 'a' AND 1 = 1", 'subject = "a"'),
    ("FALSE AND 1 / 0 = 1", NeverTrueError),
    ("1 / 0 = 1 OR urgent", NeverTrueError),
    ("urgent OR 1 / 0 = 1", "urgent = true"),
    ("level IN ('a', 5)", NeverTrueError),
    ("level IN (5, 'a')", "level = 5"),
    ("NOT source = 'x'", NeverTrueError),
]


@pytest.mark.parametrize(("expression", "meaning"), MEANING)
def test_meaning_on_typed_attributes(expression: str, meaning: object) -> None:
    if meaning is NeverTrueError:
        with pytest.raises(NeverTrueError):
            read(expression, TYPED, language="cesql")
        return
    found = to_text(read(expression, TYPED, language="cesql"))
    if isinstance(meaning, str):
        assert found == meaning


REFUSED = [
    ("subject = 'a", "the quote ' is never closed"),
    ("subject = 'a''b'", "two texts side by side"),
    ("subject = ", "expected a value, an attribute or a function, got the end"),
    ("subject LIKE 5", "expected a pattern in quotes, got '5'"),
    ("subject # 5", "unexpected '#'"),
    ("LENGHT(subject) = 1", "unknown function 'LENGHT'"),
    ("LEFT(subject) = 'a'", "LEFT does not take 1 arguments"),
    ("level = 2147483648", "a number outside the 32-bit integers"),
    ("data = 'a'", "CESQL reads the context attributes of an event, not its data"),
    ("a_b = 1", "'a_b' is not a name of an attribute"),
    ("subject", "'subject' is a String or an Integer, and a filter is a Boolean"),
    ("5", "the expression is of type Integer, and a filter is a Boolean"),
    ("level % 2 = 0", "no condition of tamis means this: the operator % with an attribute"),
    ("time = 'a'", "'time' is timestamp, which is no type of CESQL"),
    ("sbject = 'a'", "unknown attribute 'sbject'"),
    ("(urgent OR level = 1) = TRUE", "OR of attributes inside another operator or function"),
    ("subject = 'a' subject", "expected an operator or the end, got 'subject'"),
]


@pytest.mark.parametrize(("expression", "message"), REFUSED)
def test_refusals_say_what_and_where(expression: str, message: str) -> None:
    with pytest.raises(ConditionError) as caught:
        read(expression, TYPED, language="cesql")
    assert caught.value.message == message
    assert caught.value.span is not None


@pytest.mark.parametrize("text", ["(" * 101 + "urgent" + ")" * 101, "NOT " * 101 + "urgent",
                                  "level" + " + 1" * 101 + " = 1"])  # fmt: skip
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(LimitError):
        read(text, TYPED, language="cesql")


def test_long_chains_are_read() -> None:
    text = " AND ".join(f"level != {number}" for number in range(3000))
    assert len(clauses(read(text, TYPED, language="cesql"))) == 1
    with pytest.raises(LimitError):
        read(" XOR ".join(["urgent"] * 9), TYPED, language="cesql")


def test_arithmetic_is_cast_to_a_boolean() -> None:
    assert to_text(read("NOT (level - 1)", TYPED, language="cesql")) == "level = 1"


def test_schema_with_context_attributes() -> None:
    assert to_text(read("subject = 'a'", CONTEXT, language="cesql")) == 'ce.subject = "a"'
    with pytest.raises(ConditionError, match=r"unknown attribute 'ce.price'"):
        read("price = 1", CONTEXT, language="cesql")
    always = read("specversion = '1.0'", CONTEXT, language="cesql")
    assert satisfies(always, {"price": 1}, CONTEXT)


@pytest.mark.parametrize("within", [False, True])
def test_open_schema_reads_both_shapes(within: bool) -> None:
    engine = Engine()
    texts = {
        "n": "x = 5",
        "not": "x != 5",
        "none": "NOT EXISTS x",
        "version": "specversion = '1.0'",
    }
    for number, text in texts.items():
        engine.subscribe(text, id=number, language="cesql")
    for value, wanted in ((5, ["n"]), ("+05", ["n"]), (6, ["not"]), (True, ["not"]), ("five", []),
                          (None, ["none"])):  # fmt: skip
        event = {"specversion": "1.0", "id": "1", "source": "/", "type": "t", "x": value}
        found = engine.match({"ce": event, "x": 5} if within else event)
        assert sorted(found) == sorted([*wanted, "version"])


def test_sets_of_texts() -> None:
    numbers = whole_numbers(spread([(-12, 345)]))
    assert all(numbers.has(text) for text in ("-12", "+0", "-0", "0345", "99", "+100"))
    assert not any(numbers.has(text) for text in ("-13", "346", "", "+", "1 ", "1\n", "٣"))
    assert of_length(((2, 2),)).has("a\n")
    assert not of_length(((0, 1), (3, 9))).has("ab")
    upper = in_case(True, "TEST SS")
    assert upper is not None
    assert upper.has("te\ufb06 \xdf")
    assert not upper.has("tet ss")
    assert in_case(True, "Test") is None
    with pytest.raises(InexpressibleError):
        in_case(False, "\u03c3")
    inner = trimmed("a b")
    assert inner is not None
    assert inner.has("\u3000a b\n")
    part = part_of(-3, 2, "bc")
    assert part is not None
    assert part.has("abcd")
    assert not part.has("bc")


def test_a_long_text_with_many_readings_is_refused() -> None:
    with pytest.raises(ConditionError, match="too many texts become this one"):
        read(f"UPPER(subject) = '{'SS' * 5000}'", TYPED, language="cesql")


def test_types_that_are_not_known_have_a_limit() -> None:
    names = " XOR ".join(f"a{number}" for number in range(8))
    with pytest.raises(LimitError, match="types are not known"):
        read(f"INT({names}) = 1", Schema.open(), language="cesql")


@pytest.mark.parametrize("sign", ["XOR", "="])
def test_deep_nesting_in_a_function_is_read_once(sign: str) -> None:
    text = "EXISTS id"
    for _ in range(80):
        text = f"({text} {sign} EXISTS id)"  # which is always true
    whole, always = f"INT({text}) = 1", "EXISTS id"
    assert read(whole, TYPED, language="cesql") == read(always, TYPED, language="cesql")
