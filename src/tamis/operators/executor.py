"""What a runner keeps for one operator: where its calls go, how it fares and how quick it is."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from tamis.model.operator import Fault
from tamis.operators.batch_size import Pace
from tamis.operators.faults import (
    Breaker,
    LateError,
    LostError,
    NotStartedError,
    StartingError,
    StuckError,
)
from tamis.operators.operator import Operator
from tamis.operators.results import Answers, answers

Events = Sequence[tuple[Any, ...]]


class Failed(NamedTuple):
    """A call without any answer."""

    fault: Fault
    divisible: bool = False  # fewer events may do better
    hung: bool = False
    stuck: bool = False  # already when it was started
    reached: bool = True  # the function was called at all

    @classmethod
    def lost(cls, error: LostError) -> Failed:
        """No answer will come."""
        stuck = isinstance(error, StuckError)
        reached = not isinstance(error, NotStartedError)
        return cls(Fault(f"raised: {error}", "raised"), reached, stuck, stuck, reached)


class Place(Protocol):
    """Where the calls of one operator go."""

    @property
    def blocked(self) -> str | None:
        """Why no call can be made now."""

    def start(self, operator: Operator) -> None:
        """See to it that a call can begin at once; raises `NotStartedError`."""

    def call(
        self, operator: Operator, events: Events, handed: dict[str, Any], timeout: float
    ) -> Answers | Fault:
        """The answers for the events, or a fault of the call; raises `LateError` or `LostError`."""

    def close(self) -> None:
        """End what waits."""

    def disown(self) -> None:
        """In a fork: leave alone what belongs to the parent."""


class Here:
    """In the calling thread, for operators that are quick and trusted."""

    blocked: str | None = None

    def start(self, operator: Operator) -> None:
        pass

    def call(
        self, operator: Operator, events: Events, handed: dict[str, Any], timeout: float
    ) -> Answers | Fault:
        return answers(operator, events, handed)

    def close(self) -> None:
        pass

    def disown(self) -> None:
        pass


class Lane:
    """What a runner keeps for one operator."""

    def __init__(self, breaker: Breaker, place: Place, pace: Pace) -> None:
        self.breaker, self._place, self._pace = breaker, place, pace
        self.close, self.disown, self.most = place.close, place.disown, pace.most

    def enter(self, now: float) -> int | Fault:
        """May the operator be asked now? If so, a number to tell the breaker how it ended under."""
        blocked = self._place.blocked
        if blocked is not None:
            return Fault(f"set aside until a call comes back: {blocked}", "set aside")
        return self.breaker.enter(now)

    def left(self, now: float) -> float | None:
        """For how many seconds it may not be asked; None where it may."""
        return math.inf if self._place.blocked is not None else self.breaker.left(now)

    def learn(self, key: Hashable, events: int, came: Answers | Failed, seconds: float) -> None:
        """How long a call for so many events took. One that raised may have done so early."""
        if isinstance(came, list):
            self._pace.took(key, events, seconds)
        elif came.hung and came.reached:
            self._pace.hung(key, events)

    def start(self, operator: Operator) -> Failed | None:
        """See to it that a call can begin at once; why not, if it cannot."""
        try:
            self._place.start(operator)
        except NotStartedError as error:
            return Failed.lost(error)
        return None

    def call(
        self, operator: Operator, events: Events, handed: dict[str, Any], timeout: float
    ) -> Answers | Failed:
        """One answer for each event, or why there is none, whatever happens."""
        try:
            given = self._place.call(operator, events, handed, timeout)
        except LateError as error:
            late = f"timeout: no answer within {operator.timeout:g} s"
            starting = isinstance(error, StartingError)
            if starting:
                late += f", its worker process {error}"
            return Failed(Fault(late, "timeout"), hung=True, reached=not starting)
        except LostError as error:
            return Failed.lost(error)
        if isinstance(given, Fault):
            return Failed(given, divisible=given.kind in ("raised", "refused"))
        return given
