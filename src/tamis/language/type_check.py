"""The type check of a condition against a schema.

Contradictions between predicates are found later, when they are folded (`encode.clause`).
`call_check` checks single calls and constraints, `variable_check` checks them within their clause.
"""

from __future__ import annotations

from collections.abc import Mapping

from tamis.errors import ConditionError, LimitError, nearest
from tamis.language.call_check import check_call, check_constraint
from tamis.language.limits import LIST_LIMIT
from tamis.language.normal_form import check_size
from tamis.language.spans import part_of_predicate
from tamis.language.variable_check import check_clauses
from tamis.model.condition import Call, Condition, Predicate, Word, leaves, variables
from tamis.model.domain import Domain, RefusalError, show
from tamis.model.operator import Signature
from tamis.model.schema import Schema


def check(
    condition: Condition,
    schema: Schema,
    text: str | None = None,
    operators: Mapping[str, Signature] | None = None,
) -> None:
    """Raise a `ConditionError` for an unknown name, a wrong comparator or a wrong type.

    `operators` are the operators that the condition may call, by name.
    """
    try:
        _check(condition, schema.attributes, text, {} if operators is None else operators)
    except ConditionError as error:
        raise error.with_text(text) from None


def _check(
    condition: Condition,
    attributes: Mapping[str, Domain],
    text: str | None,
    operators: Mapping[str, Signature],
) -> None:
    has_variables = False
    for leaf in leaves(condition):
        if isinstance(leaf, Predicate):
            _check_predicate(leaf, attributes, text)
        elif isinstance(leaf, Call):
            check_call(leaf, attributes, operators, text)
            has_variables = has_variables or any(True for _ in variables(leaf))
        else:
            check_constraint(leaf, attributes, text)
            has_variables = True  # checked
    if has_variables:  # each belongs to one clause
        check_size(condition)
        check_clauses(condition, operators, text)


def _check_predicate(
    predicate: Predicate, attributes: Mapping[str, Domain], text: str | None
) -> None:
    if not isinstance(predicate.attribute, str):
        raise ConditionError(f"{show(predicate)} is not a condition")
    domain = attributes.get(predicate.attribute)
    if domain is None:
        raise ConditionError(
            f"unknown attribute {predicate.attribute!r}",
            span=part_of_predicate(text, predicate, 0),
            hint=nearest(predicate.attribute, attributes),
        )
    if predicate.comparator not in domain.comparators:
        raise ConditionError(
            f"{predicate.attribute!r} is {domain.kind}, which has no comparator "
            f"{predicate.comparator!r}",
            span=part_of_predicate(text, predicate, 1),
            hint="it has: " + ", ".join(domain.comparators),
        )
    _check_value(predicate, domain, attributes, text)


def _check_value(
    predicate: Predicate, domain: Domain, attributes: Mapping[str, Domain], text: str | None
) -> None:
    comparator, value = predicate.comparator, predicate.value
    if comparator in ("exists", "missing"):
        given: tuple[object, ...] = ()
        if value is not None:
            raise ConditionError(f"{comparator!r} takes no value", span=predicate.span)
    elif comparator in ("in", "between"):
        if not isinstance(value, tuple) or not value:
            raise ConditionError(f"{comparator!r} takes a list", span=predicate.span)
        if comparator == "between" and len(value) != 2:
            raise ConditionError("'between' takes two bounds", span=predicate.span)
        if len(value) > LIST_LIMIT:
            raise LimitError(
                f"{len(value):,} values in one list; at most {LIST_LIMIT:,}", span=predicate.span
            )
        given = value
    else:
        given = (value,)
    constant = domain.constant
    for position, item in enumerate(given):
        try:
            constant(item)
        except RefusalError as why:
            hint = None
            if domain.kind == "text" and not isinstance(item, str):
                hint = "put text in quotes"
            elif domain.kind == "boolean" and isinstance(item, str):
                hint = "write true or false, without quotes"
            elif isinstance(item, Word) and item in attributes:
                hint = "two attributes cannot be compared"
            raise ConditionError(
                f"{predicate.attribute!r} is {domain.kind}: {why}",
                span=part_of_predicate(text, predicate, 2 + position),
                hint=hint,
            ) from None
    if comparator == "like" and _open_escape(str(value)):
        raise ConditionError(
            "the pattern ends in a lone backslash",
            span=part_of_predicate(text, predicate, 2),
            hint=r"a literal % is written \\% in quotes, a literal backslash \\\\",
        )


def _open_escape(pattern: str) -> bool:
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1
