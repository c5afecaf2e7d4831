"""Which constants of an operator may be called: faults count against the constants that had them.

`far(XXX, ?d)` fails for every event, since there is no such place; `far(SFO, ?d)` works. So each
choice of constants has a circuit breaker of its own. An operator that is down fails for all of
them, and to learn this from each one anew would take a timeout each. Two rules recognise it:

- Constants whose last call was answered are trusted. When several trusted ones fail, and none is
  answered in between, the operator is down: nothing is called during a pause.
- Untrusted constants prove nothing against trusted ones, only against each other. When several have
  failed, and none was answered in between, each is set aside after its first fault; and when these
  faults have taken more than a second, all untrusted ones wait.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from tamis.model.operator import Fault
from tamis.operators.breaker import CircuitBreaker

_PATIENCE = 1.0  # seconds lost on untrusted constants, until all of them wait
_KEPT = 100_000  # constants that are remembered; the oldest is dropped


class Entered(NamedTuple):
    """A call that may be made: the numbers under which to report a failure to each breaker."""

    whole: int
    mine: int


class OperatorBreaker:
    """The circuit breakers of one operator. Constants are given by their key."""

    def __init__(self, faults: int, pause: float, longest: float) -> None:
        self._limit, self._pause, self._longest = faults, pause, longest
        self._whole = CircuitBreaker(faults, pause, longest)
        # A pause that does not grow: constants that were never tried get their turn.
        self._untrusted = CircuitBreaker(faults, pause, pause)
        self._mine: dict[Hashable, CircuitBreaker] = {}  # of constants with recent faults
        self._trusted: dict[Hashable, None] = {}
        self._failed: set[Hashable] = set()  # since the last answer
        self._betrayed: set[Hashable] = set()  # of these, those that were trusted
        self._lost, self._lost_since = 0.0, 0.0  # seconds, on untrusted constants

    def trusts(self, key: Hashable) -> bool:
        """Whether the last call with these constants was answered."""
        return key in self._trusted

    def pause_left(self, now: float, key: Hashable = ()) -> float | None:
        """Seconds until a call with these constants may try; None if it may now."""
        breakers = [self._whole]
        if key in self._mine:
            breakers.append(self._mine[key])
        if key not in self._trusted:
            breakers.append(self._untrusted)
        pauses = (each.pause_left(now) for each in breakers)
        return max((each for each in pauses if each is not None), default=None)

    def pauses(self, now: float) -> dict[Hashable, float]:
        """The constants that are set aside by their own faults, each with the seconds left."""
        left = {key: each.pause_left(now) for key, each in self._mine.items()}
        return {key: each for key, each in left.items() if each is not None}

    def enter(self, key: Hashable, now: float) -> Entered | Fault:
        """May the operator be called with these constants now?"""
        mine = self._mine.get(key)
        if mine is not None and mine.pause_left(now) is not None:
            fault = mine.enter(now)
            assert isinstance(fault, Fault)
            return fault
        whole = self._whole.enter(now)
        if isinstance(whole, Fault):
            return whole
        if key not in self._trusted:
            waits = self._untrusted.enter(now)
            if isinstance(waits, Fault):
                return waits
        entered = 0 if mine is None else mine.enter(now)
        assert isinstance(entered, int)
        return Entered(whole, entered)

    def unasked(self, key: Hashable) -> Entered:
        """What `enter` would return, for a call together with other constants."""
        mine = self._mine.get(key)
        return Entered(self._whole.round, 0 if mine is None else mine.round)

    def answered(self, key: Hashable, times: int = 1) -> None:
        """So many calls with these constants were answered."""
        self._whole.answered()
        self._untrusted.answered()
        self._failed.clear()
        self._betrayed.clear()
        self._lost = 0.0
        if key not in self._trusted:
            _limit(self._trusted)
            self._trusted[key] = None
        mine = self._mine.get(key)
        if mine is not None:
            mine.answered(times)
            if mine.spotless:
                del self._mine[key]

    def failed(
        self, key: Hashable, entered: Entered, reason: str, now: float, seconds: float
    ) -> None:
        """A call failed, after some seconds."""
        mine = self._mine.get(key)
        if mine is None:
            _limit(self._mine)
            mine = self._mine[key] = CircuitBreaker(self._limit, self._pause, self._longest)
        self._failed.add(key)
        if key in self._trusted:
            del self._trusted[key]
            self._betrayed.add(key)
        elif key not in self._betrayed:
            self._lose(reason, now, seconds)
        several = max(2, self._limit)
        many = len(self._failed) >= several
        if len(self._betrayed) >= several:
            self.failed_altogether(
                entered, f"{len(self._betrayed)} calls that used to be answered", reason, now
            )
        elif not self._whole.spotless:  # it was the one call that tries
            self._whole.failed(entered.whole, reason, now)
        mine.failed(entered.mine, reason, now, at_once=_several(self._failed) if many else "")

    def failed_altogether(self, entered: Entered, why: str, reason: str, now: float) -> None:
        """A call failed for a reason that has nothing to do with its constants."""
        self._whole.failed(entered.whole, reason, now, at_once=why)

    def _lose(self, reason: str, now: float, seconds: float) -> None:
        if now - self._lost_since > self._pause:
            self._lost, self._lost_since = 0.0, now
        self._lost += seconds
        if self._lost > _PATIENCE and len(self._failed) >= max(2, self._limit):
            entered = self._untrusted.enter(now)
            if not isinstance(entered, Fault):
                self._untrusted.failed(entered, reason, now, at_once=_several(self._failed))


def _several(failed: set[Hashable]) -> str:
    return f"faults with {len(failed)} different constants"


def _limit(kept: dict[Hashable, Any]) -> None:
    if len(kept) >= _KEPT:
        del kept[next(iter(kept))]
