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
from tamis.model.elements.structs import Structs, list_name, open_structs
from tamis.model.operator import Signature
from tamis.model.schema import Schema


def schema_for(
    schema: Schema, condition: Condition, operators: Mapping[str, Signature] | None = None
) -> Schema:
    """An open schema with the attributes that the condition mentions; any other as it is."""
    if not schema.is_open:
        return schema
    try:
        names = _mentioned(condition, {} if operators is None else operators)
        schema = schema.mentioning(names)
        for leaf in leaves(condition):
            if isinstance(leaf, Some) and isinstance(leaf.attribute, str):
                schema = _with_list(schema, leaf)
        return schema
    except SchemaError as why:  # a name that no event can have
        raise ConditionError(str(why)) from None


def _with_list(schema: Schema, some: Some) -> Schema:
    """The schema with the list of structs, and the attributes of elements, that are mentioned."""
    name = list_name(some.attribute, schema)
    known = schema.attributes.get(name)
    before = known.element if isinstance(known, Structs) else Schema.open()
    element = schema_for(before, some.condition)
    if known is not None and element is before:
        return schema
    return schema.mentioning((), **{name: open_structs(element)})


def _mentioned(condition: Condition, operators: Mapping[str, Signature]) -> Iterator[str]:
    for leaf in leaves(condition):
        if isinstance(leaf, Predicate | Comparison):
            yield from (name for name in attributes_of(leaf) if isinstance(name, str))
        elif isinstance(leaf, Call) and leaf.operator in operators:
            yield from operators[leaf.operator].reads
