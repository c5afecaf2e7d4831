"""CESQL 1.0, the SQL expressions of CloudEvents, over context attributes.

    type = 'com.example.sold' AND (subject LIKE 'oak%' OR INT(priority) > 3)

An event matches if the expression is the Boolean true and no part that is evaluated has an error.
So a comparison with an attribute that the event does not have never matches, whichever it is.

An attribute `x` is `ce.x` in a condition, as the service shows it, if the schema has such names.
Otherwise it is `x`, as in a CloudEvent in structured mode. In an open schema, the event decides.
"""

from __future__ import annotations

from tamis.errors import ConditionError, NeverTrueError
from tamis.language.dialects.cesql.conditions import ExpressionTranslator
from tamis.language.dialects.cesql.formulas import Formula, FormulaMaker
from tamis.language.dialects.cesql.parser import parse
from tamis.language.dialects.cesql.values import Applied, Attribute, Constant, Node
from tamis.model.condition import IS_NULL, Condition, Not, Or, Predicate
from tamis.model.schema import Schema

_CONTEXT = "ce."


def read(text: str, schema: Schema) -> Condition:
    """The condition of an expression."""
    try:
        node = parse(text)
        found = _formula(node, schema)
        if found is False:
            tight = "NOT binds tighter than a comparison: write NOT (a = b)"
            raise NeverTrueError(
                "never true: it is false or an error, whatever the event is",
                span=node.span,
                hint=tight if "NOT " in text.upper() else None,
            )
        return _always(schema) if found is True else found
    except ConditionError as error:
        raise error.with_text(text) from None


def _formula(node: Node, schema: Schema) -> Formula:
    if not schema.is_open:
        in_context = any(name.startswith(_CONTEXT) for name in schema.attributes)
        return _translated(node, schema, _CONTEXT if in_context else "")
    made = FormulaMaker()
    absent = Predicate(f"{_CONTEXT}id", IS_NULL, None, node.span)
    inner, outer = _translated(node, schema, _CONTEXT), _translated(node, schema, "")
    if inner is outer:  # true or false of every event
        return inner
    return made.any((made.all((Not(absent), inner)), made.all((absent, outer))))


def _translated(node: Node, schema: Schema, prefix: str) -> Formula:
    if prefix and f"{prefix}specversion" not in schema.attributes:
        node = _with_version(node)
    return ExpressionTranslator(schema, prefix).filter(node)


def _with_version(node: Node) -> Node:
    """The version is not among the attributes that conditions see: it is always 1.0."""
    if isinstance(node, Attribute) and node.name == "specversion":
        return Constant("1.0", node.span)
    if not isinstance(node, Applied):
        return node
    return node._replace(arguments=tuple(map(_with_version, node.arguments)))


def _always(schema: Schema) -> Condition:
    """A condition that is true of every event."""
    name = "id" if schema.is_open else next(iter(schema.attributes))
    missing = Predicate(name, "missing")
    return Or((missing, Not(missing)))
