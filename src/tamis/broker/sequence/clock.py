"""The clock of a log: by which leases end."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock


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
