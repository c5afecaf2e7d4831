"""Whose turn it is: an engine serves one thread at a time, and not the operators that it calls."""

from __future__ import annotations

from threading import Lock, RLock

from tamis.errors import OperatorError


class EngineLock:
    """A lock that a thread may take several times, save while it calls operators.

        with lock.mutex:
            lock.refuse_operators()
            ...
            with lock.in_operators:
                ...

    An operator is called in the middle of a match. If it came back to the engine by the same
    thread, to unsubscribe somebody say, it would pull away what the match goes on with. What other
    threads ask for, those that operators run in included, waits until the match is done.

    Both are locks of Python itself, as a Ctrl-C may come between any two steps that are written in
    Python: between taking a lock and the block that gives it back, say. Between the steps of these
    it does not come.
    """

    def __init__(self) -> None:
        self.mutex = RLock()
        self.in_operators = Lock()  # only whoever has the turn takes it, or looks

    def refuse_operators(self) -> None:
        """Raise if whoever has the turn is calling operators, and this is one of them."""
        if self.in_operators.locked():
            raise OperatorError(
                "an operator may not use the engine that calls it; do it when the match is done"
            )
