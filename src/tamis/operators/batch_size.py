"""How many events one call of a batch operator may be for.

A call has one timeout, however many events it is for. Twelve texts that take a sixth of a second
each would miss a timeout of one second together, though each of them meets it alone. So a call gets
only as many events as are expected to take half of the timeout; the other half is a reserve for
slow events.
"""

from __future__ import annotations

from collections.abc import Hashable

_SHARE = 0.5  # of the timeout, for the expected time
_KEPT = 1024  # constants with a measured time; the oldest is dropped
_UNLIMITED = 1 << 30


class BatchSizer:
    """Seconds per event of one operator, by the constants of the call.

    One pattern may take a thousand times as long as another. New constants are assumed to be as
    slow as the last ones, and the first call as slow as declared. A slower call counts in full, a
    faster one by half: too few events in a call cost little, too many cost the answers.
    """

    def __init__(self, seconds: float, timeout: float) -> None:
        self._timeout = timeout
        self._latest, self._measured = seconds, False
        self._by_key: dict[Hashable, float] = {}

    def size(self, key: Hashable) -> int:
        """How many events the next call may be for."""
        seconds = self._by_key.get(key, self._latest)
        return max(1, int(_SHARE * self._timeout / seconds)) if seconds > 0 else _UNLIMITED

    def answered(self, key: Hashable, events: int, seconds: float) -> None:
        """Learn from a call that was answered."""
        self._learn(key, seconds / events)

    def hung(self, key: Hashable, events: int) -> None:
        """Learn from a call that hung: its time is unknown, so assume twice the timeout."""
        self._learn(key, 2 * self._timeout / events)

    def _learn(self, key: Hashable, seconds: float) -> None:
        self._latest = _mix(self._latest if self._measured else 0.0, seconds)
        self._measured = True
        if key not in self._by_key and len(self._by_key) >= _KEPT:
            del self._by_key[next(iter(self._by_key))]
        self._by_key[key] = _mix(self._by_key.get(key, 0.0), seconds)


def _mix(before: float, now: float) -> float:
    return max(now, (before + now) / 2)
