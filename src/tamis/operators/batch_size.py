"""How many events one call of a function that takes batches may be for.

A call has one timeout, however many events it is for. Of texts that take a sixth of a second each,
twelve in one call would all be lost to a timeout of a second that any of them keeps alone. So a
call is for no more events than are expected to take half of the timeout: the other half is for
those that take longer than most.
"""

from __future__ import annotations

from collections.abc import Hashable

_SHARE = 0.5  # of the timeout, for what is expected
_KNOWN = 1024  # constants of which the pace is kept; the oldest is forgotten


class Pace:
    """Seconds an event of one operator, by the constants it is called with.

    One pattern may take a thousand times as long as another. Constants that have not been seen are
    taken to be as slow as the last ones, and before the first call what was declared is believed.
    A slower call counts at once, a quicker one by half: a call for too few events costs little, one
    for too many costs its events.
    """

    def __init__(self, seconds: float, timeout: float) -> None:
        self._timeout = timeout
        self._any, self._measured = seconds, False
        self._of: dict[Hashable, float] = {}

    def most(self, key: Hashable) -> int:
        """For how many events the next call may be."""
        seconds = self._of.get(key, self._any)
        return max(1, int(_SHARE * self._timeout / seconds)) if seconds > 0 else _ANY

    def took(self, key: Hashable, events: int, seconds: float) -> None:
        """A call came back."""
        self._enter(key, seconds / events)

    def hung(self, key: Hashable, events: int) -> None:
        """A call did not: nobody knows how long it would have taken, say twice as long."""
        self._enter(key, 2 * self._timeout / events)

    def _enter(self, key: Hashable, seconds: float) -> None:
        self._any = _mixed(self._any if self._measured else 0.0, seconds)
        self._measured = True
        if key not in self._of and len(self._of) >= _KNOWN:
            del self._of[next(iter(self._of))]
        self._of[key] = _mixed(self._of.get(key, 0.0), seconds)


_ANY = 1 << 30


def _mixed(before: float, now: float) -> float:
    return max(now, (before + now) / 2)
