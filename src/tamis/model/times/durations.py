"""Durations as conditions have them: `30min`, exact to the microsecond."""

from __future__ import annotations

import re
from fractions import Fraction

_LONGEST = 40  # characters of a number
_SECOND = 10**6
UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": _SECOND,
    "min": 60 * _SECOND,
    "h": 3_600 * _SECOND,
    "d": 86_400 * _SECOND,
    "w": 7 * 86_400 * _SECOND,
}
"""The microseconds of each unit of a duration. A day has 24 hours, as UTC has."""
DURATION = re.compile(rf"(?:\d+(?:\.\d+)?|\.\d+)(?:{'|'.join(UNITS)})", re.ASCII)


def read_duration(text: str) -> int | None:
    """The microseconds of a duration such as `1.5h`; None if it has no 64-bit number of them."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    if len(number) > _LONGEST:
        return None
    exact = Fraction(number) * UNITS[text.removeprefix(number)]
    return exact.numerator if exact.denominator == 1 and exact < 1 << 63 else None


def duration_text(microseconds: int) -> str:
    """A duration in the largest unit that has a whole number of it."""
    if not microseconds:
        return "0s"
    unit = next(name for name, size in reversed(UNITS.items()) if microseconds % size == 0)
    return f"{microseconds // UNITS[unit]}{unit}"
