"""The join of the bindings of several calls: whether one substitution satisfies them all.

Each call of a clause yields a table whose columns are variables. The search takes the tables one by
one, smallest first, and follows only rows that agree with the values bound so far. A value
constraint is tested as soon as its variables are bound. The search stops at the first substitution:
a subscription matches once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any, NamedTuple

from tamis.model.condition import (
    COMPLEMENTS,
    COMPUTE,
    Arithmetic,
    AttributeValue,
    Constant,
    Duration,
    Expression,
    Now,
    ValueConstraint,
    Variable,
)

Row = tuple[Any, ...]
MOST_STEPS = 200_000  # rows that one search visits before it gives up
_WRONG = object()  # the result of undefined arithmetic

_KINDS: dict[type, type] = {bool: bool, int: float, float: float, str: str}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class JoinLimitError(Exception):
    """The search visited more than `MOST_STEPS` rows."""


class BindingTable(NamedTuple):
    """The bindings of a call: a column for each of its variables, numbered within the clause.

    Values are normalised by `plain`.
    """

    variables: tuple[int, ...]
    rows: frozenset[Row]


class Bound(NamedTuple):
    """A value constraint that compares one variable with a constant: `?0 > 5`."""

    variable: int
    comparator: str
    constant: Constant


class ValueTest(NamedTuple):
    """A value constraint over numbered variables."""

    variables: frozenset[int]
    holds: Callable[[Sequence[Any]], bool]
    bound: Bound | None = None  # the same, if it compares one variable with a constant


def compile_constraint(
    constraint: ValueConstraint, positive: bool, number: dict[str, int]
) -> ValueTest:
    """A constraint as a function of the bound values; its complement if not `positive`."""
    on_left: set[int] = set()
    on_right: set[int] = set()
    left = _value(constraint.left, number, on_left)
    right = _value(constraint.right, number, on_right)
    name = constraint.comparator if positive else COMPLEMENTS[constraint.comparator]
    compare, order = _COMPARE[name], name not in ("=", "!=")

    def both(bound: Sequence[Any]) -> bool:
        one, other = left(bound), right(bound)
        kind = kind_of(one)
        if kind is None or kind != kind_of(other) or (order and kind is bool):
            return False
        return compare(one, other)

    # Most constraints have a constant on one side, which makes each row cheaper.
    if not on_right:
        side, value, constant = constraint.left, left, right(())
    elif not on_left:
        side, value, constant, name = constraint.right, right, left(()), _FLIPPED[name]
    else:
        return ValueTest(frozenset(on_left | on_right), both)
    bound: Bound | None = None
    if isinstance(side, Variable) and constant is not _WRONG:
        bound = Bound(number[side.name], name, constant)
    return ValueTest(frozenset(on_left | on_right), _against(value, name, constant), bound)


def _against(
    value: Callable[[Sequence[Any]], Any], comparator: str, constant: Any
) -> Callable[[Sequence[Any]], bool]:
    """A test that compares a value with a constant."""
    kind, compare = kind_of(constant), _COMPARE[comparator]
    if kind is None or (kind is bool and comparator not in ("=", "!=")):
        return lambda bound: False

    def holds(bound: Sequence[Any]) -> bool:
        found = value(bound)
        return kind_of(found) is kind and compare(found, constant)

    return holds


def satisfiable(
    tables: Iterable[BindingTable],
    absent: Sequence[BindingTable],
    tests: Sequence[ValueTest],
    variables: int,
) -> bool:
    """Whether a substitution matches a row of each table, no row of `absent`, and all tests."""
    steps = _steps(sorted(tables, key=lambda table: len(table.rows)), tests)
    bound: list[Any] = [None] * variables
    looked = [0]

    def search(depth: int) -> bool:
        if depth == len(steps):
            return not any(_row(bound, table.variables) in table.rows for table in absent)
        step = steps[depth]
        for row in step.fitting(bound):
            looked[0] += 1
            if looked[0] > MOST_STEPS:
                raise JoinLimitError
            for variable, value in zip(step.fresh, row, strict=True):
                bound[variable] = value
            if all(test.holds(bound) for test in step.tests) and search(depth + 1):
                return True
        return False

    return search(0)


class _JoinStep(NamedTuple):
    """One table of the search: its rows by the values of the variables bound before it."""

    known: tuple[int, ...]
    fresh: tuple[int, ...]
    rows: dict[Row, list[Row]]
    tests: tuple[ValueTest, ...]

    def fitting(self, bound: Sequence[Any]) -> list[Row]:
        return self.rows.get(_row(bound, self.known), [])


def _steps(tables: list[BindingTable], tests: Sequence[ValueTest]) -> list[_JoinStep]:
    """The order of the search: a table that shares a bound variable comes next."""
    steps: list[_JoinStep] = []
    bound: set[int] = set()
    waiting = list(tests)
    while tables:
        table = next((each for each in tables if bound & set(each.variables)), tables[0])
        tables.remove(table)
        places = range(len(table.variables))
        old = [at for at in places if table.variables[at] in bound]
        new = [at for at in places if table.variables[at] not in bound]
        rows: dict[Row, list[Row]] = {}
        for row in table.rows:
            key = tuple(row[at] for at in old)
            rows.setdefault(key, []).append(tuple(row[at] for at in new))
        bound.update(table.variables)
        ready = tuple(test for test in waiting if test.variables <= bound)
        waiting = [test for test in waiting if not test.variables <= bound]
        steps.append(
            _JoinStep(
                tuple(table.variables[at] for at in old),
                tuple(table.variables[at] for at in new),
                rows,
                ready,
            )
        )
    return steps


def _row(bound: Sequence[Any], variables: Iterable[int]) -> Row:
    return tuple(bound[variable] for variable in variables)


def plain(value: Any) -> Any:
    """A value as a hash key that compares as the language does: true is not 1."""
    return (bool, value) if isinstance(value, bool) else value


def kind_of(value: Any) -> type | None:
    """The kind of a value: bool, float for numbers, str. Only values of one kind compare."""
    kind = _KINDS.get(type(value))
    if kind is not None:
        return kind
    if isinstance(value, (int, float)):
        return float
    return str if isinstance(value, str) else None


def _value(
    expression: Expression, number: dict[str, int], used: set[int]
) -> Callable[[Sequence[Any]], Any]:
    if isinstance(expression, Variable | AttributeValue):
        at = number[expression.name]
        used.add(at)
        return lambda bound: value[1] if isinstance(value := bound[at], tuple) else value
    if isinstance(expression, Arithmetic):
        sign, mine = expression.sign, set[int]()
        left, right = (_value(side, number, mine) for side in (expression.left, expression.right))
        used |= mine
        if not mine:
            computed = _computed(sign, left(()), right(()))
            return lambda bound: computed
        return lambda bound: _computed(sign, left(bound), right(bound))
    assert not isinstance(expression, Duration | Now)  # the type check refuses it
    constant: Constant = expression
    return lambda bound: constant


def _computed(sign: str, left: Any, right: Any) -> Any:
    """The result of arithmetic; undefined for non-numbers, division by zero and overflow."""
    if kind_of(left) is not float or kind_of(right) is not float:
        return _WRONG
    try:
        found = COMPUTE[sign](left, right)
    except (ZeroDivisionError, OverflowError):
        return _WRONG
    return found if isinstance(found, int) or isfinite(found) else _WRONG
