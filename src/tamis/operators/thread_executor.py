"""Calls in another thread, so that the caller can stop waiting.

Nothing can stop a thread of Python from outside. One that does not come back in time is left to
itself, and the next call gets another; so that these do not pile up, an operator with too many of
them is not called until one comes back. A function that hangs for good is better off in a worker
process, which can be killed.

The threads are daemons, and not those of `concurrent.futures`, which the interpreter waits for when
it ends: one that hangs would keep the program from ending. But a thread that comes back from a
library in C++ to an interpreter that is gone takes the process down with it (RE2 and OpenCV do:
"terminate called without an active exception"). So an interpreter that ends waits for calls that
still run, up to `PATIENCE` seconds; and a function that goes on for long may ask `left_alone`.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Lock, Thread, current_thread
from threading import enumerate as enumerate_threads
from time import monotonic, sleep
from typing import Any

from tamis.model.operator import Fault
from tamis.operators.faults import LateError, NotStartedError
from tamis.operators.operator import Operator
from tamis.operators.results import Answers, answers, raised

PATIENCE = 5.0  # seconds that the end of the program is put off for calls that still run


@dataclass
class _Job:
    """One call: what to do, and what came of it."""

    operator: Operator
    events: Sequence[tuple[Any, ...]]
    handed: dict[str, Any]
    done: Lock = field(default_factory=Lock)  # held until there is a result
    result: Answers | Fault | None = None
    left: bool = False  # nobody waits any more


def left_alone() -> bool:
    """For a function in a thread: does nobody wait for its answer any more?"""
    here = current_thread()
    return isinstance(here, _Hand) and (
        _ENDING.is_set() or (here.job is not None and here.job.left)
    )


class Threads:
    """The threads of one operator: as many as there are calls at once, kept for the next ones."""

    def __init__(self, most_left: int) -> None:
        self._crew = _Crew()
        self._most_left = most_left
        # Threads that wait for work hold no reference to this, so it goes away with its operator.
        self._end = weakref.finalize(self, self._crew.close)
        self._end.atexit = False

    @property
    def blocked(self) -> str | None:
        """Why no more calls are made: too many threads have not come back."""
        left = self._crew.left
        return f"{left} calls of it hang" if left >= self._most_left else None

    def start(self, operator: Operator) -> None:
        """A thread is there at once."""

    def call(
        self,
        operator: Operator,
        events: Sequence[tuple[Any, ...]],
        handed: dict[str, Any],
        timeout: float,
    ) -> Answers | Fault:
        """The answers for the events; `LateError` after `timeout` seconds."""
        job = _Job(operator, events, handed)
        job.done.acquire()
        self._crew.hand(job)
        try:
            job.done.acquire(timeout=timeout)
        finally:
            # Also where an interrupt from the keyboard ended the waiting.
            self._crew.leave(job)
        if job.result is None:
            raise LateError
        return job.result

    def close(self) -> None:
        """Let the threads that wait go. Those that work go when they have come back."""
        self._crew.close()

    def disown(self) -> None:
        """In a fork there are none of these threads, and their lock may be held for ever."""
        self._end.detach()


class _Crew:
    """The threads that wait for work; shared by all of them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[_Hand] = []
        self._closed = 0  # how often; a thread that began before goes when it comes back
        self.left = 0  # threads that were left to themselves and have not come back

    def hand(self, job: _Job) -> None:
        """Give a job to a thread that waits, or to a new one."""
        with self._lock:
            hand = self._waiting.pop() if self._waiting else None
            begun = self._closed
        if hand is None:
            hand = _Hand(self, begun)
            try:
                hand.start()
            except RuntimeError as error:
                raise NotStartedError(f"no thread for it: {error}") from None
        hand.idle = False
        hand.inbox.put(job)

    def leave(self, job: _Job) -> None:
        """Nobody waits for this job any more; either its result is there or it never will be."""
        with self._lock:
            if job.result is None:
                job.left = True
                self.left += 1

    def enter(self, job: _Job, result: Answers | Fault, hand: _Hand) -> bool:
        """A thread has done a job. Says whether it should wait for the next one."""
        with self._lock:
            if job.left:
                self.left -= 1
            else:
                job.result = result
            stays = hand.begun == self._closed and not job.left
            if stays:
                self._waiting.append(hand)
                hand.idle = True
        job.done.release()
        return stays

    def close(self) -> None:
        """Let those that wait go."""
        with self._lock:
            self._closed += 1
            waiting, self._waiting = self._waiting, []
        for hand in waiting:
            hand.inbox.put(None)


class _Hand(Thread):
    """A thread, and what it has to do."""

    def __init__(self, crew: _Crew, begun: int) -> None:
        super().__init__(name="tamis operator", daemon=True)
        self.crew, self.begun = crew, begun
        self.inbox: SimpleQueue[_Job | None] = SimpleQueue()
        self.job: _Job | None = None
        self.idle = True  # it waits, and holds nothing that an end of the program could harm

    def run(self) -> None:
        """Do one job after the other, until it is not needed any more."""
        stays = True
        while stays and (job := self.inbox.get()) is not None:
            self.job = job
            try:
                result = answers(job.operator, job.events, job.handed)
            except KeyboardInterrupt as error:  # only the main thread hears the keyboard: raised
                result = raised(error)
            self.job = None
            stays = self.crew.enter(job, result, self)
            del job, result  # an image must not be held until the next one comes


_ENDING = Event()  # the interpreter ends


def _end() -> None:
    """Give the calls that still run a while to come back, and their threads to end."""
    _ENDING.set()
    deadline = monotonic() + PATIENCE
    hands = [each for each in enumerate_threads() if isinstance(each, _Hand)]
    while monotonic() < deadline and any(each.is_alive() and not each.idle for each in hands):
        sleep(0.005)


atexit.register(_end)
