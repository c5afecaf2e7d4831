"""Sets of values as sorted, disjoint, half-open intervals between cuts.

A cut is a position between values. For text it is a `TextCut`; for every other domain it is an
integer code, and the cut is just below it. Both compare with `<`, which is all that is needed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Cut = Any  # int, or TextCut
Interval = tuple[Cut, Cut]
Intervals = tuple[Interval, ...]

TextCut = tuple[int, str, int]
"""(0, s, 0) is just before s and (0, s, 1) just after it; (1, "", 0) is above every text."""

TEXT_BOTTOM: TextCut = (0, "", 0)
TEXT_TOP: TextCut = (1, "", 0)


def before(text: str) -> TextCut:
    """The cut just below a text."""
    return (0, text, 0)


def after(text: str) -> TextCut:
    """The cut just above a text."""
    return (0, text, 1)


def after_prefix(prefix: str) -> TextCut:
    """The cut above all texts that start with `prefix`: below its successor of the same length."""
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1]) + 1
        if code == 0xD800:  # text contains no surrogates
            code = 0xE000
        if code <= 0x10FFFF:
            return before(prefix[: end - 1] + chr(code))
    return TEXT_TOP


def empty(low: Cut, high: Cut) -> bool:
    """Whether no value is between two cuts."""
    if not low < high:
        return True
    # Between "a" and its immediate successor "a\0" there is no text.
    return isinstance(low, tuple) and low[2] == 1 and high == (0, low[1] + "\0", 0)


def intersect(left: Intervals, right: Intervals) -> Intervals:
    """Values in both."""
    if len(left) == 1 and len(right) == 1:  # the most common case
        low, high = max(left[0][0], right[0][0]), min(left[0][1], right[0][1])
        return () if empty(low, high) else ((low, high),)
    found: list[Interval] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low = max(left[i][0], right[j][0])
        high = min(left[i][1], right[j][1])
        if not empty(low, high):
            found.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def unite(intervals: Iterable[Interval]) -> Intervals:
    """Values in any, with touching intervals merged."""
    found: list[Interval] = []
    for low, high in sorted(interval for interval in intervals if not empty(*interval)):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def complement(intervals: Intervals, bottom: Cut, top: Cut) -> Intervals:
    """Values between `bottom` and `top` in none of the intervals."""
    found: list[Interval] = []
    at = bottom
    for low, high in intervals:
        if not empty(at, low):
            found.append((at, low))
        at = max(at, high)
    if not empty(at, top):
        found.append((at, top))
    return tuple(found)
