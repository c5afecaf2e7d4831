"""WHERE clauses of SQL: each construct, the three truths, and each refusal."""

from __future__ import annotations

from typing import Any

import pytest

from tamis import Engine
from tamis.errors import ConditionError, LimitError, NeverTrueError
from tamis.language import parse, read, to_text
from tamis.language.limits import PREDICATE_LIMIT
from tamis.model.condition import Or
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies
from tests.running import run_script

OPEN = Schema.open()
TYPED = Schema.from_dict(
    {
        "domains": {
            "size": {"kind": "enumerated", "values": ["s", "m"], "order": [["s", "m"]]},
        },
        "attributes": {
            "a": "integer",
            "b": "integer",
            "d": "decimal",
            "t": "text",
            "u": "text",
            "flag": "boolean",
            "at": "timestamp",
            "seller.rating": "decimal",
            "unit price": "decimal",
            "size": "size",
            "items": {"kind": "structs", "attributes": {"sku": "text"}},
        },
    }
)

MEANING = [
    ("WHERE a = 1", "a = 1"),
    ("a <> 1 AND a != 2", "a != 1 and a != 2"),
    ("1 < a", "a > 1"),
    ("a = -5 OR a >= 60 * 60", "a = -5 or a >= 3600"),
    ("d = 0.1 + 0.2", "d = 0.3"),
    ("a = -9223372036854775808", "a = -9223372036854775808"),
    ("a BETWEEN 1 AND 5", "a between 1 and 5"),
    ("a NOT BETWEEN 1 AND 5", "not a between 1 and 5"),
    ("a BETWEEN 1 AND b", "a >= 1 and a <= @b"),
    ("3 BETWEEN a AND b", "a <= 3 and b >= 3"),
    ("a NOT BETWEEN 1 AND NULL", "not a >= 1"),
    ("a IN (1, 2)", "a in (1, 2)"),
    ("a IN (1, NULL, b)", "a in (1) or a = @b"),
    ("1 NOT IN (a, b)", "not a = 1 and not b = 1"),
    ("t LIKE 'oak%'", 't like "oak%"'),
    ("t NOT LIKE '5!%' ESCAPE '!'", 'not t like "5\\\\%"'),
    ("t LIKE 'a\\!_!!' ESCAPE '!'", 't like "a\\\\\\\\\\\\_!"'),
    ("t LIKE 'a\\' ESCAPE ''", 't like "a\\\\\\\\"'),
    ("t ILIKE 'Oak%'", 't like "Oak%" ignoring case'),
    ("t IS NULL OR u IS NOT NULL", "t is null or not u is null"),
    ("t ISNULL OR u NOTNULL", "t is null or not u is null"),
    ("flag AND NOT flag IS NULL", "flag = true and not flag is null"),
    ("NOT (a = 1 OR b = 2)", "not a = 1 and not b = 2"),
    ("a = 1 OR NOT b = 2", "a = 1 or not b = 2"),
    ("a = 1 OR b = 2 AND t = 'x'", 'a = 1 or b = 2 and t = "x"'),
    ("flag IS TRUE", "flag = true"),
    ("flag IS NOT TRUE", "not flag = true or flag is null"),
    ("flag IS FALSE", "not flag = true"),
    ("(a = 1) IS UNKNOWN", "a is null"),
    ("(a = 1) IS NOT UNKNOWN", "a = 1 or not a = 1"),
    (
        "(a = 1 OR b = 2) IS NOT NULL",
        "not a = 1 and not b = 2 or a = 1 or b = 2",
    ),
    ("(a < b) IS NOT TRUE", "not a < @b or a is null or b is null"),
    ("a IS DISTINCT FROM 5", "not a = 5 or a is null"),
    ("a IS NOT DISTINCT FROM b", "a = @b or a is null and b is null"),
    ("a IS NOT DISTINCT FROM NULL", "a is null"),
    ("a < b + 2 * d - 1", "a < @b + 2 * @d - 1"),
    ("-a < b", "-@a < @b"),
    ("1.0 * a / b > 2", "1.0 * @a / @b > 2"),
    ("a + b IS NULL", "a is null or b is null"),
    ("a + b IS NOT NULL", "not a is null and not b is null"),
    ("at >= DATE '2026-01-31'", 'at >= "2026-01-31"'),
    ("at < CAST('2026-01-31 12:00:00' AS TIMESTAMP)", 'at < "2026-01-31 12:00:00"'),
    ("at < TIMESTAMPTZ '2026-01-31 12:00:00+01:00'", 'at < "2026-01-31 12:00:00+01:00"'),
    ("at < TIMESTAMPTZ '2026-01-31 12:00:00+01'", 'at < "2026-01-31 12:00:00+01:00"'),
    ("at < TIMESTAMP '2026-01-31 12:00:00+00'", 'at < "2026-01-31 12:00:00+00:00"'),
    ("at < '2026-01-31'", 'at < "2026-01-31"'),
    ("at < '2026-01-31T12:00:00Z'", 'at < "2026-01-31T12:00:00Z"'),
    ("d < 1e300", "d < 1e+300"),
    ('seller.rating > 3 OR "seller"."rating" < 1', "seller.rating > 3 or seller.rating < 1"),
    ('"unit price" < 5', "`unit price` < 5"),
    ("t = 'it''s'", 't = "it\'s"'),
    ("size = 's'", 'size = "s"'),
    ("1 = 1 AND a = 1 -- all", "a = 1"),
    ("a = 1 OR 'a' > 'b' OR NULL", "a = 1"),
    ("1 = 1", "event_type exists or event_type missing"),
]


