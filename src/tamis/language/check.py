"""The type check of a condition against a schema.

Everything here is about the condition alone; whether its predicates contradict each other is found
where they are folded (`encode.clause`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tamis.errors import ConditionError, LimitError, Span, nearest
from tamis.language.lexer import tokens
from tamis.language.limits import LIST_LIMIT
from tamis.model.condition import Condition, Predicate, Word, predicates
from tamis.model.domain import Domain, RefusalError, show
from tamis.model.schema import Schema


def check(condition: Condition, schema: Schema, text: str | None = None) -> None:
    """Raise a `ConditionError` for an unknown name, a wrong comparator or a wrong type."""
    attributes = schema.attributes
    for predicate in predicates(condition):
        if not isinstance(predicate, Predicate) or not isinstance(predicate.attribute, str):
            raise ConditionError(f"{show(predicate)} is no part of a condition")
        domain = attributes.get(predicate.attribute)
        if domain is None:
            raise ConditionError(
                f"unknown attribute {predicate.attribute!r}",
                span=_place(text, predicate, 0),
                text=text,
                hint=nearest(predicate.attribute, attributes),
            )
        if predicate.comparator not in domain.comparators:
            raise ConditionError(
                f"{predicate.attribute!r} is {domain.kind}, which has no comparator "
                f"{predicate.comparator!r}",
                span=_place(text, predicate, 1),
                text=text,
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
            raise ConditionError(f"{comparator!r} takes no value", span=predicate.span, text=text)
    elif comparator in ("in", "between"):
        if not isinstance(value, tuple) or not value:
            raise ConditionError(f"{comparator!r} takes a list", span=predicate.span, text=text)
        if comparator == "between" and len(value) != 2:
            raise ConditionError("'between' takes two bounds", span=predicate.span, text=text)
        if len(value) > LIST_LIMIT:
            raise LimitError(
                f"{len(value):,} values in one list; at most {LIST_LIMIT:,}",
                span=predicate.span,
                text=text,
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
                hint = "text is written in quotes"
            elif domain.kind == "boolean" and isinstance(item, str):
                hint = "write true or false, without quotes"
            elif isinstance(item, Word) and item in attributes:
                hint = "two attributes cannot be compared with each other"
            raise ConditionError(
                f"{predicate.attribute!r} is {domain.kind}: {why}",
                span=_place(text, predicate, 2 + position),
                text=text,
                hint=hint,
            ) from None
    if comparator == "like" and _open_escape(str(value)):
        raise ConditionError(
            "the pattern ends in a lone backslash",
            span=_place(text, predicate, 2),
            text=text,
            hint=r"a literal % is written \\% in quotes, a literal backslash \\\\",
        )


def _open_escape(pattern: str) -> bool:
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1


def _place(text: str | None, predicate: Predicate, part: int) -> Span | None:
    """Where a part stands: 0 the attribute, 1 the comparator, 2 the first value, and so on.

    Nodes keep only the place of the whole predicate; its parts are found again when an error
    needs them, which keeps parsing fast.
    """
    if text is None or predicate.span is None:
        return predicate.span
    start, end = predicate.span
    found = [(s + start, e + start, kind) for kind, _, s, e in tokens(text[start:end])]
    if part == 0:
        return found[0][:2]
    words = [f for f in found[1:] if f[2] not in ("not", "end")]
    if part == 1:
        return words[0][:2]
    values: list[Span] = []
    sign: int | None = None
    for first, last, kind in words[1:]:
        if kind in ("number", "name", "date", "text", "true", "false"):
            values.append((first if sign is None else sign, last))
        sign = first if kind == "-" else None
    return values[part - 2] if part - 2 < len(values) else predicate.span
