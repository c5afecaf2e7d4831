"""What is wrong with a call or a value constraint, where, and what would be right."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Schema
from tamis.errors import ConditionError, LimitError
from tamis.language import check, parse
from tamis.model.condition import (
    And,
    Arithmetic,
    Call,
    Condition,
    Expression,
    Not,
    Or,
    ValueConstraint,
    Variable,
    variables,
)
from tamis.model.operator import Parameter, Signature
from tests.unit.language.conditions import grow

SCHEMA = Schema.from_dict({"attributes": {"price": "decimal", "position": "opaque"}})


def signature(name: str, *parameters: Parameter, reads: tuple[str, ...] = ()) -> Signature:
    return Signature(name, parameters, reads)


def takes(name: str, kind: str) -> Parameter:
    return Parameter(name, kind, False)


def gives(name: str, kind: str) -> Parameter:
    return Parameter(name, kind, True)


OPERATORS = {
    each.name: each
    for each in (
        signature("quiet"),
        signature("locIn", takes("place", "text"), reads=("position",)),
        signature(
            "distanceFrom", takes("place", "text"), gives("metres", "number"), reads=("position",)
        ),
        signature("count", gives("n", "number")),
        signature("double", gives("n", "number"), gives("m", "number")),
        signature("name", gives("it", "text")),
        signature("lit", gives("on", "boolean")),
        signature("thing", gives("it", "any")),
        signature("flag", takes("on", "boolean"), takes("it", "any")),
        signature("high", reads=("altitude",)),
    )
}
# text, what the carets stand under, words of the message, words of the hint
MISTAKES = [
    # operators
    ("price < 5 and\n locin(Bronx)", "locin", "unknown operator 'locin'", "did you mean 'locIn'?"),
    ("`no such`(1)", "`no such`", "unknown operator 'no such'", ""),
    ("distanceFrom(Bronx)", "distanceFrom(Bronx)", "got 1: distanceFrom(place, metres)", "metres"),
    ("locIn(Bronx, 5)", "locIn(Bronx, 5)", "takes 1 argument, got 2: locIn(place)", ""),
    ("quiet(1)", "quiet(1)", "takes no arguments, got 1: quiet()", ""),
    ("locIn(5)", "5", "'place' of locIn(place) is text: 5 is a number", "in quotes"),
    ("locIn(true)", "true", "True is a boolean, expected text", "in quotes"),
    (
        "locIn( ?x )",
        "?x",
        "'place' of locIn(place) must be a constant, not a variable",
        "binds no variables",
    ),
    ("distanceFrom(?x, ?y)", "?x", "must be a constant, not a variable", "may be at: metres"),
    ("distanceFrom(Bronx, far)", "far", "'far' is text, expected a number", ""),
    ("distanceFrom(Bronx, '-5')", "'-5'", "'-5' is text, expected a number", ""),
    (
        "distanceFrom(Bronx, price)",
        "price",
        "'price' is an attribute",
        "read attributes themselves",
    ),
    ("distanceFrom(Bronx, true)", "true", "is a boolean, expected a number", ""),
    ("count(-9999999999999999999)", "-9999999999999999999", "outside the 64-bit", ""),
    ("lit('true')", "'true'", "'on' of lit(on) is true or false", "without quotes"),
    ("flag(1, 2)", "1", "1 is not true or false", ""),
    (r'flag(true, "\ud800")', r'"\ud800"', "lone surrogate", ""),
    ("high()", "high", "'high' reads the attribute 'altitude', which is not in the schema", ""),
    ("count(?n) > 5", ">", "'count' is an operator", "count(…, ?x) and ?x > 5"),
    ("count(?n + 1)", "+", "expected ',' or ')'", "arguments are constants and variables"),
    ("count(?n", "", "expected ',' or ')'", ""),
    ("count(?n,)", ")", "expected a variable or a value", ""),
    ("contains(5)", "contains", "expected a predicate", "`contains`"),
    ("count(", "", "expected a variable or a value", ""),
    # variables that nothing binds
    ("?n > 5", "?n", "nothing binds ?n", "operator(?n)"),
    ("count(?n) and ?m > ?n", "?m", "nothing binds ?m", "operator(?m)"),
    ("not count(?n)", "?n", "nothing binds ?n", "under 'not'"),
    ("not double(?n, ?m) and count(?n)", "?m", "nothing binds ?m", "under 'not'"),
    ("count(?n) or ?n > 5", "?n > 5", "nothing binds ?n", "each branch of an 'or'"),
    ("(count(?n) or quiet()) and ?n > 5", "?n > 5", "nothing binds ?n", "each branch of an 'or'"),
    ("not (count(?n) and ?n > 5)", "?n)", "nothing binds ?n", "under 'not'"),
    ("not (quiet() or count(?n))", "?n", "nothing binds ?n", "under 'not'"),
    ("count(?n) and (quiet() or not count(?m))", "?m", "nothing binds ?m", "under 'not'"),
    # types of variables
    ("name(?x) and ?x > 5", "?x > 5", "?x is text, but 5 is a number", "name(it) binds"),
    ("count(?x) and oak = ?x", "?x", "not with variables", ""),
    ("count(?x) and ?x = oak", "?x = oak", '?x is a number, but "oak" is text', "count(n) binds"),
    ("count(?x) and ?x = true", "?x = true", "?x is a number, but true is true or false", ""),
    ("count(?x) and name(?y) and ?x = ?y", "?x = ?y", "?x is a number, but ?y is text", "name(it)"),
    ("name(?x) and ?x + 1 > 5", "?x", "?x is text; arithmetic takes numbers", "name(it)"),
    ("count(?x) and ?x > 2 * 'a'", "'a'", '"a" is text; arithmetic', ""),
    ("count(?x) and ?x > -true", "true", "true is true or false; arithmetic", ""),
    ("lit(?x) and ?x < true", "<", "true and false have no comparator '<'", "= !="),
    ("thing(?x) and ?x < true", "<", "true and false have no comparator '<'", "= !="),
    ("name(?x) and count(?x)", "?x", "?x is text in name(it), but a number here", ""),
    ("thing(?x) and name(?x) and count(?x)", "?x", "?x is text in name(it)", ""),
    ("name(?x) and not count(?x)", "?x", "?x is text in name(it), but a number here", ""),
    # constraints
    ("5 < 6", "5 < 6", "compares constants only", ""),
    ("count(?x) and (1 + 2) * 3 > 4", "(1 + 2) * 3 > 4", "compares constants only", ""),
    ("count(?x) and 5 <= price", "5 <= price", "constants only", "comes first: price >= 5"),
    ("count(?x) and ?x < price", "price", "'price' is an attribute", "can bind its value"),
    ("count(?x) and ?x < 2 * price", "price", "'price' is not a number", "write the value"),
    ("count(?x) and ?x < 2 * @price", "?x < 2 * @price", "with an attribute", "can bind"),
    ("count(?x) and price < ?x", "?x", "not with variables", "can bind its value"),
    ("count(?x) and price in (1, ?x)", "?x", "not with variables", ""),
    ("count(?x) and price + 1 < ?x", "+", "expected a comparator", "as @price"),
    ("count(?x) and ?x in (1, 2)", "in", "variables have no comparator 'in'", "= != < <= > >="),
    ("count(?x) and ?x not in (1)", "not", "variables have no comparator 'not'", "= !="),
    ("count(?x) and 1 < ?x < 5", "< 5", "has two sides", "?x > 1 and ?x < 5"),
    ("count(?x) and ?x", "", "expected a comparator after the expression", "?people > 50"),
    ("count(?x) and (?x or ?x > 1)", "or", "expected a comparator after the expression", ""),
    ("count(?x) and (?x + 1", "", "expected a closing parenthesis", ""),
    ("count(?x) and ?x >", "", "expected a variable or a value", ""),
    ("count(?x) and ?x > count(5)", "count(5)", "cannot be part of an expression", "count(…, ?x)"),
    ("count(?x) and ? > 5", "?", "a lone question mark", "?people"),
    ("count(?x) and ?x > 99999999999999999999", "9" * 20, "outside the 64-bit", ""),
    ("count(?x) and ?x > 1 - -9999999999999999999", "-" + "9" * 19, "outside the 64-bit", ""),
    (r'name(?x) and ?x = "\ud800"', r'"\ud800"', "lone surrogate", ""),
]


@pytest.mark.parametrize(
    ("text", "marked", "message", "hint"), MISTAKES, ids=[mistake[0] for mistake in MISTAKES]
)
def test_a_mistake_is_shown_where_it_stands(
    text: str, marked: str, message: str, hint: str
) -> None:
    with pytest.raises(ConditionError) as caught:
        parse(text, SCHEMA, OPERATORS)
    error = caught.value
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.span is not None
    start, end = error.span
    # The last place where it stands: in a few texts the same words are right before.
    assert start == (text.rindex(marked) if marked else len(text))
    assert text[start:end] == marked or marked.startswith(text[start:end])
    assert end > start or not marked


ACCEPTED = [
    "quiet()",
    "locIn(Bronx) and price < 5",
    "distanceFrom(Bronx, ?m) and ?m < 1000",
    "distanceFrom(Bronx, 1.5)",
    "count(?n) and not double(?n, ?n)",
    "not locIn(Bronx)",
    "?n > 5 and count(?n)",
    "count(?n) and ?n > 5 or name(?n) and ?n > oak",
    "(count(?n) or double(?n, ?m)) and ?n > 5",
    "count(?n) and (?n > 5 or quiet())",
    "not (not count(?n) or ?n > 5)",
    "thing(?x) and ?x > 5 and ?x > oak",
    "thing(?x) and name(?x) and ?x > oak",
    "thing(?x) and not count(?x)",
    "name(?x) and ?x = 'price'",
    "lit(?x) and ?x != false",
    "count(?x) and -(?x / 2) + 1 >= -?x",
    "flag(false, 5) and flag(true, oak)",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_is_right_is_accepted(text: str) -> None:
    parse(text, SCHEMA, OPERATORS)


def test_without_operators_every_call_is_unknown() -> None:
    none: list[dict[str, Signature] | None] = [None, {}]
    for operators in none:
        with pytest.raises(ConditionError, match="'quiet': no operator is registered"):
            parse("quiet()", SCHEMA, operators)
    assert parse("quiet()") == Call("quiet")


def test_an_or_too_large_to_expand_is_refused_before_it_is_looked_through() -> None:
    pair = "(count(?x) or name(?x))"
    with pytest.raises(LimitError, match="clauses"):
        parse(" and ".join([pair] * 200), SCHEMA, OPERATORS)


X = Variable("x")
BUILT: list[tuple[Condition, str]] = [
    (Call("count", [X]), "is not a condition"),  # type: ignore[arg-type]
    (Call(5, (X,)), "is not a condition"),  # type: ignore[arg-type]
    (Call("count", (None,)), "expected a number"),  # type: ignore[arg-type]
    (Call("thing", ([1],)), "is a list"),  # type: ignore[arg-type]
    (Call("count", (float("nan"),)), "is not a finite number"),
    (ValueConstraint(X, "in", 5), "variables have no comparator 'in'"),
    (ValueConstraint(1, "<", 5), "compares constants only"),
    (ValueConstraint(X, "<", None), "is NoneType"),  # type: ignore[arg-type]
    (ValueConstraint(X, "<", Arithmetic("%", X, 5)), "'%' is not one of"),
    (And((Call("count", (X,)), ValueConstraint(X, "<", float("inf")))), "not a finite number"),
]


@pytest.mark.parametrize(("condition", "words"), BUILT, ids=[words for _, words in BUILT])
def test_conditions_that_a_program_built_are_checked_too(condition: Condition, words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        check(condition, SCHEMA, None, OPERATORS)


def test_shared_expressions_are_looked_at_once() -> None:
    shared: Expression = Arithmetic("+", 1, 1)
    for _ in range(90):
        shared = Arithmetic("+", shared, shared)
    with pytest.raises(ConditionError, match="compares constants only"):
        check(ValueConstraint(shared, "<", 5), SCHEMA, None, OPERATORS)
    with pytest.raises(LimitError, match="values"):
        check(Or((Call("quiet"), ValueConstraint(shared, "<", X))), SCHEMA, None, OPERATORS)


# -- whether something binds a variable, against each way to satisfy the condition -----------------

atoms: st.SearchStrategy[Condition] = st.one_of(
    st.sampled_from("xy").map(lambda name: Call("count", (Variable(name),))),
    st.just(Call("double", (Variable("x"), Variable("y")))),
    st.sampled_from("xy").map(lambda name: ValueConstraint(Variable(name), ">", 5)),
    st.just(Call("quiet")),
)


def binds(condition: Condition, positive: bool) -> list[tuple[set[str], set[str]]]:
    """For each way to satisfy the condition, the variables that are bound and that are used."""
    if isinstance(condition, Not):
        return binds(condition.part, not positive)
    if isinstance(condition, And | Or):
        ways = [binds(part, positive) for part in condition.parts]
        if isinstance(condition, Or) == positive:
            return [way for part in ways for way in part]
        return [
            (set().union(*(b for b, _ in each)), set().union(*(u for _, u in each)))
            for each in product(*ways)
        ]
    used = {variable.name for variable in variables(condition)}
    return [(used if positive and isinstance(condition, Call) else set(), used)]


@settings(max_examples=400)
@given(condition=st.recursive(atoms, grow, max_leaves=7))
@pytest.mark.slow
def test_a_variable_is_bound_in_every_way_to_satisfy_the_condition(condition: Condition) -> None:
    right = all(used <= bound for bound, used in binds(condition, True))
    if right:
        check(condition, SCHEMA, None, OPERATORS)
    else:
        with pytest.raises(ConditionError, match="nothing binds"):
            check(condition, SCHEMA, None, OPERATORS)
