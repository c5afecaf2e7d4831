"""`now` in conditions: what it stands for.

A moment is a number of microseconds since 1970, in UTC.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tamis.errors import EventError
from tamis.model.condition import (
    COMPLEMENTS,
    And,
    Arithmetic,
    AttributeValue,
    Comparison,
    Condition,
    Expression,
    Leaf,
    Not,
    Now,
    Operand,
    Or,
    Predicate,
    Some,
    Word,
    leaves,
    operands,
)
from tamis.model.domain import RefusalError, Timestamp
from tamis.model.elements.structs import Structs
from tamis.model.schema import Schema

NO_MOMENT = -(1 << 63)
"""In place of the moment of an event without a time, for which nothing about `now` holds."""
NOW_WORDS = frozenset(("now", "Now", "NOW"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TIMESTAMP = Timestamp()


def clock() -> int:
    """The present moment."""
    return time.time_ns() // 1000


def read_moment(given: object) -> int:
    """A moment that a caller gives: a `datetime`, or text in ISO 8601."""
    try:
        return (_TIMESTAMP.value(given) - _EPOCH) // _MICROSECOND
    except RefusalError as why:
        raise EventError(f"now: {why}") from None


def moment_text(moment: int) -> str:
    """A moment in ISO 8601."""
    return (_EPOCH + moment * _MICROSECOND).isoformat()


def with_now(condition: Condition, schema: Schema) -> Condition:
    """The condition with `now` in place of the word `now`, where it is compared with a timestamp.

    Elsewhere the word is a text, or the name of a value. No condition changes its meaning: a word
    has never been comparable with a timestamp.
    """
    if schema.is_open or not _has_word(condition):
        return condition
    return _with_leaves(condition, lambda leaf: _named(leaf, schema))


def _has_word(condition: Condition) -> bool:
    for leaf in leaves(condition):
        if isinstance(leaf, Predicate):
            if _is_word(leaf.value):
                return True
        elif isinstance(leaf, Comparison):
            if any(map(_is_word, operands(leaf))):
                return True
        elif isinstance(leaf, Some) and _has_word(leaf.condition):
            return True
    return False


def _is_word(value: object) -> bool:
    return type(value) is Word and value in NOW_WORDS


def _named(leaf: Leaf, schema: Schema) -> Leaf:
    if isinstance(leaf, Some):
        domain = schema.attributes.get(leaf.attribute)
        if not isinstance(domain, Structs):
            return leaf
        return replace(leaf, condition=with_now(leaf.condition, domain.element))
    if isinstance(leaf, Predicate) and leaf.comparator in COMPLEMENTS and _is_word(leaf.value):
        if _is_timestamp(leaf.attribute, schema):
            return Comparison(AttributeValue(leaf.attribute), leaf.comparator, Now(), leaf.span)
    elif isinstance(leaf, Comparison) and any(
        isinstance(each, AttributeValue) and _is_timestamp(each.name, schema)
        for each in operands(leaf)
    ):
        return _with_sides(leaf, lambda each: Now() if _is_word(each) else each)
    return leaf


def _is_timestamp(name: str, schema: Schema) -> bool:
    return isinstance(schema.attributes.get(name), Timestamp)


def mentions_now(condition: Condition) -> bool:
    """Whether a condition needs a moment; `with_now` comes before."""
    return any(
        mentions_now(leaf.condition)
        if isinstance(leaf, Some)
        else isinstance(leaf, Comparison) and compares_now(leaf)
        for leaf in leaves(condition)
    )


def compares_now(comparison: Comparison) -> bool:
    """Whether a comparison needs a moment."""
    return any(each == Now() for each in operands(comparison))


def at_moment(condition: Condition, moment: int) -> Condition:
    """The condition for an event of a moment."""
    now = Now(moment)

    def placed(leaf: Leaf) -> Leaf:
        if isinstance(leaf, Some):
            return replace(leaf, condition=at_moment(leaf.condition, moment))
        if isinstance(leaf, Comparison):
            return _with_sides(leaf, lambda each: now if isinstance(each, Now) else each)
        return leaf

    return _with_leaves(condition, placed) if mentions_now(condition) else condition


def _with_leaves(condition: Condition, change: Callable[[Leaf], Leaf]) -> Condition:
    if isinstance(condition, And | Or):
        return type(condition)(tuple(_with_leaves(part, change) for part in condition.parts))
    if isinstance(condition, Not):
        return Not(_with_leaves(condition.part, change))
    return change(condition)


def _with_sides(leaf: Comparison, change: Callable[[Operand], Operand]) -> Comparison:
    return replace(leaf, left=_sum(leaf.left, change), right=_sum(leaf.right, change))


def _sum(given: Expression, change: Callable[[Operand], Operand]) -> Expression:
    if isinstance(given, Arithmetic):
        return Arithmetic(given.sign, _sum(given.left, change), _sum(given.right, change))
    return change(given)
