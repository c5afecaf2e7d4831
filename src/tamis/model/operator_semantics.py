"""The semantics of operators: calls, the variables that they bind, and value constraints.

The second half of `semantics`: as plain and as slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import isfinite
from typing import Any, NamedTuple

from tamis.errors import ConditionError
from tamis.model.condition import (
    COMPLEMENTS,
    Arithmetic,
    AttributeValue,
    Call,
    Constant,
    Expression,
    Literal,
    ValueConstraint,
    Variable,
    variables,
)
from tamis.model.event import Event
from tamis.model.operator import Fault, Rows, Signature

Function = Callable[[tuple[Any, ...], tuple[Constant | None, ...]], Rows | Fault]
"""An operator: takes one value for each attribute it reads, and one entry for each parameter, None
for a variable; returns rows or a fault."""
OperatorTable = Mapping[str, tuple[Signature, Function]]
Substitution = Mapping[str, Any]
"""Values of variables, by name."""


class CallAnswer(NamedTuple):
    """The answer of an operator to a call."""

    call: Call
    signature: Signature
    rows: Rows | Fault | None  # None if the event lacks an attribute that the operator reads


Fitting = Callable[[CallAnswer, Substitution], Iterator[Substitution]]


def ask(call: Call, event: Event, operators: OperatorTable | None) -> CallAnswer:
    """The rows of the operator for the event, for each value of its attributes."""
    if operators is None or call.operator not in operators:
        raise ConditionError(f"unknown operator {call.operator!r}", span=call.span)
    signature, function = operators[call.operator]
    constants = tuple(None if isinstance(each, Variable) else each for each in call.arguments)
    if not all(attribute in event.values for attribute in signature.reads):
        return CallAnswer(call, signature, None)
    rows: list[tuple[Any, ...]] = []
    for values in product(*(event.values[attribute] for attribute in signature.reads)):
        given = function(values, constants)
        if isinstance(given, Fault):
            return CallAnswer(call, signature, given)
        rows.extend(given)
    return CallAnswer(call, signature, tuple(rows))


def fitting(answer: CallAnswer, known: Substitution) -> Iterator[Substitution]:
    """For each row that agrees with the call and the substitution: the wider substitution."""
    for row in answer.rows if isinstance(answer.rows, tuple) else ():
        wider = dict(known)
        for position, value in zip(answer.signature.free, row, strict=True):
            given = answer.call.arguments[position]
            if isinstance(given, Variable):
                given = wider.setdefault(given.name, value)
            if not _same(given, value):
                break
        else:
            yield wider


def one_substitution_fits(
    calls: Sequence[Literal[Call]],
    answers: Sequence[CallAnswer],
    constraints: Sequence[Literal[ValueConstraint]],
    fitting: Fitting = fitting,
) -> bool:
    """Some substitution makes positive calls true, negated calls false, and constraints true.

    A call without an answer, by a fault or a missing attribute, is neither true nor false.
    `fitting` may raise, to bound the search.
    """
    if any(not isinstance(answer.rows, tuple) for answer in answers):
        return False
    both = list(zip(calls, answers, strict=True))
    wanted = [answer for literal, answer in both if literal.positive]
    unwanted = [answer for literal, answer in both if not literal.positive]
    return any(
        not any(is_true(answer, known, fitting) for answer in unwanted)
        and all(constraint_holds(literal, known) for literal in constraints)
        for known in substitutions(wanted, fitting=fitting)
    )


def substitutions(
    answers: Sequence[CallAnswer], known: Substitution | None = None, fitting: Fitting = fitting
) -> Iterator[Substitution]:
    """Every substitution that matches a row of each answer: nested loops, one for each call."""
    known = known or {}
    if not answers:
        yield known
        return
    for wider in fitting(answers[0], known):
        yield from substitutions(answers[1:], wider, fitting)


def is_true(answer: CallAnswer, known: Substitution, fitting: Fitting = fitting) -> bool:
    """Whether the call is true under a substitution: some row matches it."""
    return any(True for _ in fitting(answer, known))


def constraint_holds(literal: Literal[ValueConstraint], known: Substitution) -> bool:
    """Whether a value constraint or its complement holds; never between different kinds."""
    constraint, positive = literal
    comparator = constraint.comparator if positive else COMPLEMENTS[constraint.comparator]
    left, right = _result(constraint.left, known), _result(constraint.right, known)
    kind = _kind(left)
    if kind is None or kind != _kind(right):
        return False
    if comparator in ("=", "!="):
        return bool(left == right) == (comparator == "=")
    if kind == "boolean":
        return False  # booleans have no order
    if comparator in ("<", ">="):
        return bool(left < right) == (comparator == "<")
    return bool(left > right) == (comparator == ">")


def _result(expression: Expression, known: Substitution) -> Any:
    """The value of an expression; None if it has none, as for a division by zero."""
    if isinstance(expression, Variable | AttributeValue):
        return known[expression.name]
    if not isinstance(expression, Arithmetic):
        return expression
    left, right = _result(expression.left, known), _result(expression.right, known)
    if _kind(left) != "number" or _kind(right) != "number":
        return None
    try:
        if expression.sign == "+":
            return left + right
        if expression.sign == "-":
            return left - right
        if expression.sign == "*":
            return left * right
        return left / right
    except (ZeroDivisionError, OverflowError):
        return None


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return "number"
    return "text" if isinstance(value, str) else None


def _same(left: Any, right: Any) -> bool:
    """1 equals 1.0, but true is not a number."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def refuse_unbound(literals: Sequence[Literal[Call | ValueConstraint]]) -> None:
    """Refuse a variable that no positive call binds; the type check does so earlier."""
    bound = {
        variable.name
        for leaf, positive in literals
        if positive and isinstance(leaf, Call)
        for variable in variables(leaf)
    }
    for leaf, _ in literals:
        for variable in variables(leaf):
            if variable.name not in bound:
                raise ConditionError(f"nothing binds ?{variable.name}", span=leaf.span)