@pytest.mark.parametrize(("sql", "text"), MEANING, ids=[sql for sql, _ in MEANING])
def test_each_construct_means(sql: str, text: str) -> None:
    condition = read(sql, TYPED, language="sql")
    assert to_text(condition) == text
    assert to_text(parse(text, TYPED)) == text


REFUSED = [
    ("lower(t) = 'x'", "the function LOWER cannot be translated", "lower(t)"),
    ("frob(t) = 'x'", "the function FROB", "frob(t)"),
    ("CASE WHEN a = 1 THEN flag END", "CASE cannot", "CASE WHEN a = 1 THEN flag END"),
    ("a IN (SELECT 1)", "a subquery cannot", "a IN (SELECT 1)"),
    ("EXISTS (SELECT 1)", "EXISTS cannot", None),
    ("a = (SELECT 1)", "a subquery cannot", None),
    ("t ~ 'x'", "'~'", "~"),
    ("t REGEXP 'x'", "a regular expression cannot", "t REGEXP 'x'"),
    ("t SIMILAR TO 'x'", "SIMILAR TO cannot", "t SIMILAR TO 'x'"),
    ("a % 2 = 0", "the remainder", "a % 2"),
    ("t || 'x' = 'y'", "|| cannot", "t || 'x'"),
    ("CAST(a AS TEXT) = '5'", "a cast cannot", None),
    ("at < NOW()", "the function NOW", "NOW()"),
    ("at < CURRENT_TIMESTAMP", "the current time", "CURRENT_TIMESTAMP"),
    ("at < INTERVAL '1' DAY", "INTERVAL cannot", None),
    ("a = ?", "a parameter cannot", "?"),
    ("a = :x", "a parameter cannot", None),
    ("a = $1", "'$1' is no name", "$1"),
    ("(a, b) = (1, 2)", "a row of values", None),
    ("a / b > 2", "divide whole numbers", "a / b"),
    ("d = 1.0 / 0", "a division by zero", "1.0 / 0"),
    ("(1.0 * a / b > 2) IS NOT TRUE", "a division is unknown", None),
    ("t LIKE 'a\\%'", "a backslash", "t LIKE 'a\\%'"),
    ("t LIKE u", "LIKE compares an attribute with a text", "t LIKE u"),
    ("t LIKE 'a!' ESCAPE '!'", "ends in its ESCAPE", None),
    ("t LIKE 'a' ESCAPE 'ab'", "one character", None),
    ("a BETWEEN SYMMETRIC 5 AND 1", "SYMMETRIC", None),
    ("a = '5'", "'5' is text, expected a number", "a = '5'"),
    ("t = 5", "expected text", "t = 5"),
    ("t + 1 < 5", "@t is text; arithmetic takes numbers", None),
    ("a + '1' < 5", "arithmetic takes numbers", "'1'"),
    ("t = DATE '2026-01-31'", "a time is compared with", None),
    ("at = DATE '2026-01-31 12:00'", "is no date", None),
    ("at = TIMESTAMP '2026-13-31 12:00:00'", "is not a timestamp", None),
    ("at = TIMESTAMP '2026-01-31 12:00:00+01:00'", "offset", None),
    ("at = '2026-01-31 12:00:00+01:00'", "offset", "'2026-01-31 12:00:00+01:00'"),
    ("at IN ('2026-01-31', '2026-01-31 12:00:00-05')", "offset", "'2026-01-31 12:00:00-05'"),
    ("at BETWEEN '2026-01-31' AND '2026-01-31T12:00:00+0100'", "offset", None),
    ("A = 1", "unknown attribute 'A'", "A"),
    ("a = NULL AND nosuch = NULL", "unknown attribute 'nosuch'", "nosuch"),
    ('t = "oak"', "unknown attribute 'oak'", '"oak"'),
    ("size < 's'", "its order is not that of texts", "size < 's'"),
    ("items.sku = 'x'", "elements would be mixed", "items.sku = 'x'"),
    ("a", "'a' is integer, and no condition", "a"),
    ("'x'", "no condition", "'x'"),
    ("a = b = b", "a condition is not a value here", "a = b"),
    ("a = 1 IS TRUE", "a condition is not a value here", None),
    ("a IS 5", "IS is followed by", "a IS 5"),
    ("!flag", "'!' alone", "!"),
    ("a = 1; b = 2", "one expression", ";"),
    ("SELECT * FROM t WHERE a = 1", "not a whole query", "SELECT"),
    ("a = 1 LIMIT 3", "at 'LIMIT'", "LIMIT"),
    ("a =", "lacks something beside '='", "="),
    ("t = 'x", "the quote ' is never closed", "'"),
    ("(a = 1", "this parenthesis is never closed", "("),
    ("(a = 1))", "this closing parenthesis has no opening one", ")"),
    ("", "empty", None),
    ("WHERE", "empty", None),
    ("a = 99999999999999999999999", "outside the 64-bit integers", "99999999999999999999999"),
    ("d < 1e999", "outside the doubles", "1e999"),
    ("d > 1e-999999999", "outside the doubles", "1e-999999999"),
    ("d = 1.00000000000000000001", "more digits than a double", None),
]


