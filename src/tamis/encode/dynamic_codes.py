"""The codes of dynamic attributes: every value has a text key, and keys are in one order.

    0           null
    1f, 1t      false and true
    2…          a number: the greatest double that is not above it, and the rest up to it
    3…          text
    4           an object, which compares with nothing

A comparison within a kind is an interval of keys. So labels of text, and all matchers, serve
dynamic attributes as they are.
"""

from __future__ import annotations

import math
from typing import Any

from tamis.encode import intervals
from tamis.encode.codes import TextCodec, decimal_code
from tamis.encode.intervals import TEXT_BOTTOM, TEXT_TOP, Interval, Intervals
from tamis.encode.pattern import TextCheck
from tamis.model.condition import OF_KIND, Literal, Predicate
from tamis.model.dynamic import BOOLEAN, NULL, NUMBER, OBJECT, TEXTUAL, kind_of_value

_TAGS = {NULL: "0", BOOLEAN: "1", NUMBER: "2", TEXTUAL: "3", OBJECT: "4"}
_OFFSET = 1 << 63
_EXACT = 1 << 53  # smaller integers are doubles


def key_of(value: Any) -> str:
    """The key of a value in normal form.

    >>> key_of(1) == key_of(1.0) < key_of(1.5) < key_of(2**63 - 2) < key_of(2**63 - 1)
    True
    >>> key_of(None), key_of(True), key_of("oak"), key_of({"a": 1})
    ('0', '1t', '3oak', '4')
    """
    if isinstance(value, str):
        return "3" + value
    if value is None:
        return "0"
    if isinstance(value, bool):
        return "1t" if value else "1f"
    if isinstance(value, float):
        return f"2{decimal_code(value) + _OFFSET:016x}000"
    if isinstance(value, int):
        below = float(value)
        if -_EXACT <= value <= _EXACT:
            return f"2{decimal_code(below) + _OFFSET:016x}000"
        if below > value:
            below = math.nextafter(below, -math.inf)
        return f"2{decimal_code(below) + _OFFSET:016x}{value - int(below):03x}"
    return "4"


def number_of_key(key: str) -> tuple[int, int]:
    """The code of the double, and the rest, in the key of a number."""
    return int(key[1:17], 16) - _OFFSET, int(key[17:], 16)


def _kind(kind: str) -> Interval:
    """The interval of the keys of one kind."""
    tag = _TAGS[kind]
    return intervals.before(tag), intervals.before(chr(ord(tag) + 1))


class DynamicCodec(TextCodec):
    """Intervals between keys."""

    texts = (_kind(TEXTUAL),)
    null = ((intervals.before("0"), intervals.after("0")),)

    @property
    def not_null(self) -> Intervals:
        return ((intervals.after("0"), TEXT_TOP),)

    @property
    def scalars(self) -> Intervals:
        return ((TEXT_BOTTOM, _kind(OBJECT)[0]),)

    def satisfying(self, literal: Literal) -> Intervals:
        predicate, positive = literal
        if predicate.comparator != OF_KIND:
            return super().satisfying(literal)
        assert isinstance(predicate.value, tuple)
        found = intervals.unite(_kind(str(kind)) for kind in predicate.value)
        return found if positive else intervals.complement(found, TEXT_BOTTOM, TEXT_TOP)

    def compare(self, comparator: str, constant: Any) -> Intervals:
        found = super().compare(comparator, key_of(constant))
        return intervals.intersect(found, (_kind(kind_of_value(constant)),))

    def complement(self, found: Intervals, predicate: Predicate) -> Intervals:
        """The other values of the kinds that the predicate mentions."""
        given = predicate.value if isinstance(predicate.value, tuple) else (predicate.value,)
        kinds = intervals.unite(_kind(kind_of_value(self.domain.constant(each))) for each in given)
        return intervals.intersect(intervals.complement(found, TEXT_BOTTOM, TEXT_TOP), kinds)

    def pattern(self, pattern: TextCheck) -> TextCheck:
        return pattern.tagged(_TAGS[TEXTUAL])
