"""Strict ISO 8601 timestamps: text that is not understood completely is refused, not truncated."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_FORM = re.compile(
    r"\d{4}-\d{2}-\d{2}"
    r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,](?P<fraction>\d+))?)?(?:Z|z|[+-]\d{2}:?\d{2})?)?"
)
_EXPECTED = 'is not an ISO 8601 timestamp such as "2026-01-31T12:00:00Z"'


def parse_timestamp(text: str) -> datetime | str:
    """The time in UTC, or the reason for a refusal, which follows the text in a message."""
    form = _FORM.fullmatch(text)
    if form is None or not text.isascii():
        return _EXPECTED
    fraction = form["fraction"] or ""
    if len(fraction) > 6:
        if fraction[6:].strip("0"):
            return "is finer than a microsecond"
        # fromisoformat would truncate it silently; here the rest is zeros
        text = text.replace(fraction, fraction[:6])
    try:
        moment = datetime.fromisoformat(text.upper())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except ValueError as why:
        return f"is not a timestamp: {why}"
    except OverflowError:
        return "falls outside the years 1 to 9999 in UTC"
