"""Where the calls of one operator go: the interface of executors, and the simplest one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tamis.model.operator import Fault
from tamis.operators.operator import Operator
from tamis.operators.results import Answers, answers

Events = Sequence[tuple[Any, ...]]


class LateError(Exception):
    """No answer within the timeout."""


class StartingError(LateError):
    """The worker was still starting; a later call may use it."""


class LostError(Exception):
    """No answer will come, for a reason outside the function."""


class NotStartedError(LostError):
    """The function was never reached, whatever the event."""


class StuckError(NotStartedError):
    """The start took too long. A new attempt would cost the same time again."""


class Executor:
    """Calls one operator, in the calling thread: for operators that are fast and trusted."""

    def blocked(self, trusted: bool) -> str | None:
        """Why no call can be made now; None if it can. `trusted`: the last one was answered."""
        return None

    def start(self, operator: Operator) -> None:
        """Make sure that a call can begin at once; raises `NotStartedError`."""

    def call(
        self, operator: Operator, events: Events, handed: dict[str, Any], timeout: float
    ) -> Answers | Fault:
        """The answers for the events, or a fault of the call; raises `LateError` or `LostError`."""
        return answers(operator, events, handed)

    def close(self) -> None:
        """End idle threads and processes."""
