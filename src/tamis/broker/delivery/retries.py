"""When a webhook is tried again, and when it is given up."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Seconds after the first attempt, the second one, and so on: eight attempts in about a day.
PAUSES = (5, 30, 120, 600, 3600, 14_400, 50_400)
ATTEMPTS = len(PAUSES) + 1
LONGEST = 86_400  # seconds that a receiver may ask for
JITTER = 0.2  # so that the messages of an outage do not come back together
OPEN_AFTER = 5  # failures in a row after which a sink is left alone for a while
OPEN_FOR = 30  # seconds
GIVE_UP = 259_200  # seconds after which a message is not put off any more


def next_pause(
    attempt: int, asked: float | None = None, draw: random.Random | None = None
) -> float:
    """Seconds until the attempt after this one (from 1); `asked` is what the receiver asked for.

    >>> next_pause(1, draw=random.Random(1)) < 6 < next_pause(2, draw=random.Random(1))
    True
    """
    spread = (draw or random).uniform(1 - JITTER, 1 + JITTER)
    pause = PAUSES[min(attempt, len(PAUSES)) - 1] * spread
    return pause if asked is None else max(pause, min(asked, LONGEST))


def retry_after(header: str | None, now: datetime) -> float | None:
    """The seconds that a `Retry-After` header asks for: a number or a date; None if it is neither.

    >>> retry_after("120", datetime.now(UTC)), retry_after("soon", datetime.now(UTC))
    (120.0, None)
    """
    if header is None:
        return None
    if header.strip().isdecimal() and len(header) < 10:
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
