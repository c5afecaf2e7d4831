"""Numbers as the language writes them: exact, or refused."""

from __future__ import annotations

from decimal import Decimal

from tamis.errors import ConditionError, Span


def number(word: str, span: Span, text: str) -> int | float:
    """The number that `word` denotes; an error shows its place in the text."""
    digits = word.removeprefix("-")
    if digits.isdigit():
        digits = digits.lstrip("0") or "0"
        # int() of a long text is slow and capped; 20 digits are past 64 bits anyway.
        if len(digits) > 20:
            raise ConditionError(
                "a whole number outside the 64-bit integers (-2^63 to 2^63 - 1)",
                span=span,
                text=text,
            )
        return -int(digits) if word.startswith("-") else int(digits)
    found = float(word)
    if found in (float("inf"), float("-inf")):
        raise ConditionError("a number too large for a double", span=span, text=text)
    if len(word) > 15 and found.is_integer() and "e" not in word.lower():
        return _whole(word, found, span, text)
    return found


def _whole(word: str, found: float, span: Span, text: str) -> int | float:
    """A long literal whose double is whole: exact if the literal is whole, otherwise refused.

    `9007199254740993.0` is that integer; `1.0000000000000000001` is not 1.
    """
    exact = Decimal(word)
    if exact == found:
        return found
    if exact == exact.to_integral_value() and abs(exact) < 2**64:
        return int(exact)
    raise ConditionError(f"not exact as a double; the nearest is {found!r}", span=span, text=text)