@pytest.mark.parametrize(("sql", "said", "place"), REFUSED, ids=[sql for sql, *_ in REFUSED])
def test_each_refusal_says_what_and_where(sql: str, said: str, place: str | None) -> None:
    with pytest.raises(ConditionError) as caught:
        read(sql, TYPED, language="sql")
    error = caught.value
    assert said in error.message
    assert error.text is None or error.text == sql
    if place is not None:
        assert error.span is not None
        assert sql[slice(*error.span)] == place


@pytest.mark.parametrize(
    ("sql", "hint"),
    [("t ~ 'x'", "matches"), ("flag && flag", "write AND"), ("flag XOR flag", "AND NOT")],
)
def test_an_unknown_word_has_a_hint(sql: str, hint: str) -> None:
    with pytest.raises(ConditionError) as caught:
        read(sql, TYPED, language="sql")
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("sql", ["a = NULL", "a NOT IN (1, NULL)", "a < 1 AND NULL", "1 = 2"])
def test_a_clause_that_no_event_satisfies_is_refused(sql: str) -> None:
    with pytest.raises(NeverTrueError, match="never true"):
        read(sql, TYPED, language="sql")


def test_an_open_schema_knows_kinds_and_null() -> None:
    for sql, holds in (
        ("(a = 1) IS NOT TRUE", [False, True, True, True, True]),
        ("NOT a = 1", [False, True, False, False, False]),
        ("a IS NULL", [False, False, False, True, True]),
        ("(a = 1) IS UNKNOWN", [False, False, True, True, True]),
        ("TRUE", [True] * 5),
    ):
        condition = read(sql, OPEN, language="sql")
        events: list[dict[str, Any]] = [{"a": 1}, {"a": 2}, {"a": "1"}, {"a": None}, {}]
        assert [satisfies(condition, event, OPEN) for event in events] == holds
        engine = Engine()
        engine.subscribe(sql, id=1, language="sql")
        assert [engine.match(event) == [1] for event in events] == holds
    with pytest.raises(ConditionError, match="dynamic attributes is unknown"):
        read("(a < b) IS UNKNOWN", OPEN, language="sql")
    with pytest.raises(
        ConditionError, match="a time is compared with an attribute that is dynamic"
    ):
        read("a < DATE '2026-01-31'", OPEN, language="sql")


