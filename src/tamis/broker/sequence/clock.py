"""The clock of a log: by which leases end."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LogClock:
    """Microseconds since 1970 that never go back within a log."""

    def __init__(self, read: Callable[[], int], least: int) -> None:
        self._read, self._last = read, least
        self._lock = Lock()

    def now(self) -> int:
        """The moment. Threads may share the clock."""
        with self._lock:
            self._last = max(self._last, self._read())
            return self._last

    def raise_to(self, moment: int) -> None:
        """Not go back before a moment: another service has seen it."""
        with self._lock:
            self._last = max(self._last, moment)


def wall_clock() -> int:
    """Microseconds since 1970, as the system says."""
    return time.time_ns() // 1000


def iso(moment: int) -> str:
    """A moment in microseconds since 1970 as RFC 3339 writes it.

    >>> iso(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    shown = (_EPOCH + timedelta(microseconds=moment)).isoformat(timespec="microseconds")
    return shown.removesuffix("+00:00") + "Z"
