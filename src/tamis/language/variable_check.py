"""The check of variables: each must be bound, by values of one kind.

A variable belongs to one clause. Positive calls of the clause bind it. Negated calls and value
constraints only test it, so they need a positive call that binds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tamis.errors import ConditionError
from tamis.language import spans
from tamis.language.call_check import kind_of_constant, kind_text
from tamis.language.normal_form import expand
from tamis.model.condition import (
    Arithmetic,
    Call,
    Clause,
    Condition,
    Expression,
    Leaf,
    ValueConstraint,
    Variable,
    leaves,
    parts_of,
    variables,
)
from tamis.model.operator import Signature
from tamis.model.printer import expression_text


class BoundVariable(NamedTuple):
    """The kind of a variable's values, perhaps `any`, and the operator that binds it."""

    kind: str
    by: Signature


def check_clauses(
    condition: Condition, operators: Mapping[str, Signature], text: str | None
) -> None:
    """Check each clause of a condition whose size and leaves have been checked."""
    clauses = expand(condition)
    given = [_given(clause, operators, text) for clause in clauses]
    for clause, kinds in zip(clauses, given, strict=True):
        for leaf, positive in clause:
            for variable in variables(leaf):
                if variable.name not in kinds:
                    elsewhere = any(variable.name in other for other in given)
                    _refuse_unbound(variable, leaf, condition, elsewhere, text)
            if isinstance(leaf, Call) and not positive:
                _check_negated(leaf, kinds, operators, text)
            elif isinstance(leaf, ValueConstraint):
                _check_kinds(leaf, kinds, text)


def _given(
    clause: Clause, operators: Mapping[str, Signature], text: str | None
) -> dict[str, BoundVariable]:
    """The variables that the positive calls of a clause bind."""
    found: dict[str, BoundVariable] = {}
    for call, positive in parts_of(clause).calls:
        if not positive:
            continue
        signature = operators[call.operator]
        for argument, parameter in zip(call.arguments, signature.parameters, strict=True):
            if not isinstance(argument, Variable):
                continue
            before = found.get(argument.name)
            if before is None or before.kind == "any":
                found[argument.name] = BoundVariable(parameter.kind, signature)
            elif parameter.kind not in (before.kind, "any"):
                _refuse_two_kinds(argument, call, before, parameter.kind, text)
    return found


def _check_negated(
    call: Call,
    kinds: Mapping[str, BoundVariable],
    operators: Mapping[str, Signature],
    text: str | None,
) -> None:
    parameters = operators[call.operator].parameters
    for argument, parameter in zip(call.arguments, parameters, strict=True):
        if isinstance(argument, Variable):
            before = kinds[argument.name]
            if "any" not in (before.kind, parameter.kind) and before.kind != parameter.kind:
                _refuse_two_kinds(argument, call, before, parameter.kind, text)


def _refuse_two_kinds(
    variable: Variable, call: Call, before: BoundVariable, kind: str, text: str | None
) -> None:
    raise ConditionError(
        f"?{variable.name} is {kind_text(before.kind)} in {before.by}, but {kind_text(kind)} here",
        span=spans.operand(text, call, variable),
    )


def _refuse_unbound(
    variable: Variable, leaf: Leaf, condition: Condition, elsewhere: bool, text: str | None
) -> None:
    called = any(
        variable == other
        for each in leaves(condition)
        if isinstance(each, Call)
        for other in variables(each)
    )
    if elsewhere:
        hint = "each branch of an 'or' has its own variables"
    elif called:
        hint = "an operator under 'not' binds no variable; a positive call must bind it"
    else:
        hint = f"a call in the same conjunction must bind it, as in: operator(?{variable.name})"
    raise ConditionError(
        f"nothing binds ?{variable.name}", span=spans.operand(text, leaf, variable), hint=hint
    )


def _check_kinds(
    constraint: ValueConstraint, kinds: Mapping[str, BoundVariable], text: str | None
) -> None:
    """Refuse comparisons between values of different kinds, if the kinds are known."""
    left = _kind(constraint.left, constraint, kinds, text)
    right = _kind(constraint.right, constraint, kinds, text)
    if "any" not in (left, right) and left != right:
        sides = constraint.left, constraint.right
        raise ConditionError(
            f"{expression_text(sides[0])} is {kind_text(left)}, "
            f"but {expression_text(sides[1])} is {kind_text(right)}",
            span=constraint.span,
            hint=_bound_by(sides, kinds),
        )
    if "boolean" in (left, right) and constraint.comparator not in ("=", "!="):
        raise ConditionError(
            f"true and false have no comparator {constraint.comparator!r}",
            span=spans.comparator(text, constraint),
            hint="they have: = !=",
        )


def _kind(
    expression: Expression,
    constraint: ValueConstraint,
    kinds: Mapping[str, BoundVariable],
    text: str | None,
) -> str:
    if isinstance(expression, Variable):
        return kinds[expression.name].kind
    if not isinstance(expression, Arithmetic):
        return kind_of_constant(expression)
    for side in (expression.left, expression.right):
        kind = _kind(side, constraint, kinds, text)
        if kind not in ("number", "any"):
            assert not isinstance(side, Arithmetic)
            raise ConditionError(
                f"{expression_text(side)} is {kind_text(kind)}; arithmetic takes numbers",
                span=spans.operand(text, constraint, side),
                hint=_bound_by((side,), kinds),
            )
    return "number"


def _bound_by(sides: tuple[Expression, ...], kinds: Mapping[str, BoundVariable]) -> str | None:
    """A hint that names the operators which bind the variables."""
    names = [side.name for side in sides if isinstance(side, Variable)]
    return "; ".join(f"{kinds[name].by} binds ?{name}" for name in names) or None
