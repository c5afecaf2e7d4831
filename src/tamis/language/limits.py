"""How large a condition may be. Each limit is checked before any work that grows with it."""

from __future__ import annotations

from tamis.errors import ConditionError, LimitError

TEXT_LIMIT = 64 * 1024  # bytes of UTF-8
DEPTH_LIMIT = 100  # levels of parentheses and `not`
LIST_LIMIT = 10_000  # values in one `in`
PREDICATE_LIMIT = 10_000  # predicates, calls and constraints
VALUE_LIMIT = 100_000  # in all lists together
WILDCARD_LIMIT = 1_000  # characters of a `like` with `_`, whose search is quadratic
CALL_LIMIT = 1_000  # clauses of a condition with calls


def check_length(text: object, limit: int = TEXT_LIMIT) -> None:
    """Refuse a condition that is not text, or longer than `limit` bytes of UTF-8."""
    if not isinstance(text, str):
        raise ConditionError(f"a condition is text, got {type(text).__name__}")
    if len(text) > limit or (not text.isascii() and _bytes(text) > limit):
        raise LimitError(
            f"the condition is {len(text):,} characters long; the limit is {limit:,} bytes"
        )


def _bytes(text: str) -> int:
    # A lone surrogate has no UTF-8 form; it is refused later, where its place is known.
    return len(text.encode("utf-8", "surrogatepass"))
