"""Conditions as text in the native language. Parsing the text returns an equal condition.

The printer is in `model`, not in `language`, since explanations and errors of lower layers show
predicates too.
"""

from __future__ import annotations

import re
from datetime import datetime

from tamis.model.condition import (
    IGNORING_CASE,
    NAME,
    And,
    Arithmetic,
    AttributeValue,
    Call,
    Comparison,
    Condition,
    Constant,
    Duration,
    Expression,
    Not,
    Now,
    NumberedSome,
    Or,
    Predicate,
    Some,
    ValueConstraint,
    Variable,
    Word,
)
from tamis.model.elements.element_names import with_variable
from tamis.model.times.durations import duration_text

KEYWORDS = frozenset(
    {"and", "or", "not", "in", "between", "exists", "missing", "contains", "excludes"}
    | {"starts", "ends", "with", "like", "true", "false"}
)
DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def to_text(condition: Condition) -> str:
    """The condition in the subscription language."""
    if isinstance(condition, Predicate):
        return _predicate(condition)
    if isinstance(condition, Call):
        return f"{name_text(condition.operator)}({', '.join(map(_argument, condition.arguments))})"
    if isinstance(condition, Some):
        inner = to_text(with_variable(condition.condition, condition.variable))
        return f"some {condition.variable} in {name_text(condition.attribute)} ({inner})"
    if isinstance(condition, ValueConstraint | Comparison):
        left, right = expression_text(condition.left), expression_text(condition.right)
        if isinstance(condition.left, AttributeValue):
            left = name_text(condition.left.name)  # without the mark, as in a predicate
        return f"{left} {condition.comparator} {right}"
    if isinstance(condition, Not):
        inner = to_text(condition.part)
        return f"not {inner}" if not isinstance(condition.part, And | Or) else f"not ({inner})"
    if isinstance(condition, And):
        return " and ".join(
            f"({to_text(part)})" if isinstance(part, And | Or) else to_text(part)
            for part in condition.parts
        )
    return " or ".join(
        f"({to_text(part)})" if isinstance(part, Or) else to_text(part) for part in condition.parts
    )


def _predicate(predicate: Predicate) -> str:
    name, comparator, value = name_text(predicate.attribute), predicate.comparator, predicate.value
    if isinstance(predicate, NumberedSome) and predicate.source is not None:
        return to_text(predicate.source)
    if value is None:
        return f"{name} {comparator}"
    ignoring = IGNORING_CASE if comparator.endswith(IGNORING_CASE) else ""
    comparator = comparator.removesuffix(IGNORING_CASE)
    if not isinstance(value, tuple):
        return f"{name} {comparator} {constant_text(value)}{ignoring}"
    shown = [constant_text(item) for item in value]
    if comparator == "between":
        return f"{name} between {shown[0]} and {shown[1]}"
    return f"{name} {comparator} ({', '.join(shown)}){ignoring}"


def _argument(given: Constant | Variable) -> str:
    return f"?{given.name}" if isinstance(given, Variable) else constant_text(given)


def expression_text(expression: Expression) -> str:
    """One side of a value constraint, with no more parentheses than it needs."""
    if isinstance(expression, Variable):
        return f"?{expression.name}"
    if isinstance(expression, AttributeValue):
        return f"@{name_text(expression.name)}"
    if isinstance(expression, Now):
        return "now"
    if isinstance(expression, Duration):
        return duration_text(expression.microseconds)
    if not isinstance(expression, Arithmetic):
        # Always quoted: a bare word at the start would be parsed as an attribute.
        return constant_text(str(expression) if isinstance(expression, Word) else expression)
    binds = _strength(expression)
    right = expression_text(expression.right)
    if binds == _UNARY:
        return f"-({right})" if _strength(expression.right) < _UNARY else f"-{right}"
    left = expression_text(expression.left)
    if _strength(expression.left) < binds:
        left = f"({left})"
    if _strength(expression.right) <= binds:  # operators are left-associative
        right = f"({right})"
    return f"{left} {expression.sign} {right}"


_SUM, _PRODUCT, _UNARY, _OPERAND = range(4)


def _strength(expression: Expression) -> int:
    """Precedence."""
    if not isinstance(expression, Arithmetic):
        return _OPERAND
    if expression.sign in ("*", "/"):
        return _PRODUCT
    negated = expression.sign == "-" and type(expression.left) is int and not expression.left
    # `-5` is a number; the difference of 0 and 5 is printed as such.
    return _UNARY if negated and not isinstance(expression.right, int | float | Duration) else _SUM


def name_text(name: str) -> str:
    """A name, in backquotes if it would not be parsed as one."""
    plain = NAME.fullmatch(name) is not None and name.lower() not in KEYWORDS
    return name if plain else f"`{name}`"


def constant_text(value: Constant) -> str:
    """A constant in the native language."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(float(value))  # the repr of a NumPy double differs
    if isinstance(value, datetime):  # possible in a condition built by a program
        return f'"{value.isoformat()}"'
    if not isinstance(value, str):
        return str(value)
    if isinstance(value, Word):
        bare = NAME.fullmatch(value) is not None and value.lower() not in KEYWORDS
        if bare or DATE.fullmatch(value):
            return str(value)
    shown = "".join(
        _ESCAPES.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in value
    )
    return f'"{shown}"'
