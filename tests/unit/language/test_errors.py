"""What is wrong in a condition, where, and what would be right."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from tamis import Engine, Schema
from tamis.errors import ConditionError, LimitError, NeverTrueError
from tamis.language import parse

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "price": "decimal",
            "quantity": {"kind": "integer", "low": 0, "high": 9},
            "title": "text",
            "sold": "boolean",
            "at": "timestamp",
            "color": {"kind": "enumerated", "values": ["red", "green"]},
            "image": "opaque",
        }
    }
)
# text, line, column, what the carets stand under, words of the message or the hint
MISTAKES = [
    ("", 1, 1, "", "the condition is empty"),
    ("   ", 1, 4, "", "the condition is empty"),
    ("price", 1, 1, "price", "expected a comparator after 'price'"),
    ("sold and price", 1, 10, "price", "expected a comparator after 'price', which is decimal"),
    ("image", 1, 1, "image", "opaque, which has no comparator"),
    ("price is 5", 1, 10, "5", "after 'is' or 'is not' comes 'null' or 'scalar'"),
    ("lower(title) = 'x'", 1, 1, "lower(title)", "has no functions"),
    ("lower(title)", 1, 1, "lower", "has no functions"),
    ('title ~ "x"', 1, 7, "~", "title like"),
    ("price < 5;", 1, 10, ";", "join with 'and'"),
    ("TITLE = x", 1, 1, "TITLE", "did you mean 'title'"),
    ("detail-type = x", 1, 7, "-", "`detail-type`"),
    ("price <", 1, 8, "", "expected a value"),
    ("price < and", 1, 9, "and", "expected a value"),
    ("price < 5 and", 1, 14, "", "expected a predicate"),
    ("price < 5 price", 1, 11, "price", "expected 'and' or 'or' before 'price'"),
    ("price < 5)", 1, 10, ")", "has no opening one"),
    ("(price < 5", 1, 11, "", "expected a closing parenthesis"),
    ("price & 5", 1, 7, "&", "has no meaning here"),
    ("price < 5x", 1, 9, "5x", "is not a number"),
    ("price < 5.", 1, 9, "5.", "is not a number"),
    ("price < 1.2.3", 1, 9, "1.2.3", "is not a number"),
    ('title = "abc', 1, 9, '"', "never closed"),
    ("title = 'abc", 1, 9, "'", "never closed"),
    ("`title = 1", 1, 1, "`", "never closed"),
    (r'title = "a\qb"', 1, 11, r"\q", "unknown escape"),
    (r'title = "\U00110000"', 1, 10, r"\U00110000", "unknown escape"),
    ("price in 5", 1, 10, "5", "expected a list in parentheses"),
    ("price in ()", 1, 11, ")", "expected a value"),
    ("price in (1 2)", 1, 13, "2", "expected ',' or ')'"),
    ("price between 1", 1, 16, "", "expected 'and' between"),
    ("title starts 'x'", 1, 14, "'x'", "expected 'with' after 'starts'"),
    ("price not 5", 1, 11, "5", "'not' is followed by"),
    ("seenIn(Bronx)", 1, 1, "seenIn", "unknown operator 'seenIn'"),
    ("?people > 50", 1, 1, "?people", "nothing binds ?people"),
    ("price = 999999999999999999999", 1, 9, "999999999999999999999", "outside the 64-bit"),
    ("price = -999999999999999999999", 1, 9, "-999999999999999999999", "outside the 64-bit"),
    ("price = 1e999", 1, 9, "1e999", "too large for a double"),
    ("price < 1e-400", 1, 9, "1e-400", "too close to 0 for a double; write 0"),
    ("price < -0.4E-999", 1, 9, "-0.4E-999", "too close to 0 for a double; write 0"),
    ("price < 5\nand pric > 3", 2, 5, "pric", "did you mean 'price'?"),
    ("price < 5 and\n  color < red", 2, 9, "<", "has no comparator '<'"),
    ("color = gren", 1, 9, "gren", "did you mean 'green'?"),
    ("color in (red,\n gren)", 2, 2, "gren", "element 2: 'gren' is not a value of the domain"),
    ("color = 5", 1, 9, "5", "is a number"),
    ("price = '5'", 1, 9, "'5'", "is text"),
    ("price = quantity", 1, 9, "quantity", "@quantity"),
    ("title = color", 1, 9, "color", '"color"'),
    ("title = null", 1, 9, "null", "title missing"),
    ("title != None", 1, 10, "None", "title exists"),
    ("price = @nothing", 1, 9, "@nothing", "unknown attribute 'nothing'"),
    ("price = @title", 1, 1, "price = @title", "is text"),
    ("at < @at + 1", 1, 1, "at < @at + 1", "a duration has a unit"),
    ("price = @", 1, 9, "@", "a lone @"),
    ("price = true", 1, 9, "true", "is a boolean"),
    ("price = 9007199254740993", 1, 9, "9007199254740993", "no exact double"),
    ("quantity = 9223372036854775808", 1, 12, "9223372036854775808", "outside the 64-bit"),
    ("title = 5", 1, 9, "5", "put text in quotes"),
    ("title starts with 5", 1, 19, "5", "put text in quotes"),
    (r'title = "\ud800"', 1, 9, r'"\ud800"', "lone surrogate"),
    (r'title like "a\\"', 1, 12, r'"a\\"', "lone backslash"),
    ("sold = 'true'", 1, 8, "'true'", "write true or false"),
    ("sold = 1", 1, 8, "1", "is not true or false"),
    ("sold < true", 1, 6, "<", "has no comparator '<'"),
    ("at < tomorrow", 1, 6, "tomorrow", "not an ISO 8601"),
    ("at < 2026-02-30", 1, 6, "2026-02-30", "is not a timestamp"),
    ("at between 2026-01-01 and 5", 1, 27, "5", "is not a timestamp"),
    ("image = 5", 1, 7, "=", "has no comparator '='"),
    ("price contains 'x'", 1, 16, "'x'", "is text"),
    ("`price` like 'x'", 1, 9, "like", "has no comparator 'like'"),
    ("quantity = 1.5", 1, 1, "quantity = 1.5", "never true"),
    ("price < 5 and sold = true and price > 9", 1, 1, None, "never true: price < 5 and price > 9"),
    ("title missing\nand title = 'x'", 1, 1, "title missing", "never true"),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "marked", "words"), MISTAKES, ids=[m[0] or "empty" for m in MISTAKES]
)
def test_a_mistake_is_shown_where_it_stands(
    text: str, line: int, column: int, marked: str | None, words: str
) -> None:
    with pytest.raises(ConditionError) as caught:
        Engine(SCHEMA).subscribe(text)
    error = caught.value
    assert (error.line, error.column) == (line, column)
    shown = str(error)
    assert words in shown
    assert f"(line {line}, column {column})" in shown
    drawn, carets = next(
        (a, b) for a, b in zip(shown.split("\n"), shown.split("\n")[1:], strict=False) if "^" in b
    )
    assert drawn[2:] == text.split("\n")[line - 1]
    assert carets.index("^") == column - 1 + 2
    if marked is not None:
        assert carets.count("^") == max(1, len(marked))
        assert text.split("\n")[line - 1][column - 1 :].startswith(marked)


def test_long_lines_are_cut_around_the_place() -> None:
    text = " or ".join(f"quantity = {i % 9}" for i in range(200)) + " or nothing = 1"
    with pytest.raises(ConditionError) as caught:
        parse(text, SCHEMA)
    _, drawn, carets = str(caught.value).split("\n")[:3]
    assert len(drawn) < 110
    assert drawn[carets.index("^") :].startswith("nothing")
    assert "…" in drawn


def test_errors_survive_a_pickle() -> None:
    with pytest.raises(NeverTrueError) as caught:
        Engine(SCHEMA).subscribe("price < 5 and price > 9")
    again = pickle.loads(pickle.dumps(caught.value.at_row(3)))
    assert type(again) is NeverTrueError
    assert str(again) == str(caught.value)
    assert (again.span, again.row) == (caught.value.span, 3)


@pytest.mark.parametrize("given", [None, 5, b"price < 5"])
def test_only_text_is_parsed(given: object) -> None:
    with pytest.raises(ConditionError, match="a condition is text"):
        parse(given)  # type: ignore[arg-type]


# -- limits: each just below and just above --------------------------------------------------------


FRAME = len("title = ''")
# what, the text of a size, the largest size that is accepted, words of the refusal of the next
LIMITS: list[tuple[str, Callable[[int], str], int, str]] = [
    ("bytes", lambda n: f"title = '{'x' * (n - FRAME)}'", 65536, "65,536 bytes"),
    ("é", lambda n: f"title = '{'é' * n}'", (65536 - FRAME) // 2, "65,536 bytes"),
    ("values", lambda n: f"quantity in ({','.join(['1'] * n)})", 10_000, "10,001 values"),
    ("levels", lambda n: "(" * n + "price < 5" + ")" * n, 100, "nested deeper than 100"),
    ("nots", lambda n: "not " * n + "price < 5", 100, "nested deeper than 100"),
]


@pytest.mark.parametrize(
    ("text", "most", "words"),
    [limit[1:] for limit in LIMITS],
    ids=[limit[0] for limit in LIMITS],
)
def test_the_largest_is_read_and_one_more_is_not(
    text: Callable[[int], str], most: int, words: str
) -> None:
    Engine(SCHEMA).subscribe(text(most))
    with pytest.raises(LimitError, match=words):
        Engine(SCHEMA).subscribe(text(most + 1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(" * 30_000, "nested deeper than 100"),
        (" and ".join(["n(?x) and (f(?x) or g(?x))"] * 11), "2,048 clauses"),
    ],
    ids=["levels", "calls"],
)
def test_what_is_far_too_large_is_refused(text: str, words: str) -> None:
    with pytest.raises(LimitError, match=words):
        Engine(SCHEMA).subscribe(text)


def test_a_long_like_has_no_wildcard_for_one_character() -> None:
    long = "a" * 2_000
    parse(f'title like "%{long}%"', SCHEMA)  # accepted
    with pytest.raises(LimitError, match=r"2,003 characters.* at most 1,000"):
        parse(f'title like "%{long}_%"', SCHEMA)
