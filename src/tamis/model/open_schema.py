"""The attributes that a condition mentions: an open schema has these and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tamis.errors import ConditionError, SchemaError
from tamis.model.condition import Call, Comparison, Condition, Predicate, attributes_of, leaves
from tamis.model.operator import Signature
from tamis.model.schema import Schema


def schema_for(
    schema: Schema, condition: Condition, operators: Mapping[str, Signature] | None = None
) -> Schema:
    """An open schema with the attributes that the condition mentions; any other as it is."""
    if not schema.is_open:
        return schema
    try:
        return schema.mentioning(_mentioned(condition, {} if operators is None else operators))
    except SchemaError as why:  # a name that no event can have
        raise ConditionError(str(why)) from None


def _mentioned(condition: Condition, operators: Mapping[str, Signature]) -> Iterator[str]:
    for leaf in leaves(condition):
        if isinstance(leaf, Predicate | Comparison):
            yield from (name for name in attributes_of(leaf) if isinstance(name, str))
        elif isinstance(leaf, Call) and leaf.operator in operators:
            yield from operators[leaf.operator].reads
