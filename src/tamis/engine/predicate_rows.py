"""A list of predicates, as a table of subscriptions has it, as a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tamis.errors import ConditionError
from tamis.model.condition import COMPARATORS, SYNONYMS, And, Condition, Constant, Predicate
from tamis.model.schema import Schema

_LISTS = ("in", "between")


def condition_of(
    predicates: Sequence[Mapping[str, Any] | None], schema: Schema
) -> Condition | None:
    """The conjunction of the predicates; None for an empty list, which matches every event."""
    parts = tuple(_predicate(given, schema) for given in predicates)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(parts)


def _predicate(given: Mapping[str, Any] | None, schema: Schema) -> Predicate:
    if given is None:
        raise ConditionError("a predicate is null")
    attribute, comparator = given["attribute"], given["comparator"]
    if attribute is None or comparator is None:
        raise ConditionError("a predicate needs an attribute and a comparator")
    comparator = SYNONYMS.get(comparator, comparator)
    value, text = given.get("value"), given.get("text")
    if comparator in _LISTS:
        raise ConditionError(
            f"{comparator!r} takes several values; a predicate of a table has one",
            hint="write a condition in text, or a range as two predicates",
        )
    if comparator not in COMPARATORS:
        raise ConditionError(
            f"unknown comparator {comparator!r}", hint="known: " + ", ".join(COMPARATORS)
        )
    if value is not None and text is not None:
        raise ConditionError(
            f"the predicate on {attribute!r} has a value and a text; one of them must be null"
        )
    constant = value if text is None else text
    if comparator in ("exists", "missing"):
        return Predicate(attribute, comparator, constant)
    if constant is None:
        raise ConditionError(f"the predicate on {attribute!r} has neither a value nor a text")
    return Predicate(attribute, comparator, _constant(constant, attribute, schema))


def _constant(given: float | str, attribute: str, schema: Schema) -> Constant:
    domain = schema.attributes.get(attribute)
    if domain is not None and domain.kind == "boolean" and given in ("true", "false"):
        return given == "true"
    if isinstance(given, float) and given.is_integer() and abs(given) < 2**63:
        return int(given)
    return given
