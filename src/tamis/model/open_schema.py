"""The attributes that a condition mentions: an open schema has these and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tamis.errors import ConditionError, SchemaError
from tamis.model.condition import (
    Call,
    Comparison,
    Condition,
    Predicate,
    Some,
    attributes_of,
    leaves,
)
from tamis.model.elements.structs import NESTING, Structs, list_name, open_structs
from tamis.model.open_event import LIST
from tamis.model.operator import Signature
from tamis.model.schema import Schema


def schema_for(
    schema: Schema, condition: Condition, operators: Mapping[str, Signature] | None = None
) -> Schema:
    """An open schema with the attributes that the condition mentions; any other as it is."""
    if not schema.is_open:
        return schema
    try:
        return _wider(schema, condition, {} if operators is None else operators, 0)
    except SchemaError as why:  # a name that no event can have
        raise ConditionError(str(why)) from None


def _wider(
    schema: Schema, condition: Condition, operators: Mapping[str, Signature], depth: int
) -> Schema:
    """The schema of events, or of elements at some depth, with all that is mentioned."""
    names = list(_mentioned(condition, operators))
    for name in names:
        if name.endswith(LIST):
            raise SchemaError(f"{name!r}: in an open schema no name ends in {LIST}")
    schema = schema.mentioning(names)
    for leaf in leaves(condition):
        if isinstance(leaf, Some) and isinstance(leaf.attribute, str):
            if depth == NESTING:
                raise SchemaError(f"lists are nested deeper than {NESTING} levels")
            name = list_name(leaf.attribute, schema)
            known = schema.attributes.get(name)
            before = known.element if isinstance(known, Structs) else Schema.open()
            element = _wider(before, leaf.condition, {}, depth + 1)
            if known is None or element is not before:
                schema = schema.mentioning((), **{name: open_structs(element)})
    return schema


def _mentioned(condition: Condition, operators: Mapping[str, Signature]) -> Iterator[str]:
    for leaf in leaves(condition):
        if isinstance(leaf, Predicate | Comparison):
            yield from (name for name in attributes_of(leaf) if isinstance(name, str))
        elif isinstance(leaf, Call) and leaf.operator in operators:
            yield from operators[leaf.operator].reads
