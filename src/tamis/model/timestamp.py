"""ISO 8601 timestamps, strictly: what is not understood whole is refused, never cut."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_FORM = re.compile(
    r"\d{4}-\d{2}-\d{2}"
    r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,](?P<fraction>\d+))?)?(?:Z|z|[+-]\d{2}:?\d{2})?)?"
)
_EXPECTED = 'is no ISO 8601 timestamp such as "2026-01-31T12:00:00Z"'


def parse_timestamp(text: str) -> datetime | str:
    """The moment in UTC, or why not, in words that follow the text."""
    form = _FORM.fullmatch(text)
    if form is None or not text.isascii():
        return _EXPECTED
    fraction = form["fraction"] or ""
    if len(fraction) > 6:
        if fraction[6:].strip("0"):
            return "is finer than a microsecond"
        # fromisoformat would cut it silently as well; here the rest is known to be zeros
        text = text.replace(fraction, fraction[:6])
    try:
        moment = datetime.fromisoformat(text.upper())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except ValueError as why:
        return f"is no timestamp: {why}"
    except OverflowError:
        return "falls outside the years 1 to 9999 in UTC"
