"""What went wrong, counted; and operators that go wrong again and again, set aside for a while."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tamis.model.operator import Fault, Rows


class LateError(Exception):
    """No answer within the time."""


class StartingError(LateError):
    """Nothing to call was there early enough; it will be, for a later call."""


class LostError(Exception):
    """No answer will come, for a reason that the function could not tell."""


class NotStartedError(LostError):
    """The function was not even reached, whatever the event."""


class StuckError(NotStartedError):
    """It was not reached within a time that is long: to try soon again would cost that again."""


@dataclass
class Count:
    """What became of the calls of one operator.

    `events` were asked about in `calls` of the function, which took `seconds`. Each event was
    answered, or is counted once under what kept it from being answered.
    """

    operator: str
    events: int = 0
    calls: int = 0
    seconds: float = 0.0
    raised: int = 0
    refused: int = 0
    timeouts: int = 0
    nonsense: int = 0
    set_aside: int = 0
    set_aside_for: float | None = None  # seconds; inf: until a call comes back; None: it is asked
    last: str | None = None  # the last reason

    @property
    def faults(self) -> int:
        """Events without an answer."""
        return self.raised + self.refused + self.timeouts + self.nonsense + self.set_aside

    @property
    def answered(self) -> int:
        """Events with an answer."""
        return self.events - self.faults

    def enter(self, answers: Sequence[Rows | Fault]) -> None:
        """Count the answers for some events."""
        self.events += len(answers)
        for answer in answers:
            if isinstance(answer, Fault):
                kind = _COLUMN[answer.kind]
                setattr(self, kind, getattr(self, kind) + 1)
                if answer.kind != "set aside":
                    self.last = answer.reason

    def __str__(self) -> str:
        parts = [f"{self.operator}: {self.events} events, {self.calls} calls, {self.seconds:.3g} s"]
        parts += [
            f"{getattr(self, column)} {kind}"
            for kind, column in _COLUMN.items()
            if getattr(self, column)
        ]
        text = ", ".join(parts)
        if self.set_aside_for == math.inf:
            text += "; set aside until a call that hangs comes back"
        elif self.set_aside_for is not None:
            text += f"; set aside for another {self.set_aside_for:.3g} s"
        return text + (f"; the last fault: {self.last}" if self.last else "")


_COLUMN = {
    "raised": "raised",
    "refused": "refused",
    "timeout": "timeouts",
    "nonsense": "nonsense",
    "set aside": "set_aside",
}


@dataclass(frozen=True)
class Report:
    """The counts of all operators that were called, by name.

    `given_up`: how often the bindings that operators gave were too many to be joined, so that a
    clause did not hold for that reason.
    """

    counts: tuple[Count, ...]
    given_up: int = 0

    @classmethod
    def of(cls, counts: Iterable[Count]) -> Report:
        """A copy that no longer changes."""
        return cls(tuple(sorted((replace(each) for each in counts), key=lambda c: c.operator)))

    def __getitem__(self, operator: str) -> Count:
        for each in self.counts:
            if each.operator == operator:
                return each
        return Count(operator)

    def __iter__(self) -> Iterator[Count]:
        return iter(self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def faults(self) -> int:
        """Events without an answer, over all operators."""
        return sum(each.faults for each in self.counts)

    def __str__(self) -> str:
        lines = [str(each) for each in self.counts]
        if self.given_up:
            lines.append(f"joins of too many rows, given up: {self.given_up}")
        return "\n".join(lines) or "no operator was called"


class Breaker:
    """Says no for a while after several faults in a row, or among its last calls; then one may try.

    In a row finds an operator that is down, after few calls. One that answers every now and then,
    such as a service under load of which every second call hangs, would never be found so, and
    delay every second event by its timeout for ever: hence the share, half of the last calls. It is
    looked for among four times as many calls as have to fail in a row, so that a few bad events
    close to each other do not set aside an operator that works.

    Each pause is twice as long as the one before, up to `longest`; an answer ends that. While one
    call tries, the others hear no, as if the pause had begun anew: a call that never tells how it
    ended, since its caller was interrupted, blocks the way for one pause and not for ever.
    """

    def __init__(self, faults: int, pause: float, longest: float) -> None:
        self._limit, self._first, self._longest = faults, pause, longest
        self._pause = pause
        self._in_a_row = 0
        self._share = 2 * faults
        self._window: deque[bool] = deque(maxlen=2 * self._share)  # which of the last calls failed
        self._among = 0  # how many of these
        self._until: float | None = None
        self._round = 0  # how often it was set aside
        self._why = self._last = ""

    def left(self, now: float) -> float | None:
        """Seconds for which it says no; None where it says yes."""
        if self._until is None or now >= self._until:
            return None
        return self._until - now

    def enter(self, now: float) -> int | Fault:
        """May the operator be asked now? If so, a number to tell how it ended under."""
        if self._until is None:
            return self._round
        left = self.left(now)
        if left is None:
            self._until = now + self._pause
            return self._round
        return Fault(
            f"set aside for another {left:.3g} s after {self._why}, the last: {self._last}",
            "set aside",
        )

    def answered(self) -> None:
        """A call went well."""
        self._in_a_row, self._until, self._pause = 0, None, self._first
        self._note(False)

    def failed(self, entered: int, reason: str, now: float, *, at_once: bool = False) -> None:
        """A call did not. One that began before the pause does not make the pause longer.

        `at_once` where it took so long to find out that nobody should do so again soon.
        """
        if entered != self._round:
            return
        self._in_a_row += 1
        self._note(True)
        self._last = reason
        row = self._in_a_row >= self._limit
        share = self._among >= self._share
        if self._until is None and not (row or share or at_once):
            return
        if row or (at_once and self._until is None):
            self._why = f"{self._in_a_row} fault{'s' * (self._in_a_row > 1)} in a row"
        elif share:
            self._why = f"{self._among} faults in {len(self._window)} calls"
        self._until = now + self._pause
        self._pause = min(2 * self._pause, self._longest)
        self._round += 1
        self._window.clear()
        self._among = 0

    def _note(self, failed: bool) -> None:
        if len(self._window) == self._window.maxlen:
            self._among -= self._window.popleft()
        self._window.append(failed)
        self._among += failed
