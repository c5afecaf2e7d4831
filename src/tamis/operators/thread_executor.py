"""Calls in another thread, so that the caller can stop waiting.

Python cannot stop a thread from outside. A call that misses its timeout is abandoned, and the next
call gets another thread. An operator with too many abandoned calls is not called until one comes
back. A function that may hang for good belongs in a worker process, which can be killed.

The threads are daemons, not those of `concurrent.futures`: the interpreter waits for the latter at
exit, and a call that hangs would keep the program alive. But a daemon that returns from a C++
library to a finished interpreter aborts the process (RE2 and OpenCV do: "terminate called without
an active exception"). So at exit the interpreter waits for running calls, up to `EXIT_WAIT`
seconds, and a long-running function can check `is_abandoned`.
"""

from __future__ import annotations

import atexit
import os
import weakref
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Lock, Thread, current_thread
from threading import enumerate as enumerate_threads
from time import monotonic, sleep
from typing import Any

from tamis.errors import counted
from tamis.model.operator import Fault
from tamis.operators.executor import Events, Executor, LateError, NotStartedError
from tamis.operators.operator import Operator
from tamis.operators.results import Answers, answers, raised

EXIT_WAIT = 5.0  # seconds that the exit waits for running calls
_TRUSTED_MORE = 4  # times as many calls may hang before constants that were answered wait too


@dataclass
class _ThreadCall:
    """One call and its result."""

    operator: Operator
    events: Events
    handed: dict[str, Any]
    done: Lock = field(default_factory=Lock)  # held until the result is there
    result: Answers | Fault | None = None
    abandoned: bool = False  # the caller no longer waits


def is_abandoned() -> bool:
    """For a function in a thread: whether its caller has stopped waiting."""
    here = current_thread()
    return isinstance(here, _PoolThread) and (
        _EXITING.is_set() or (here.active is not None and here.active.abandoned)
    )


class ThreadExecutor(Executor):
    """The threads of one operator: as many as there are concurrent calls, kept for later ones."""

    def __init__(self, most_abandoned: int) -> None:
        self._pool = _ThreadPool()
        self._most_abandoned = most_abandoned
        # Idle threads hold no reference to this executor, so it is collected with its operator.
        weakref.finalize(self, self._pool.close).atexit = False

    def blocked(self, trusted: bool) -> str | None:
        """Too many calls were abandoned and have not come back."""
        abandoned = self._pool.abandoned
        most = self._most_abandoned * (_TRUSTED_MORE if trusted else 1)
        return counted(abandoned, "call hangs", "calls hang") if abandoned >= most else None

    def call(
        self, operator: Operator, events: Events, handed: dict[str, Any], timeout: float
    ) -> Answers | Fault:
        """The answers for the events; `LateError` after `timeout` seconds."""
        call = _ThreadCall(operator, events, handed)
        call.done.acquire()
        self._pool.submit(call)
        try:
            call.done.acquire(timeout=timeout)
        finally:
            # Also after an interrupt from the keyboard.
            self._pool.abandon(call)
        if call.result is None:
            raise LateError
        return call.result

    def close(self) -> None:
        """End the idle threads. Busy ones end with their call."""
        self._pool.close()


class _ThreadPool:
    """The idle threads; all threads share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner = os.getpid()
        self._idle: list[_PoolThread] = []
        self._closed = 0  # how often; a thread that began before ends with its call
        self.abandoned = 0  # calls that have not come back

    def submit(self, call: _ThreadCall) -> None:
        """Give a call to an idle thread, or to a new one."""
        with self._lock:
            thread = self._idle.pop() if self._idle else None
            begun = self._closed
        if thread is None:
            thread = _PoolThread(self, begun)
            try:
                thread.start()
            except RuntimeError as error:
                raise NotStartedError(f"no thread can be started: {error}") from None
        thread.idle = False
        thread.inbox.put(call)

    def abandon(self, call: _ThreadCall) -> None:
        """The caller no longer waits: either the result is there, or the call is abandoned."""
        with self._lock:
            if call.result is None:
                call.abandoned = True
                self.abandoned += 1

    def finish(self, call: _ThreadCall, result: Answers | Fault, thread: _PoolThread) -> bool:
        """A thread has a result. Returns whether the thread should wait for the next call."""
        with self._lock:
            if call.abandoned:
                self.abandoned -= 1
            else:
                call.result = result
            stays = thread.begun == self._closed and not call.abandoned
            if stays:
                self._idle.append(thread)
                thread.idle = True
        call.done.release()
        return stays

    def close(self) -> None:
        """End the idle threads. A fork has none of them, and may find their lock held forever."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed += 1
            idle, self._idle = self._idle, []
        for thread in idle:
            thread.inbox.put(None)


class _PoolThread(Thread):
    """A thread and its calls."""

    def __init__(self, pool: _ThreadPool, begun: int) -> None:
        super().__init__(name="tamis operator", daemon=True)
        self.pool, self.begun = pool, begun
        self.inbox: SimpleQueue[_ThreadCall | None] = SimpleQueue()
        self.active: _ThreadCall | None = None
        self.idle = True  # it holds nothing that an exit could harm

    def run(self) -> None:
        """Make one call after the other, until the pool no longer needs this thread."""
        stays = True
        while stays and (call := self.inbox.get()) is not None:
            self.active = call
            try:
                result = answers(call.operator, call.events, call.handed)
            except KeyboardInterrupt as error:  # raised by the function, not by the keyboard
                result = raised(error)
            self.active = None
            stays = self.pool.finish(call, result, self)
            del call, result  # do not hold an image until the next call


_EXITING = Event()  # the interpreter is at its exit


def _wait_at_exit() -> None:
    """Give running calls some time to come back, and their threads to end."""
    _EXITING.set()
    deadline = monotonic() + EXIT_WAIT
    threads = [each for each in enumerate_threads() if isinstance(each, _PoolThread)]
    while monotonic() < deadline and any(each.is_alive() and not each.idle for each in threads):
        sleep(0.005)


atexit.register(_wait_at_exit)
