"""When operators, variables and constraints hold: worked by hand, then by all substitutions."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Schema, parse
from tamis.errors import ConditionError
from tamis.model.condition import (
    And,
    Call,
    Constant,
    Not,
    ValueConstraint,
    Variable,
    variables,
)
from tamis.model.operator import Fault, Parameter, Rows, Signature
from tamis.model.operator_semantics import OperatorTable
from tamis.model.semantics import satisfies
from tests.schemas import one_type

SCHEMA = Schema.from_dict(
    one_type("offer", {"price": "decimal", "tags": "text*", "sizes": "integer*", "image": "opaque"})
)
YES, NO = True, False


def free(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name, "any", True) for name in names)


def giving(name: str, rows: Rows | Fault, *names: str) -> tuple[Signature, Any]:
    """An operator that reads nothing and always answers the same."""
    return Signature(name, free(*names), ()), lambda values, given: rows


def lengths(values: tuple[Any, ...], given: tuple[Constant | None, ...]) -> Rows:
    return ((len(values[0]),),)


def begins(values: tuple[Any, ...], given: tuple[Constant | None, ...]) -> Rows:
    return ((),) if values[0].startswith(given[0]) else ()


def times(values: tuple[Any, ...], given: tuple[Constant | None, ...]) -> Rows | Fault:
    assert given[1] is None or not isinstance(given[1], Variable)
    text, size = values
    return Fault("no size below 0", "raised") if size < 0 else ((text * size, size),)


TABLE: OperatorTable = {
    # no free parameters: true or false
    "yes": giving("yes", ((),)),
    "no": giving("no", ()),
    "broken": giving("broken", Fault("it hangs", "timeout")),
    "late": giving("late", Fault("it hangs", "timeout"), "n"),
    # relations
    "people": giving("people", ((30,), (60,)), "n"),
    "cars": giving("cars", ((60,), (90,)), "n"),
    "nothing": giving("nothing", (), "n"),
    "pairs": giving("pairs", ((1, 2), (2, 2), (3, 4)), "a", "b"),
    "one": giving("one", ((1.0,),), "n"),
    "truth": giving("truth", ((True,),), "n"),
    "text": giving("text", (("1",), ("b",)), "n"),
    "zero": giving("zero", ((0,),), "n"),
    "huge": giving("huge", ((1e308,), (2**63,)), "n"),
    "list": giving("list", (([1],),), "n"),
    "mixed": giving("mixed", ((True,), ("1",), (5,)), "n"),
    # looking at the event
    "length": (Signature("length", free("n"), ("tags",)), lengths),
    "begins": (Signature("begins", (Parameter("with", "text", False),), ("tags",)), begins),
    "times": (
        Signature("times", (*free("text"), *free("size")), ("tags", "sizes")),
        times,
    ),
}
CASES: list[tuple[str, dict[str, Any], bool]] = [
    # true and false
    ("yes()", {}, YES),
    ("no()", {}, NO),
    ("not yes()", {}, NO),
    ("not no()", {}, YES),
    ("price < 5 and yes()", {"price": 3}, YES),
    ("price < 5 and yes()", {"price": 7}, NO),
    ("price < 5 and no() or price > 1 and yes()", {"price": 3}, YES),
    # a variable takes some one value
    ("people(?n)", {}, YES),
    ("nothing(?n)", {}, NO),
    ("people(?n) and ?n > 50", {}, YES),
    ("people(?n) and ?n > 60", {}, NO),
    ("people(?n) and ?n > 50 and ?n < 40", {}, NO),
    ("people(?n) and ?n < 40 and people(?m) and ?m > 50", {}, YES),
    ("people(?n) and not (?n < 50 or ?n > 70)", {}, YES),
    # constants at free places
    ("people(60)", {}, YES),
    ("people(61)", {}, NO),
    ("people(60.0)", {}, YES),
    ("people('60')", {}, NO),
    ("one(1)", {}, YES),
    ("one(true)", {}, NO),
    ("one('1')", {}, NO),
    ("truth(true)", {}, YES),
    ("truth(1)", {}, NO),
    ("text('1')", {}, YES),
    ("text(1)", {}, NO),
    ("pairs(1, ?b) and ?b = 2", {}, YES),
    ("pairs(3, ?b) and ?b = 2", {}, NO),
    ("pairs(?a, 4) and ?a = 3", {}, YES),
    # the same variable twice
    ("pairs(?a, ?a)", {}, YES),
    ("pairs(?a, ?a) and ?a = 2", {}, YES),
    ("pairs(?a, ?a) and ?a = 1", {}, NO),
    # joins
    ("people(?n) and cars(?n)", {}, YES),
    ("people(?n) and cars(?n) and ?n < 60", {}, NO),
    ("people(?n) and one(?n)", {}, NO),
    ("pairs(?a, ?b) and pairs(?b, ?c)", {}, YES),
    ("pairs(?a, ?b) and pairs(?b, ?c) and ?a = 1 and ?c = 2", {}, YES),
    ("pairs(?a, ?b) and pairs(?b, ?c) and ?c = 4", {}, NO),
    ("pairs(?a, ?b) and pairs(?b, ?a)", {}, YES),
    ("pairs(?a, ?b) and pairs(?b, ?a) and ?a != ?b", {}, NO),
    ("people(?n) and nothing(?m)", {}, NO),
    ("one(?n) and truth(?n)", {}, NO),
    ("one(?n) and pairs(?n, ?m) and ?m = 2", {}, YES),
    ("list(?n) and list(?m) and list(?n)", {}, YES),
    # negated calls take away
    ("people(?n) and not cars(?n)", {}, YES),
    ("people(?n) and not cars(?n) and ?n > 50", {}, NO),
    ("people(?n) and not people(?n)", {}, NO),
    ("people(?n) and not nothing(?n)", {}, YES),
    ("people(?n) and not cars(60)", {}, NO),
    ("people(?n) and not cars(61)", {}, YES),
    ("pairs(?a, ?b) and not pairs(?b, ?a)", {}, YES),
    ("pairs(?a, ?b) and not pairs(?b, ?a) and ?b = 4", {}, YES),
    ("pairs(?a, ?b) and not pairs(?b, ?b)", {}, YES),
    ("pairs(?a, ?b) and not pairs(?b, ?b) and ?b = 2", {}, NO),
    ("not (not people(?n) or ?n < 50)", {}, YES),
    ("not people(60)", {}, NO),
    ("not people(61)", {}, YES),
    # faults: neither true nor false
    ("broken()", {}, NO),
    ("not broken()", {}, NO),
    ("late(?n)", {}, NO),
    ("people(?n) and not late(?n)", {}, NO),
    ("people(?n) and not late(5)", {}, NO),
    ("broken() or yes()", {}, YES),
    ("not broken() or people(?n) and ?n > 50", {}, YES),
    ("yes() and not broken()", {}, NO),
    ("not (broken() and no())", {}, YES),
    # attributes that are not bound
    ("length(?n)", {}, NO),
    ("not begins(o)", {}, NO),
    ("not length(5)", {}, NO),
    ("people(?n) and not length(?n)", {}, NO),
    ("not begins(o) or price missing", {}, YES),
    ("times(?t, ?s)", {"tags": "a"}, NO),
    # several values
    ("length(?n)", {"tags": ["oak", "iron"]}, YES),
    ("length(?n) and ?n = 4", {"tags": ["oak", "iron"]}, YES),
    ("length(?n) and ?n = 3", {"tags": ["oak", "iron"]}, YES),
    ("length(?n) and ?n = 3 and ?n = 4", {"tags": ["oak", "iron"]}, NO),
    ("length(4)", {"tags": ["oak", "iron"]}, YES),
    ("not length(4)", {"tags": ["oak", "iron"]}, NO),
    ("begins(o)", {"tags": ["oak", "iron"]}, YES),
    ("not begins(o)", {"tags": ["oak", "iron"]}, NO),
    ("not begins(o)", {"tags": ["elm", "iron"]}, YES),
    ("tags = oak and begins(i)", {"tags": ["oak", "iron"]}, YES),
    ("times(abab, 2)", {"tags": ["ab", "c"], "sizes": [1, 2]}, YES),
    ("times(c, 1) and times(abab, 2)", {"tags": ["ab", "c"], "sizes": [1, 2]}, YES),
    ("times(abab, 1)", {"tags": ["ab", "c"], "sizes": [1, 2]}, NO),
    ("times(?t, ?s)", {"tags": ["ab", "c"], "sizes": [1, -2]}, NO),
    ("not times(x, 1)", {"tags": ["ab", "c"], "sizes": [1, -2]}, NO),
    # each branch of an `or` has variables of its own
    ("people(?n) and ?n > 50 or cars(?n) and ?n < 50", {}, YES),
    ("(people(?n) or cars(?n)) and ?n > 80", {}, YES),
    ("(people(?n) or cars(?n)) and ?n < 20", {}, NO),
    ("(people(?n) or one(?n)) and (cars(?n) or nothing(?n))", {}, YES),
    ("(one(?n) or nothing(?n)) and (cars(?n) or people(?n))", {}, NO),
    ("people(?n) and (?n < 20 or ?n > 50)", {}, YES),
    # arithmetic
    ("people(?n) and ?n = 2 * 15", {}, YES),
    ("people(?n) and ?n + ?n = 120", {}, YES),
    ("people(?n) and cars(?m) and ?m > 2 * ?n", {}, YES),
    ("people(?n) and cars(?m) and ?m > 3 * ?n", {}, NO),
    ("people(?n) and -?n = -30", {}, YES),
    ("people(?n) and 100 - ?n - 30 = 10", {}, YES),
    ("people(?n) and ?n / 4 = 7.5", {}, YES),
    ("people(?n) and (?n + 10) * 2 / 7 = 20", {}, YES),
    ("zero(?z) and 5 / ?z > 1", {}, NO),
    ("zero(?z) and not 5 / ?z > 1", {}, NO),
    ("zero(?z) and 5 / ?z != 1", {}, NO),
    ("zero(?z) and 0 / ?z = 0", {}, NO),
    ("zero(?z) and 5.0 / ?z > 1", {}, NO),
    ("people(?n) and zero(?z) and (?n > 50 or ?n / ?z > 1)", {}, YES),
    ("huge(?h) and ?h * ?h * 0.5 > 1", {}, YES),  # by 2^63; 1e616 is not a number
    ("huge(?h) and ?h > 1e300 and ?h * ?h > 1", {}, NO),
    ("huge(?h) and ?h > 1e300 and not ?h * ?h > 1", {}, NO),
    ("huge(?h) and ?h > 1e300 and ?h * ?h - ?h * ?h != 5", {}, NO),
    ("huge(?h) and ?h = 9223372036854775808", {}, YES),
    ("huge(?h) and ?h - 1 = 9223372036854775807", {}, YES),
    # values of different kinds are neither equal nor different
    ("text(?t) and ?t = 1", {}, NO),
    ("text(?t) and ?t != 1", {}, NO),
    ("text(?t) and not ?t = 1", {}, NO),
    ("text(?t) and ?t < 'a'", {}, YES),
    ("text(?t) and ?t > 'a'", {}, YES),
    ("text(?t) and ?t >= 'c'", {}, NO),
    ("text(?t) and ?t + 1 > 0", {}, NO),
    ("text(?t) and not ?t + 1 > 0", {}, NO),
    ("truth(?t) and ?t = true", {}, YES),
    ("truth(?t) and ?t = 1", {}, NO),
    ("truth(?t) and ?t != false", {}, YES),
    ("truth(?t) and ?t != 1", {}, NO),
    ("truth(?t) and ?t >= true", {}, NO),
    ("truth(?t) and not ?t > true", {}, NO),
    ("truth(?t) and ?t + 1 = 2", {}, NO),
    ("list(?t) and ?t = ?t", {}, NO),
    ("list(?t) and ?t != 5", {}, NO),
    ("mixed(?t) and ?t > 4", {}, YES),
    ("mixed(?t) and ?t > '0'", {}, YES),
    ("mixed(?t) and ?t < 5", {}, NO),
    ("one(?n) and ?n = 1", {}, YES),
    ("people(?n) and ?n < 30.5", {}, YES),
    # not, pushed down
    ("people(?n) and not ?n < 50", {}, YES),
    ("people(?n) and not ?n <= 60", {}, NO),
    ("people(?n) and not ?n >= 30", {}, NO),
    ("people(?n) and not ?n = 30", {}, YES),
    ("one(?n) and not ?n != 1", {}, YES),
]


@pytest.mark.parametrize(("text", "event", "truth"), CASES)
def test_each_sentence(text: str, event: dict[str, Any], truth: bool) -> None:
    assert satisfies(parse(text), event, SCHEMA, TABLE) is truth


def test_an_operator_is_given_values_constants_and_none_for_variables() -> None:
    seen: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []

    def spy(values: tuple[Any, ...], given: tuple[Any, ...]) -> Rows:
        seen.append((values, given))
        return ((1, 2),)

    place = Parameter("place", "text", False)
    operators = {"spy": (Signature("spy", (place, *free("a", "b")), ("tags", "sizes")), spy)}
    event = {"tags": ["x", "y"], "sizes": 7}
    assert satisfies(parse("spy(Bronx, ?a, 2)"), event, SCHEMA, operators)
    assert seen == [(("x", 7), ("Bronx", None, 2)), (("y", 7), ("Bronx", None, 2))]


def test_an_unknown_operator_is_refused() -> None:
    for operators in (None, {}, {"other": TABLE["yes"]}):
        with pytest.raises(ConditionError, match="unknown operator 'yes'"):
            satisfies(parse("yes()"), {}, SCHEMA, operators)


def test_a_variable_that_nothing_binds_has_no_meaning() -> None:
    for text in ("?n > 5", "not people(?n)", "people(?n) and ?m = ?n"):
        with pytest.raises(ConditionError, match="nothing binds"):
            satisfies(parse(text), {}, SCHEMA, TABLE)


# -- the definition, word for word -----------------------------------------------------------------
# A substitution maps the variables of a clause to values, any values. Here there are few enough to
# try them all; whether a call is true under one is a look into its relation.

VALUES: list[Any] = [0, 1, 2.0, True, "a", "b"]
NAMES = ["x", "y", "z"]
RELATIONS = ["p", "q", "r"]
values = st.sampled_from(VALUES)
arguments = st.one_of(values, *[st.just(Variable(name)) for name in NAMES])
rows = st.lists(st.tuples(values, values), max_size=12).map(tuple)
relations = st.fixed_dictionaries(
    {name: st.one_of(rows, rows, rows, st.just(Fault("none"))) for name in RELATIONS}
)
atoms: st.SearchStrategy[Call | ValueConstraint] = st.one_of(
    st.builds(
        lambda name, a, b: Call(name, (a, b)), st.sampled_from(RELATIONS), arguments, arguments
    ),
    st.builds(
        ValueConstraint,
        st.sampled_from([Variable(name) for name in NAMES]),
        st.sampled_from(["=", "!=", "<", ">="]),
        arguments,
    ),
)
literals = st.lists(st.tuples(atoms, st.booleans()), min_size=1, max_size=4)


def same(left: Any, right: Any) -> bool:
    return (type(left) is bool) == (type(right) is bool) and left == right


def kind(value: Any) -> type:
    return {bool: bool, int: float, float: float, str: str}[type(value)]


def holds(
    leaf: Call | ValueConstraint, positive: bool, known: dict[str, Any], given: dict[str, Any]
) -> bool:
    def value(operand: Any) -> Any:
        return known[operand.name] if isinstance(operand, Variable) else operand

    if isinstance(leaf, Call):
        if isinstance(given[leaf.operator], Fault):
            return False
        wanted = tuple(value(argument) for argument in leaf.arguments)
        found = any(all(map(same, wanted, row)) for row in given[leaf.operator])
        return found == positive
    left, right = value(leaf.left), value(leaf.right)
    if kind(left) is not kind(right) or (kind(left) is bool and leaf.comparator in ("<", ">=")):
        return False
    truth = {"=": left == right, "!=": left != right}.get(leaf.comparator)
    if truth is None:
        truth = (left < right) == (leaf.comparator == "<")
    return bool(truth == positive)


@settings(max_examples=600)
@given(clause=literals, given_rows=relations)
@pytest.mark.slow
def test_a_clause_holds_when_one_substitution_of_all_satisfies_it(
    clause: list[tuple[Call | ValueConstraint, bool]], given_rows: dict[str, Any]
) -> None:
    # Something binds what is only asked about, or there would be nothing to compare.
    clause = [(Call("p", (Variable("x"), Variable("y"))), True), *clause]
    if any(Variable("z") in variables(leaf) for leaf, _ in clause):
        clause.append((Call("q", (Variable("z"), Variable("z"))), True))
    condition = And(tuple(leaf if positive else Not(leaf) for leaf, positive in clause))
    operators = {name: giving(name, rows, "a", "b") for name, rows in given_rows.items()}
    assert satisfies(condition, {}, SCHEMA, operators) == any(
        all(
            holds(leaf, positive, dict(zip(NAMES, each, strict=True)), given_rows)
            for leaf, positive in clause
        )
        for each in product(VALUES, repeat=len(NAMES))
    )
