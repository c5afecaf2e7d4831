"""The lock of an engine: one thread at a time, and never the operators that it calls."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from threading import Lock, RLock
from typing import NoReturn
from weakref import WeakSet

from tamis.errors import EngineError, OperatorError


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

    A process may be forked while another thread uses the engine. That thread does not exist in the
    child: it neither finishes its work nor releases the lock. In the child, `mutex` then raises.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self.mutex: AbstractContextManager[object] = self._lock
        self.in_operators = Lock()  # only the holder of `mutex` takes it or looks at it
        _LOCKS.add(self)

    def refuse_operators(self) -> None:
        """Raise if the holder of the mutex is inside a call of operators."""
        if self.in_operators.locked():
            raise OperatorError(
                "an operator must not use the engine that calls it; wait until the match is done"
            )

    def after_fork(self) -> None:
        """In a child process: raise, rather than wait for a thread of the parent."""
        if self._lock.acquire(blocking=False):  # free, or this thread's own
            self._lock.release()
        else:
            self.mutex = _HeldInParent()


class _HeldInParent(AbstractContextManager[None]):
    """A lock whose holder is a thread of the parent process."""

    def __enter__(self) -> NoReturn:
        raise EngineError(
            "this process was forked while another thread used the engine, so the engine is in the "
            "middle of a call that never ends here; fork between calls, or create or open the "
            "engine in the child process"
        )

    def __exit__(self, *exception: object) -> None:
        """Never entered, never left."""


_LOCKS: WeakSet[EngineLock] = WeakSet()


def _after_fork() -> None:
    for lock in list(_LOCKS):
        lock.after_fork()


os.register_at_fork(after_in_child=_after_fork)
