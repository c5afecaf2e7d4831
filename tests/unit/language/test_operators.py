"""Calls, variables and value constraints: text and condition, both ways, and their limits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import ConditionError, LimitError
from tamis.language import check_size, clauses, parse, to_text
from tamis.model.condition import (
    COMPLEMENTS,
    SIGNS,
    And,
    Arithmetic,
    Call,
    Condition,
    Constant,
    Expression,
    Literal,
    Not,
    Or,
    Predicate,
    Some,
    ValueConstraint,
    Variable,
    Word,
    leaves,
)
from tests.unit.language.conditions import grow, is_read_as, is_read_or_refused

X, Y, Z = (Variable(name) for name in "xyz")
F = Call("f", (X,))


def bigger(left: Expression, right: Expression) -> ValueConstraint:
    return ValueConstraint(left, ">", right)


FIXTURES: list[tuple[str, Condition]] = [
    ("quiet()", Call("quiet")),
    ("locIn(Bronx)", Call("locIn", ("Bronx",))),
    ("locIn (Bronx)", Call("locIn", ("Bronx",))),
    ('locIn("Times Square")', Call("locIn", ("Times Square",))),
    ("a.b(1, -2.5, true, 2026-01-31, ?x)", Call("a.b", (1, -2.5, True, "2026-01-31", X))),
    ("`in`(?x,?x)", Call("in", (X, X))),
    ("f(?in)", Call("f", (Variable("in"),))),
    ("f(?größe.x_1)", Call("f", (Variable("größe.x_1"),))),
    ("not f(?x)", Not(F)),
    ("f(?x) and a = 1", And((F, Predicate("a", "=", 1)))),
    ("a = 1 or f(?x)", Or((Predicate("a", "=", 1), F))),
    ("(f(?x))", F),
    ("f(?x) and ?x > 50", And((F, bigger(X, 50)))),
    ("f(?x) and (?x>50)", And((F, bigger(X, 50)))),
    ("f(?x) and ((?x) > (50))", And((F, bigger(X, 50)))),
    ("50 < ?x", ValueConstraint(50, "<", X)),
    ("?x == 'oak'", ValueConstraint(X, "=", "oak")),
    ("?x <> oak", ValueConstraint(X, "!=", "oak")),
    ("true = ?x", ValueConstraint(True, "=", X)),
    ("?y > 2 * ?z", bigger(Y, Arithmetic("*", 2, Z))),
    ("?x + ?y * ?z > 1", bigger(Arithmetic("+", X, Arithmetic("*", Y, Z)), 1)),
    ("?x - ?y - ?z > 1", bigger(Arithmetic("-", Arithmetic("-", X, Y), Z), 1)),
    ("?x - (?y - ?z) > 1", bigger(Arithmetic("-", X, Arithmetic("-", Y, Z)), 1)),
    ("?x / ?y * ?z > 1", bigger(Arithmetic("*", Arithmetic("/", X, Y), Z), 1)),
    (
        "(?x + 1) * 2 <= 10",
        ValueConstraint(Arithmetic("*", Arithmetic("+", X, 1), 2), "<=", 10),
    ),
    (
        "((?x + 1) * 2 <= 10 or f(?x)) and a = 1",
        And(
            (
                Or((ValueConstraint(Arithmetic("*", Arithmetic("+", X, 1), 2), "<=", 10), F)),
                Predicate("a", "=", 1),
            )
        ),
    ),
    ("-?x > -5", bigger(Arithmetic("-", 0, X), -5)),
    ("?x-1 > - 5", bigger(Arithmetic("-", X, 1), -5)),
    ("-?x * 2 > 1", bigger(Arithmetic("*", Arithmetic("-", 0, X), 2), 1)),
    ("-(?x * 2) > 1", bigger(Arithmetic("-", 0, Arithmetic("*", X, 2)), 1)),
    ("?x - -?y > 1", bigger(Arithmetic("-", X, Arithmetic("-", 0, Y)), 1)),
    ("0 - 5 < ?x", ValueConstraint(Arithmetic("-", 0, 5), "<", X)),
    ("not ?x < 5", Not(ValueConstraint(X, "<", 5))),
    ("not (not (?x < 5))", Not(Not(ValueConstraint(X, "<", 5)))),
]


@pytest.mark.parametrize(("text", "condition"), FIXTURES, ids=[text for text, _ in FIXTURES])
def test_text_is_read_as(text: str, condition: Condition) -> None:
    is_read_as(text, condition)


def test_leaves_know_their_place() -> None:
    text = "a = 1 and `my op`( ?x , oak ) or not ((?x + 1) * 2 > ?y)"
    shown = [text[leaf.span[0] : leaf.span[1]] for leaf in leaves(parse(text)) if leaf.span]
    assert shown == ["a = 1", "`my op`( ?x , oak )", "(?x + 1) * 2 > ?y"]


PRINTED = [
    ("f( ?x,'oak' )", 'f(?x, "oak")'),
    ("f(oak)", "f(oak)"),
    ("((?x)) > ((1))", "?x > 1"),
    ("(?x * 2) + 1 > 0", "?x * 2 + 1 > 0"),
    ("?x * (2 + 1) > 0", "?x * (2 + 1) > 0"),
    ("?x + (2 + 1) > 0", "?x + (2 + 1) > 0"),
    ("(?x + 2) + 1 > 0", "?x + 2 + 1 > 0"),
    ("0 - ?x > 0", "-?x > 0"),
    ("-(?x + 1) > 0", "-(?x + 1) > 0"),
    ("?x = oak", '?x = "oak"'),
]


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_conditions_are_printed_one_way(text: str, printed: str) -> None:
    assert to_text(parse(text)) == printed


# -- round trips -----------------------------------------------------------------------------------

words = st.sampled_from(["oak", "and", "2026-01-31", "x y", "", '"', "price"])
constants: st.SearchStrategy[Constant] = st.one_of(
    st.text(max_size=4),
    words,
    words.map(Word),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-2, 2),
    st.floats(allow_nan=False, allow_infinity=False),
)
variables = st.sampled_from(["x", "y", "in", "not", "a.b", "größe"]).map(Variable)
expressions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(variables, constants),
    lambda inner: st.builds(Arithmetic, st.sampled_from(SIGNS), inner, inner),
    max_leaves=8,
)
comparators = st.sampled_from(list(COMPLEMENTS))
constraints = st.one_of(
    st.builds(ValueConstraint, variables, comparators, expressions),
    st.builds(
        ValueConstraint,
        expressions,
        comparators,
        st.builds(Arithmetic, st.sampled_from(SIGNS), expressions, variables),
    ),
)
calls = st.builds(
    Call,
    st.sampled_from(["f", "locIn", "in", "my op", "?x"]),
    st.lists(st.one_of(constants, variables), max_size=3).map(tuple),
)
ordinary = st.builds(Predicate, st.sampled_from("ab"), st.just("="), constants)


conditions = st.recursive(st.one_of(calls, constraints, ordinary), grow, max_leaves=6)


def kinds(expression: Expression) -> list[str]:
    """The types of all operands: True equals 1, but is not the same."""
    if isinstance(expression, Arithmetic):
        return kinds(expression.left) + kinds(expression.right)
    return ["text" if isinstance(expression, str) else type(expression).__name__]


def all_kinds(condition: Condition) -> list[list[str]]:
    return [
        [kind for each in leaf.arguments for kind in kinds(each)]
        if isinstance(leaf, Call)
        else kinds(leaf.left) + kinds(leaf.right)
        for leaf in leaves(condition)
        if not isinstance(leaf, Predicate | Some)
    ]


@settings(max_examples=500)
@given(condition=conditions)
@pytest.mark.slow
def test_printing_and_parsing_gives_the_condition_back(condition: Condition) -> None:
    text = to_text(condition)
    again = parse(text)
    assert again == condition
    assert all_kinds(again) == all_kinds(condition)


PIECES = ["?x", "?y", "f", "a", " and ", " or ", "not ", *"()(),12-+*/<=>"]


@settings(max_examples=500)
@given(text=st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_no_text_makes_the_parser_fail_otherwise_than_by_its_own_error(text: str) -> None:
    is_read_or_refused(text)


# -- normal form and limits ------------------------------------------------------------------------


def test_calls_and_constraints_are_literals_like_others() -> None:
    found = clauses(parse("f(?x) and not (?x > 5 or g(?x) and a = 1)"))
    over, g, a = bigger(X, 5), Call("g", (X,)), Predicate("a", "=", 1)
    assert [each.literals for each in found] == [
        (Literal(F, True), Literal(over, False), Literal(g, False)),
        (Literal(F, True), Literal(over, False), Literal(a, False)),
    ]


def test_limits_count_them() -> None:
    most = ["f(?x)"] * 5_000 + ["?x > 1"] * 5_000
    clauses(parse(" and ".join(most), limit=None))
    with pytest.raises(LimitError, match="10,001 predicates"):
        clauses(parse(" and ".join(["f(?x)", *most]), limit=None))
    clauses(parse(" or ".join(["f()"] * 1000)))
    with pytest.raises(LimitError, match="1,001 clauses"):
        clauses(parse(" or ".join(["f()"] * 1001)))


def test_values_of_calls_and_expressions_count() -> None:
    with pytest.raises(LimitError, match="100,001 values"):
        check_size(Call("f", tuple(range(100_001))))
    shared: Expression = X
    for _ in range(60):
        shared = Arithmetic("+", shared, shared)
    with pytest.raises(LimitError, match="more than 1,000,000,000 values"):
        check_size(bigger(shared, 1))


def chain(levels: int, grow_right: bool) -> Expression:
    found: Expression = X
    for _ in range(levels):
        found = Arithmetic("-", 1, found) if grow_right else Arithmetic("-", found, 1)
    return found


@pytest.mark.parametrize("grow_right", [True, False])
def test_100_levels_of_arithmetic_are_read_and_one_more_is_not(grow_right: bool) -> None:
    most = bigger(chain(100, grow_right), 1)
    check_size(most)
    assert parse(to_text(most)) == most
    over = bigger(1, chain(101, grow_right))
    far = bigger(chain(100_000, grow_right), 1)
    for refused in (
        lambda: check_size(over),
        lambda: parse(to_text(over)),
        lambda: check_size(far),
    ):
        with pytest.raises(LimitError, match="nested deeper than 100"):
            refused()


def test_arithmetic_counts_with_the_levels_around_it() -> None:
    condition: Condition = bigger(chain(60, True), 1)
    for _ in range(40):
        condition = Not(condition)
    check_size(condition)
    assert parse(to_text(condition)) == condition
    with pytest.raises(LimitError, match="nested deeper than 100"):
        check_size(Not(condition))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 30_000 + "?x",
        "(" * 101 + "?x" + ")" * 101 + " > 1",
        "-" * 60_000 + "?x > 1",
        "-(" * 20_000 + "?x > 1",
        "1" + " + 1" * 16_000 + " > ?x",
        "1" + " * 1" * 16_000 + " > ?x",
        "?x > " + "(" * 30_000 + "1",
    ],
    ids=lambda text: text[:8],
)
def test_what_is_nested_too_deeply_is_refused_at_once(text: str) -> None:
    with pytest.raises(LimitError, match="nested deeper than 100"):
        parse(text)


def test_parentheses_of_both_sorts_nest_without_being_read_twice() -> None:
    """If each level were tried as a condition and again as a sum, this would never end."""
    text = "(" * 50 + "?x" + " + 1)" * 50 + " > 1"
    assert parse("(" * 49 + text + ")" * 49) == parse(text)


def test_a_variable_has_a_name_that_can_be_written() -> None:
    for name in ("", "1st", "a b", "?x", None):
        with pytest.raises(ConditionError, match="is not a name of a variable"):
            Variable(name)  # type: ignore[arg-type]
