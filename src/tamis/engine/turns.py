"""Whose turn it is: an engine serves one thread at a time, and not the operators that it calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from tamis.errors import OperatorError


class Turns:
    """A lock that a thread may take several times, save while it calls operators.

    An operator is called in the middle of a match. If it came back to the engine by the same
    thread, to unsubscribe somebody say, it would pull away what the match goes on with. What other
    threads ask for, those that operators run in included, waits until the match is done.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._calling = False  # only whoever has the lock looks

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._calling:
            self._lock.release()
            raise OperatorError(
                "an operator may not use the engine that calls it; do it when the match is done"
            )

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """For whoever has the lock: operators are called within."""
        self._calling = True
        try:
            yield
        finally:
            self._calling = False
