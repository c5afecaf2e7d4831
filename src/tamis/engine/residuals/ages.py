"""Comparisons of one timestamp with `now`, as intervals of what the timestamp is after `now`.

`at > now - 1h` holds if `at - now` is more than minus an hour. So it is an interval, and the kernel
needs one subtraction for each event, with whole numbers that cannot overflow.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from tamis.encode.clause import SOME, Constraint
from tamis.encode.codes import TimestampCodec
from tamis.encode.intervals import Intervals
from tamis.model.condition import (
    COMPLEMENTS,
    Arithmetic,
    AttributeValue,
    Comparison,
    Duration,
    Expression,
    Now,
    attributes_of,
)

ZERO = 1 << 61
"""Added to ages: then none of them is a code of a timestamp, nor an end of their domain."""
FIRST, LAST = TimestampCodec.bottom, TimestampCodec.top - 1  # moments
_MOST = LAST - FIRST  # between two moments
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Age(NamedTuple):
    """The attribute that is compared with `now`, and the intervals of their difference."""

    attribute: str
    intervals: Intervals

    def constraint(self, position: int) -> Constraint:
        """The intervals as a step of a program has them."""
        return Constraint(position, SOME, self.intervals)


def age(comparison: Comparison, positive: bool) -> Age | None:
    """A comparison or its complement as an age; None if it is not of one attribute with `now`."""
    names = attributes_of(comparison)
    parts: Counter[str | Now] = Counter()
    if len(names) != 1:
        return None
    rest = _add(comparison.left, 1, parts)
    other = _add(comparison.right, -1, parts)
    sign = parts[names[0]]
    if rest is None or other is None or sign not in (1, -1) or parts[Now()] != -sign:
        return None
    comparator = comparison.comparator if positive else COMPLEMENTS[comparison.comparator]
    if sign < 0:
        comparator = _MIRRORED.get(comparator, comparator)
    return Age(names[0], _intervals(comparator, -sign * (rest + other)))


def _add(expression: Expression, sign: int, parts: Counter[str | Now]) -> int | None:
    """Add the attributes and moments of a sum; its durations, or None for another expression."""
    if isinstance(expression, Arithmetic):
        if expression.sign not in ("+", "-"):
            return None
        left = _add(expression.left, sign, parts)
        right = _add(expression.right, sign if expression.sign == "+" else -sign, parts)
        return None if left is None or right is None else left + right
    if isinstance(expression, Duration):
        return sign * expression.microseconds
    if isinstance(expression, AttributeValue | Now):
        parts[expression if isinstance(expression, Now) else expression.name] += sign
        return 0
    return 0 if expression == 0 else None  # as in -(@a - now)


def _intervals(comparator: str, limit: int) -> Intervals:
    """The differences that compare with a limit, between cuts."""
    low, high = -_MOST, _MOST + 1
    at, after = (min(max(each, low), high) for each in (limit, limit + 1))
    found = {
        "<": [(low, at)],
        "<=": [(low, after)],
        ">": [(after, high)],
        ">=": [(at, high)],
        "=": [(at, after)],
        "!=": [(low, at), (after, high)],
    }[comparator]
    return tuple((a + ZERO, b + ZERO) for a, b in found if a < b)
