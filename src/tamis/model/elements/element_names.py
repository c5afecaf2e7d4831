"""The names in conditions on elements: with the variable in texts, without it in conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tamis.errors import ConditionError
from tamis.model.condition import (
    And,
    Arithmetic,
    AttributeValue,
    Call,
    Comparison,
    Condition,
    Expression,
    Leaf,
    Not,
    Or,
    Predicate,
    Some,
    ValueConstraint,
)

Rename = Callable[[str, Leaf], str]


def with_variable(condition: Condition, variable: str) -> Condition:
    """A condition on elements as it is written: `qty > 2` becomes `item.qty > 2`."""
    return _renamed(condition, lambda name, _: f"{variable}.{name}")


def without_variable(condition: Condition, variable: str) -> Condition:
    """The converse; refuses what is not about the element."""
    stem = f"{variable}."

    def rename(name: str, leaf: Leaf) -> str:
        if name.startswith(stem) and name != stem:
            return name.removeprefix(stem)
        mark = "@" if isinstance(leaf, Comparison) else ""
        hint = (
            "a condition on elements looks at one element only, as in: "
            f"{mark}{variable}.{name}{'' if mark else ' …'}"
        )
        if name == variable:
            hint = f"write an attribute of the element, as in: {variable}.name …"
        raise ConditionError(
            f"{name!r} is not an attribute of {variable!r}", span=leaf.span, hint=hint
        )

    return _renamed(condition, rename)


def refuse_call(leaf: Call | ValueConstraint) -> ConditionError:
    """The error for a call in a condition on elements."""
    return ConditionError(
        "a condition on elements cannot call operators",
        span=leaf.span,
        hint="an operator reads whole events; call it beside the condition on elements, with 'and'",
    )


def _renamed(condition: Condition, rename: Rename) -> Condition:
    if isinstance(condition, Not):
        return Not(_renamed(condition.part, rename))
    if isinstance(condition, And | Or):
        return type(condition)(tuple(_renamed(part, rename) for part in condition.parts))
    if isinstance(condition, Predicate | Some):
        return replace(condition, attribute=rename(condition.attribute, condition))
    if isinstance(condition, Comparison):
        left, right = (
            _expression(side, condition, rename) for side in (condition.left, condition.right)
        )
        return replace(condition, left=left, right=right)
    raise refuse_call(condition)


def _expression(given: Expression, leaf: Comparison, rename: Rename) -> Expression:
    if isinstance(given, AttributeValue):
        return AttributeValue(rename(given.name, leaf))
    if isinstance(given, Arithmetic):
        left, right = (_expression(side, leaf, rename) for side in (given.left, given.right))
        return Arithmetic(given.sign, left, right)
    return given
