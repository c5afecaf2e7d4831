"""The spans of parts of a predicate, a call or a constraint in the text.

Nodes keep only the span of the whole. The spans of parts are found again when an error needs them,
which keeps parsing fast. This works for the native language only.
"""

from __future__ import annotations

from tamis.errors import Span
from tamis.language.lexer import Token, tokens
from tamis.model.condition import (
    IGNORING_CASE,
    AttributeValue,
    Call,
    Constant,
    Leaf,
    Predicate,
    ValueConstraint,
    Variable,
)

_VALUES = ("number", "name", "date", "text", "true", "false")


def part_of_predicate(text: str | None, predicate: Predicate, part: int) -> Span | None:
    """0 is the attribute, 1 the comparator, 2 the first value, and so on."""
    found = _tokens(text, predicate)
    if not found:
        return predicate.span
    if part == 0:
        return found[0][2:]
    words = [token for token in found[1:] if token[0] not in ("not", "end")]
    if part == 1:
        return words[0][2:] if words else predicate.span  # a bare attribute has no comparator
    values: list[Span] = []
    sign: int | None = None
    many = len(predicate.comparator.removesuffix(IGNORING_CASE).split())
    for kind, _, first, last in words[many:]:
        if kind in _VALUES:
            values.append((first if sign is None else sign, last))
        sign = first if kind == "-" else None
    return values[part - 2] if part - 2 < len(values) else predicate.span


def operator_name(text: str | None, call: Call) -> Span | None:
    """The span of the operator's name in a call."""
    return next((token[2:] for token in _tokens(text, call)), call.span)


def argument(text: str | None, call: Call, position: int) -> Span | None:
    """The argument at a position, counted from 0."""
    at, span = 0, call.span
    start: int | None = None
    for kind, _, first, last in _tokens(text, call)[2:]:
        if kind in (",", ")", "end"):
            if at == position:
                break
            at, start = at + 1, None
        else:
            start = first if start is None else start
            span = start, last
    return span


def operand(
    text: str | None, leaf: Leaf, wanted: Constant | Variable | AttributeValue
) -> Span | None:
    """The first occurrence of a variable, an attribute or a constant in a leaf."""
    sign: int | None = None
    for kind, word, first, last in _tokens(text, leaf):
        if _is_written(kind, word, wanted):
            negative = isinstance(wanted, int | float) and wanted < 0
            return (sign if negative and sign is not None else first), last
        sign = first if kind == "-" else None
    return leaf.span


def _is_written(kind: str, word: str, wanted: Constant | Variable | AttributeValue) -> bool:
    if isinstance(wanted, AttributeValue):  # of an element, it follows the name of the element
        return kind in ("attribute", "name") and f".{word}".endswith(f".{wanted.name}")
    if isinstance(wanted, Variable):
        return kind == "variable" and word == wanted.name
    if isinstance(wanted, bool):
        return kind == ("true" if wanted else "false")
    if isinstance(wanted, str):
        return kind in ("name", "date", "text") and word == wanted
    return kind == "number" and float(word) == float(abs(wanted))


def comparator(text: str | None, constraint: ValueConstraint) -> Span | None:
    """The comparator of a constraint."""
    found = (token for token in _tokens(text, constraint) if token[0] == constraint.comparator)
    return next((token[2:] for token in found), constraint.span)


def _tokens(text: str | None, leaf: Leaf) -> list[Token]:
    """The tokens of a leaf, at their places in the text; empty if the text is unknown."""
    if text is None or leaf.span is None:
        return []
    start, end = leaf.span
    return [(kind, word, s + start, e + start) for kind, word, s, e in tokens(text[start:end])]
