"""The lock of an engine: many threads match, or one does anything else; and never its operators."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from threading import Lock, RLock, local
from typing import Any, NoReturn
from weakref import WeakSet

from tamis.errors import EngineError, OperatorError

ALONE, CHANGED, OPEN, CLOSING = range(4)
_SEATS = 16  # threads that match at once; further ones share a seat


class EngineLock:
    """A re-entrant lock for one thread, and seats for those that only match.

        with lock.mutex:                        with lock.here.seat.turn:
            if lock.state >= OPEN:                  if lock.state == OPEN:
                lock.close()                            ... match ...
            ... change ...

    A thread that matches takes its own seat, which no other thread wants as long as there are seats
    enough. Then it looks at the state. Whoever wants to be alone takes the mutex, sets the state,
    and waits until each seat was free once. Either the one sees the new state, or the other waits
    for the seat. So a change waits for the matches that have begun, and for no others. It costs a
    match no more than the mutex would.

    `OPEN`: seats may be used. `CLOSING`: somebody waits for the last of them. `CHANGED`: seats are
    not in use until a thread that wants to match opens them (`opening`). `ALONE`: the same, and
    this engine may not be matched by several threads, until something changes.

    An interrupt in the middle leaves a state that only costs the next thread some time.

    All locks are plain ones of `threading`. A Ctrl-C can arrive between any two steps of Python
    code, for example between taking a lock and entering its block, but not inside these.

    The engine calls operators in the middle of a match. An operator that used the engine in the
    same thread, for example to unsubscribe somebody, would change the state under the match. Other
    threads, including those that operators run in, wait until the match is done.

    A process may be forked while another thread uses the engine. That thread does not exist in the
    child: it neither finishes its work nor releases the lock. In the child, `mutex` then raises.
    """

    def __init__(self) -> None:
        self._lock: Any = RLock()  # typeshed does not know that it knows its owner
        self._mutex: AbstractContextManager[object] = self._lock
        self.in_operators = Lock()  # only the holder of `mutex` takes it or looks at it
        self.state = CHANGED
        self.kept: object = None  # what all answers have in common while seats are open
        seats = _Seats()
        self.seats, self.here = seats.every, _Here(seats)
        _LOCKS.add(self)

    @property
    def mutex(self) -> AbstractContextManager[object]:
        """The lock for one thread."""
        if self.state >= OPEN and self.here.seat.is_mine():
            return _InsideMatch(self._lock)
        return self._mutex

    @property
    def is_mine(self) -> bool:
        """Whether this thread has the mutex or its seat."""
        return bool(self._lock._is_owned()) or self.here.seat.is_mine()

    def close(self) -> None:
        """Wait until nobody matches any more, and keep others from it; the mutex is taken."""
        self.state = CLOSING
        self.kept = None
        for seat in self.seats:
            with seat.turn:
                pass
        if not self.here.seat.is_mine():  # else this thread is in the middle of a match
            self.state = CHANGED

    def opening(self, in_common: Callable[[], object]) -> bool:
        """Open the seats after a change, if the engine allows that. Returns whether they are open.

        Waits for whoever is alone. `in_common` makes what is kept while seats are open, or gives
        None if they may not be.
        """
        if self.is_mine:
            return False
        with self.mutex:
            if self.state == CHANGED:
                self.kept = in_common()
                self.state = ALONE if self.kept is None else OPEN
            return self.state == OPEN

    def changed(self) -> None:
        """Ask again whether the engine may be shared; the mutex is taken."""
        if self.state == ALONE:
            self.state = CHANGED

    def refuse_operators(self) -> None:
        """Raise if the holder of the mutex is inside a call of operators."""
        if self.in_operators.locked():
            raise OperatorError(
                "an operator must not use the engine that calls it; wait until the match is done"
            )

    def after_fork(self) -> None:
        """In a child process: raise, rather than wait for a thread of the parent."""
        for lock in (self._lock, *(seat.turn for seat in self.seats)):
            if lock.acquire(blocking=False):  # free, or this thread's own
                lock.release()
            else:
                self._mutex, self.state = _HeldInParent(), ALONE


class Seat:
    """A place for one thread at a time, and what it matches with."""

    def __init__(self) -> None:
        self.turn: Any = RLock()
        self.tools: Any = None

    def is_mine(self) -> bool:
        """Whether this thread is in the middle of a match."""
        return bool(self.turn._is_owned())


class _Seats:
    """All seats, and those that no living thread has. Each step is one call of a list."""

    def __init__(self) -> None:
        self.every: list[Seat] = []
        self.free: list[Seat] = []
        self._next = count()

    def take(self) -> tuple[Seat, _Owner | None]:
        """A seat. It is free again when its owner is gone; one that is shared has none."""
        try:
            seat = self.free.pop()
        except IndexError:
            if len(self.every) >= _SEATS:
                return self.every[next(self._next) % _SEATS], None
            seat = Seat()
            self.every.append(seat)
        return seat, _Owner(seat, self.free)


class _Owner:
    """Lives as long as the thread that it belongs to."""

    def __init__(self, seat: Seat, free: list[Seat]) -> None:
        self._seat, self._free = seat, free

    def __del__(self) -> None:
        self._free.append(self._seat)


class _Here(local):
    """The seat of each thread."""

    def __init__(self, seats: _Seats) -> None:
        self.seat, self._owner = seats.take()


class _InsideMatch(AbstractContextManager[None]):
    """The mutex for a thread that is in the middle of a match.

    A finalizer or a handler of a signal may bring it here. It must not wait: the other thread may
    be waiting for this match.
    """

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise EngineError(
                "another thread is about to change the engine, and waits for the match that this "
                "thread is in the middle of; use the engine when the match is done"
            )

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


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
