"""The type check of single calls and value constraints."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

from tamis.errors import ConditionError, Span, nearest
from tamis.language import spans
from tamis.model.condition import (
    COMPLEMENTS,
    SIGNS,
    Arithmetic,
    Call,
    Constant,
    Expression,
    ValueConstraint,
    Variable,
    Word,
)
from tamis.model.domain import Boolean, Domain, Integer, RefusalError, Text, show
from tamis.model.operator import Parameter, Signature

_DOMAINS: Mapping[str, Domain] = {"number": Integer(), "text": Text(), "boolean": Boolean()}


def check_call(
    call: Call, attributes: Collection[str], operators: Mapping[str, Signature], text: str | None
) -> None:
    """Refuse an unknown operator, wrong arguments, and an operator whose attributes are missing."""
    if not isinstance(call.operator, str) or not isinstance(call.arguments, tuple):
        raise ConditionError(f"{show(call)} is not a condition")
    signature = operators.get(call.operator)
    if signature is None:
        _refuse_unknown(call, operators, text)
    wanted, given = len(signature.parameters), len(call.arguments)
    if given != wanted:
        takes = f"{wanted or 'no'} argument{'' if wanted == 1 else 's'}"
        raise ConditionError(
            f"{call.operator!r} takes {takes}, got {given}: {signature}",
            span=call.span,
            hint=_free_names(signature),
        )
    for position, parameter in enumerate(signature.parameters):
        span = spans.argument(text, call, position)
        _check_argument(call.arguments[position], parameter, signature, attributes, span, text)
    for attribute in signature.reads:
        if attribute not in attributes:
            raise ConditionError(
                f"{call.operator!r} reads the attribute {attribute!r}, which is not in the schema",
                span=spans.operator_name(text, call),
            )


def _refuse_unknown(call: Call, operators: Mapping[str, Signature], text: str | None) -> NoReturn:
    none = "" if len(operators) else ": no operator is registered"
    raise ConditionError(
        f"unknown operator {call.operator!r}{none}",
        span=spans.operator_name(text, call),
        hint=nearest(call.operator, operators),
    )


def _free_names(signature: Signature) -> str | None:
    free = [parameter.name for parameter in signature.parameters if parameter.free]
    return f"a variable may be at: {', '.join(free)}" if free else None


def _check_argument(
    given: Constant | Variable,
    parameter: Parameter,
    signature: Signature,
    attributes: Collection[str],
    span: Span | None,
    text: str | None,
) -> None:
    where = f"{parameter.name!r} of {signature}"
    if isinstance(given, Variable):
        if not parameter.free:
            raise ConditionError(
                f"{where} must be a constant, not a variable",
                span=span,
                hint=_free_names(signature) or f"{signature.name!r} binds no variables",
            )
        return
    hint = None
    if isinstance(given, Word) and given in attributes:
        hint = "operators read attributes themselves; their arguments are constants"
    elif parameter.kind == "boolean" and isinstance(given, str):
        hint = "write true or false, without quotes"
    elif parameter.kind == "text":
        hint = "put text in quotes"
    try:
        _constant(given, parameter.kind)
    except RefusalError as why:
        raise ConditionError(
            f"{where} is {kind_text(parameter.kind)}: {why}", span=span, hint=hint
        ) from None


def check_constraint(
    constraint: ValueConstraint, attributes: Collection[str], text: str | None
) -> None:
    """Refuse a constraint that has no variable, or more than variables, constants, arithmetic."""
    if constraint.comparator not in COMPLEMENTS:
        raise ConditionError(
            f"variables have no comparator {show(constraint.comparator)}",
            span=constraint.span,
            hint="they have: " + " ".join(COMPLEMENTS),
        )
    found = False
    stack: list[Expression] = [constraint.right, constraint.left]
    seen: set[int] = set()  # a program may share parts
    while stack:
        node = stack.pop()
        if isinstance(node, Arithmetic):
            if node.sign not in SIGNS:
                raise ConditionError(f"{show(node.sign)} is not one of + - * /")
            if id(node) not in seen:
                seen.add(id(node))
                stack += (node.right, node.left)
        elif isinstance(node, Variable):
            found = True
        else:
            _check_operand(node, constraint, attributes, text)
    if not found:
        raise ConditionError("the constraint compares constants only", span=constraint.span)


def _check_operand(
    given: Constant, constraint: ValueConstraint, attributes: Collection[str], text: str | None
) -> None:
    if isinstance(given, Word) and given in attributes:
        raise ConditionError(
            f"{str(given)!r} is an attribute and cannot be compared with variables",
            span=spans.operand(text, constraint, given),
            hint="an operator that reads it can bind its value to a variable; if you mean the "
            "text, put it in quotes",
        )
    try:
        _constant(given, "any")
    except RefusalError as why:
        raise ConditionError(
            f"in a value constraint: {why}", span=spans.operand(text, constraint, given)
        ) from None


def kind_of_constant(given: Constant) -> str:
    """number, text or boolean."""
    if isinstance(given, bool):
        return "boolean"
    return "text" if isinstance(given, str) else "number"


def kind_text(kind: str) -> str:
    """A kind, with an article."""
    return {"number": "a number", "boolean": "true or false"}.get(kind, kind)


def _constant(given: Constant, kind: str) -> None:
    """Refuse what is not a constant of a kind."""
    wanted = _DOMAINS.get(kind) or _DOMAINS[kind_of_constant(given)]
    wanted.constant(given)
