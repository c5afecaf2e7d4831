"""The lock of an engine: one thread at a time, and never the operators that it calls."""

from __future__ import annotations

from threading import Lock, RLock

from tamis.errors import OperatorError


class EngineLock:
    """A re-entrant lock that refuses operators which call back into the engine.

        with lock.mutex:
            lock.refuse_operators()
            ...
            with lock.in_operators:
                ...

    The engine calls operators in the middle of a match. An operator that used the engine in the
    same thread, for example to unsubscribe somebody, would change the state under the match. Other
    threads, including those that operators run in, wait until the match is done.

    Both are plain locks of `threading`. A Ctrl-C can arrive between any two steps of Python code,
    for example between taking a lock and entering its block, but not inside these.
    """

    def __init__(self) -> None:
        self.mutex = RLock()
        self.in_operators = Lock()  # only the holder of `mutex` takes it or looks at it

    def refuse_operators(self) -> None:
        """Raise if the holder of the mutex is inside a call of operators."""
        if self.in_operators.locked():
            raise OperatorError(
                "an operator must not use the engine that calls it; wait until the match is done"
            )
