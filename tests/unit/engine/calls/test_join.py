"""Whether a substitution exists, against trying them all."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.engine.calls import join as joining
from tamis.engine.calls.join import (
    BindingTable,
    JoinLimitError,
    ValueTest,
    compile_constraint,
    plain,
    satisfiable,
)
from tamis.model.condition import Arithmetic, Expression, ValueConstraint, Variable

VARIABLES = 4
VALUES: tuple[Any, ...] = (0, 1, 2, 2.5, "x", True, False)
NUMBER = {f"v{number}": number for number in range(VARIABLES)}


@st.composite
def tables(draw: st.DrawFn) -> BindingTable:
    variables = tuple(
        draw(st.lists(st.integers(0, VARIABLES - 1), min_size=1, max_size=3, unique=True))
    )
    row = st.tuples(*[st.sampled_from(VALUES).map(plain) for _ in variables])
    return BindingTable(variables, draw(st.frozensets(row, max_size=5)))


@st.composite
def expressions(draw: st.DrawFn, variables: list[int]) -> Expression:
    def leaf() -> Expression:
        if draw(st.booleans()):
            return Variable(f"v{draw(st.sampled_from(variables))}")
        constant: Expression = draw(st.sampled_from(VALUES))
        return constant

    if draw(st.integers(0, 3)):
        return leaf()
    return Arithmetic(draw(st.sampled_from("+-*/")), leaf(), leaf())


def _value(expression: Expression, bound: dict[str, Any]) -> Any:
    """What an expression is worth; None where it means nothing."""
    if isinstance(expression, Variable):
        return bound[expression.name]
    if not isinstance(expression, Arithmetic):
        return expression
    left, right = _value(expression.left, bound), _value(expression.right, bound)
    if any(isinstance(each, (bool, str)) or each is None for each in (left, right)):
        return None
    if expression.sign == "/":
        return left / right if right != 0 else None
    return {"+": left + right, "-": left - right, "*": left * right}[expression.sign]


def _holds(constraint: ValueConstraint, positive: bool, bound: dict[str, Any]) -> bool:
    left, right = _value(constraint.left, bound), _value(constraint.right, bound)
    numbers = [isinstance(e, (int, float)) and not isinstance(e, bool) for e in (left, right)]
    if not all(numbers):
        same = type(left) is type(right) and left is not None
        if not same or any(numbers):
            return False
        if isinstance(left, bool) and constraint.comparator not in ("=", "!="):
            return False
    truth = {
        "=": lambda: left == right,
        "!=": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }[constraint.comparator]()
    return bool(truth) == positive


@settings(max_examples=300)
@given(data=st.data(), given_=st.lists(tables(), min_size=1, max_size=4))
@pytest.mark.slow
def test_as_if_every_substitution_were_tried(
    data: st.DataObject, given_: list[BindingTable]
) -> None:
    bound = sorted({variable for table in given_ for variable in table.variables})
    absent = [
        each
        for each in data.draw(st.lists(tables(), max_size=2))
        if set(each.variables) <= set(bound)
    ]
    comparator = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
    constraints = [
        (
            ValueConstraint(
                Variable(f"v{data.draw(st.sampled_from(bound))}"),
                data.draw(comparator),
                data.draw(expressions(bound)),
            ),
            data.draw(st.booleans()),
        )
        for _ in range(data.draw(st.integers(0, 2)))
    ]
    expected = False
    for values in product(VALUES, repeat=len(bound)):
        substitution = dict(zip(bound, values, strict=True))
        if (
            all(_row(table, substitution) in table.rows for table in given_)
            and not any(_row(table, substitution) in table.rows for table in absent)
            and all(
                _holds(constraint, positive, {f"v{at}": v for at, v in substitution.items()})
                for constraint, positive in constraints
            )
        ):
            expected = True
    tests = [
        compile_constraint(constraint, positive, NUMBER) for constraint, positive in constraints
    ]
    assert satisfiable(given_, absent, tests, VARIABLES) == expected


def _row(table: BindingTable, substitution: dict[int, Any]) -> tuple[Any, ...]:
    return tuple(plain(substitution[variable]) for variable in table.variables)


def test_a_join_that_explodes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "MOST_STEPS", 1000)
    rows = frozenset((number,) for number in range(100))
    never = ValueTest(frozenset((0, 1)), lambda bound: False)
    with pytest.raises(JoinLimitError):
        satisfiable([BindingTable((0,), rows), BindingTable((1,), rows)], [], [never], 2)


def test_a_constraint_is_tried_as_soon_as_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million combinations, of which the first variable rules out all but one in a hundred."""
    monkeypatch.setattr(joining, "MOST_STEPS", 1000)
    rows = frozenset((number,) for number in range(100))
    first = compile_constraint(ValueConstraint(Variable("v0"), "=", 7), True, NUMBER)
    both = compile_constraint(ValueConstraint(Variable("v1"), ">", Variable("v0")), True, NUMBER)
    assert satisfiable([BindingTable((0,), rows), BindingTable((1,), rows)], [], [first, both], 2)
