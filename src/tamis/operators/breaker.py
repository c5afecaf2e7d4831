"""A circuit breaker: what fails again and again is not called for a while."""

from __future__ import annotations

from collections import deque

from tamis.errors import counted
from tamis.model.operator import Fault


class CircuitBreaker:
    """Opens after several faults in a row, or among the last calls; after a pause one call may try.

    Faults in a row reveal an operator that is down, after few calls. They miss an overloaded
    service of which every second call hangs, and which would delay every second event by its
    timeout: hence the second rule, half of the last calls. These are four times as many calls as
    have to fail in a row, so that a few bad events close together do not open the breaker.

    Each pause is twice as long as the last one, up to `longest`; an answer resets it. While one
    call tries, others are refused, as if the pause had begun again. So a try whose caller was
    interrupted, and which never reports its outcome, blocks the operator for one pause only.
    """

    def __init__(self, faults: int, pause: float, longest: float) -> None:
        self._limit, self._first, self._longest = faults, pause, longest
        self._pause = pause
        self._in_a_row = 0
        self._share = 2 * faults
        # Whether each of the last calls failed.
        self._window: deque[bool] = deque(maxlen=2 * self._share)
        self._among = 0  # faults in the window
        self._until: float | None = None
        self.round = 0  # how often it has opened
        self._why = self._last = ""

    def pause_left(self, now: float) -> float | None:
        """Seconds until a call may try; None if the operator may be called."""
        if self._until is None or now >= self._until:
            return None
        return self._until - now

    def enter(self, now: float) -> int | Fault:
        """May the operator be called now? If so, a number under which to report a failure."""
        if self._until is None:
            return self.round
        left = self.pause_left(now)
        if left is None:
            self._until = now + self._pause
            return self.round
        return Fault(
            f"set aside for another {left:.3g} s after {self._why}, the last: {self._last}",
            "set aside",
        )

    def answered(self, times: int = 1) -> None:
        """So many calls were answered."""
        self._in_a_row, self._until, self._pause = 0, None, self._first
        for _ in range(min(times, 2 * self._share)):
            self._note(False)

    @property
    def spotless(self) -> bool:
        """Whether it is closed, and none of the last calls failed."""
        return self._until is None and not self._among

    def failed(self, entered: int, reason: str, now: float, *, at_once: str = "") -> None:
        """A call failed. One that began before the pause does not extend it.

        With `at_once`, which says why, it opens after one failure.
        """
        if entered != self.round:
            return
        self._in_a_row += 1
        self._note(True)
        self._last = reason
        row = self._in_a_row >= self._limit
        share = self._among >= self._share
        if self._until is None and not (row or share or at_once):
            return
        if at_once:
            self._why = at_once
        elif row:
            self._why = f"{counted(self._in_a_row, 'fault')} in a row"
        elif share:
            self._why = f"{counted(self._among, 'fault')} in {counted(len(self._window), 'call')}"
        self._until = now + self._pause
        self._pause = min(2 * self._pause, self._longest)
        self.round += 1
        self._window.clear()
        self._among = 0

    def _note(self, failed: bool) -> None:
        if len(self._window) == self._window.maxlen:
            self._among -= self._window.popleft()
        self._window.append(failed)
        self._among += failed
