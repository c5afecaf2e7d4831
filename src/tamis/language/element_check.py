"""The type check of conditions on elements, and of what would mix elements."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.errors import ConditionError, nearest
from tamis.model.condition import STATES, Predicate, Some
from tamis.model.domain import Domain
from tamis.model.elements.structs import Structs, list_name
from tamis.model.printer import name_text, to_text
from tamis.model.schema import Schema


def structs_of(some: Some, schema: Schema, attributes: Mapping[str, Domain], stem: str) -> Structs:
    """The list of structs that a condition looks at; refuses other attributes."""
    shown = stem + some.attribute
    domain = attributes.get(list_name(some.attribute, schema))
    if isinstance(domain, Structs):
        return domain
    if domain is None:
        raise ConditionError(
            f"unknown attribute {shown!r}",
            span=some.span,
            hint=nearest(some.attribute, attributes),
        )
    raise ConditionError(
        f"{shown!r} is {domain.kind}, not a list of structs",
        span=some.span,
        hint=f"an attribute with several values is compared as in: {name_text(shown)} = …",
    )


def refuse_mixed(predicate: Predicate, schema: Schema, stem: str) -> None:
    """Refuse a predicate on all elements at once: it would mix them, and match falsely."""
    found = list_of(predicate.attribute, schema)
    if found is None:
        return
    name, rest = found
    if not rest and predicate.comparator in STATES:
        return
    shown = name_text(stem + name)
    form = "item.… = …"
    if rest:
        form = to_text(Predicate(f"item.{rest}", predicate.comparator, predicate.value))
    raise ConditionError(
        f"{stem + name!r} is a list of structs: elements would be mixed",
        span=predicate.span,
        hint=f"write a condition on one element: some item in {shown} ({form})",
    )


def list_of(attribute: str, schema: Schema) -> tuple[str, str] | None:
    """The list of structs that an attribute is, or is in, and the rest of its name."""
    name, rest = attribute, ""
    while name not in schema.lists:
        name, dot, last = name.rpartition(".")
        if not dot:
            return None
        rest = f"{last}.{rest}" if rest else last
    return name, rest
