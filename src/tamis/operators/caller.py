"""What a runner keeps for one operator: its executor, its circuit breakers and its batch size."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

from tamis.model.operator import Fault
from tamis.operators.batch_size import BatchSizer
from tamis.operators.executor import (
    Events,
    Executor,
    LateError,
    LostError,
    NotStartedError,
    StartingError,
    StuckError,
)
from tamis.operators.operator import Operator
from tamis.operators.operator_breaker import Entered, OperatorBreaker
from tamis.operators.results import Answers


class FailedCall(NamedTuple):
    """A call without any answer."""

    fault: Fault
    divisible: bool = False  # a call for fewer events may succeed
    hung: bool = False
    stuck: bool = False  # it hung at the start
    reached: bool = True  # the function was called

    @classmethod
    def lost(cls, error: LostError) -> FailedCall:
        """No answer will come."""
        stuck = isinstance(error, StuckError)
        reached = not isinstance(error, NotStartedError)
        return cls(Fault(f"raised: {error}", "raised"), reached, stuck, stuck, reached)


class OperatorCaller:
    """Calls one operator, and turns every failure into a value."""

    def __init__(self, breaker: OperatorBreaker, executor: Executor, sizer: BatchSizer) -> None:
        self.breaker, self.executor, self._sizer = breaker, executor, sizer
        self.close, self.batch_size = executor.close, sizer.size

    def enter(self, key: Hashable, now: float) -> Entered | Fault:
        """May the operator be called with these constants now?"""
        blocked = self.executor.blocked(self.breaker.trusts(key))
        if blocked is not None:
            return Fault(f"set aside until a call comes back: {blocked}", "set aside")
        return self.breaker.enter(key, now)

    def refusal(self, key: Hashable, now: float) -> Fault | None:
        """Why a call with these constants would be refused; None if it may be made."""
        if self.pause_left(now, key) is None:
            return None
        refused = self.enter(key, now)
        return refused if isinstance(refused, Fault) else None

    def pause_left(self, now: float, key: Hashable = ()) -> float | None:
        """For how many seconds the operator may not be called; None if it may."""
        blocked = self.executor.blocked(self.breaker.trusts(key))
        return self.breaker.pause_left(now, key) if blocked is None else math.inf

    def learn(self, key: Hashable, events: int, came: Answers | FailedCall, seconds: float) -> None:
        """Learn how long a call took. One that raised says nothing: it may have ended early."""
        if isinstance(came, list):
            self._sizer.answered(key, events, seconds)
        elif came.hung and came.reached:
            self._sizer.hung(key, events)

    def start(self, operator: Operator) -> FailedCall | None:
        """Make sure that a call can begin at once; returns why it cannot."""
        try:
            self.executor.start(operator)
        except NotStartedError as error:
            return FailedCall.lost(error)
        return None

    def call(
        self, operator: Operator, events: Events, handed: dict[str, Any], timeout: float
    ) -> Answers | FailedCall:
        """One answer for each event, or the failure of the whole call."""
        try:
            given = self.executor.call(operator, events, handed, timeout)
        except LateError as error:
            late = f"timeout: no answer within {operator.timeout:g} s"
            starting = isinstance(error, StartingError)
            if starting:
                late += f", its worker process {error}"
            return FailedCall(Fault(late, "timeout"), hung=True, reached=not starting)
        except LostError as error:
            return FailedCall.lost(error)
        if isinstance(given, Fault):
            return FailedCall(given, divisible=given.kind in ("raised", "refused"))
        return given