@pytest.mark.parametrize(
    "sql",
    [
        "(" * 30 + "a = 1" + ")" * 30,
        "NOT " * 30 + "a = 1",
        "a < " + "- " * 30 + "b",
        "a < " + "+".join(["b"] * 500),
        "CASE WHEN " * 40 + "a = 1",
        "[" * 500,
        "a = 1 AND " * 1_000 + "(" * 100,
    ],
    ids=lambda sql: sql[:12],
)
def test_hostile_nesting_is_refused(sql: str) -> None:
    with pytest.raises(ConditionError):
        read(sql, TYPED, language="sql")


def test_truths_that_multiply_are_counted() -> None:
    sql = "a = 1"
    for _ in range(20):
        sql = f"({sql}) IS NULL AND b = 1"
    with pytest.raises(LimitError, match=f"{PREDICATE_LIMIT:,} predicates"):
        read(f"({sql}) IS NULL", TYPED, language="sql")


def test_without_the_parser_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['sqlglot'] = None\n"
        "from tamis import Schema\n"
        "from tamis.language import read\n"
        "try: read('a = 1', Schema.open(), language='sql')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    assert run_script(code).stdout.strip() == (
        "ConditionError SQL is read by sqlglot: pip install 'tamis[sqlrules]'"
    )


def test_dialects_are_listed_without_the_parser() -> None:
    code = "import sys, tamis; print('sql' in tamis.dialects(), 'sqlglot' in sys.modules)"
    assert run_script(code).stdout.strip() == "True False"


def test_numbers_of_any_length_are_read_or_refused_at_once() -> None:
    assert read("d < 0e999999999", TYPED, language="sql") == parse("d < 0.0", TYPED)
    for number in (f"1.{'0' * 5000}1", f"0.{'0' * 5000}", f"{'0' * 5000}1"):
        with pytest.raises(ConditionError, match="more than 1,000 characters"):
            read(f"d < {number}", TYPED, language="sql")


@pytest.mark.parametrize("part", ["NULL = NULL", "TRUE IS NULL", "NULL", "FALSE"])
def test_a_long_chain_without_names_is_read(part: str) -> None:
    text = " OR ".join(["a = 1", *[part] * 4000])
    assert read(text, TYPED, language="sql") == parse("a = 1", TYPED)


@pytest.mark.parametrize("part", ["NULL", "TRUE", "t IS NULL"])
def test_asking_again_and_again_for_the_unknown_has_a_limit(part: str) -> None:
    text = "NULL"
    for _ in range(24):
        text = f"({text} AND {part}) IS UNKNOWN"
    with pytest.raises(LimitError, match="more than 10,000 predicates"):
        read(text, TYPED, language="sql")


def test_a_long_list_is_looked_at_once() -> None:
    text = f"a IN ({', '.join(['b'] * 5000)})"
    assert isinstance(read(text, TYPED, language="sql"), Or)


def test_a_long_name_is_refused() -> None:
    with pytest.raises(ConditionError, match="unknown attribute"):
        read(".".join(["x"] * 20_000) + " = 1", TYPED, language="sql")
