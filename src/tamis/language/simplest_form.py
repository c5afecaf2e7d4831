"""Comparisons in their simplest form, and hints for those that are the wrong way round."""

from __future__ import annotations

from math import isfinite

from tamis.model.condition import (
    COMPUTE,
    Arithmetic,
    AttributeValue,
    Comparison,
    Constant,
    Expression,
    Predicate,
    ValueConstraint,
    Word,
)
from tamis.model.printer import constant_text, name_text

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def simplest(given: Comparison) -> Comparison | Predicate:
    """A predicate if the comparison is of one attribute with a constant: those are indexed."""
    left, right = _folded(given.left), _folded(given.right)
    if isinstance(left, AttributeValue) and isinstance(right, Constant):
        return Predicate(left.name, given.comparator, right, given.span)
    if isinstance(right, AttributeValue) and isinstance(left, Constant):
        comparator = _MIRRORED.get(given.comparator, given.comparator)
        return Predicate(right.name, comparator, left, given.span)
    return given


def _folded(expression: Expression) -> Expression:
    """A number in place of arithmetic on numbers."""
    if not isinstance(expression, Arithmetic):
        return expression
    left, right = _folded(expression.left), _folded(expression.right)
    if type(left) not in (int, float) or type(right) not in (int, float):
        return expression
    try:
        found = COMPUTE[expression.sign](left, right)
    except (ZeroDivisionError, OverflowError):
        return expression  # such a comparison is false
    return found if isinstance(found, int) or isfinite(found) else expression


def mirrored(constraint: ValueConstraint) -> str | None:
    """A hint for `5 < price`."""
    left, name = constraint.left, constraint.right
    if not isinstance(name, Word) or name[0].isdigit() or not isinstance(left, Constant):
        return None
    comparator = _MIRRORED.get(constraint.comparator, constraint.comparator)
    return f"an attribute comes first: {name_text(name)} {comparator} {constant_text(left)}"
