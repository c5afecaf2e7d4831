"""Calls in worker processes: which one is called, and what comes after one that is gone.

A start may take far longer than a call. The first one has time of its own. A worker that is gone is
replaced at once, and the replacement starts while nobody waits for it: a function that hangs, or
dies, would else delay every event by a start.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

from tamis.model.operator import Fault
from tamis.operators.faults import LateError, LostError, NotStartedError, StartingError
from tamis.operators.operator import Operator
from tamis.operators.results import Answers
from tamis.operators.worker_process import UnsentError, Worker


class Processes:
    """The workers of one operator: as many as there are calls at once, kept for the next ones."""

    blocked: str | None = None  # one that hangs is killed, so there are never too many

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[Worker] = []  # those that still start come first, and are taken last
        self._closed = 0  # how often
        self._troubled = False  # a worker was lost: the next ones have no time of their own

    @property
    def pids(self) -> list[int]:
        """Of the workers that wait for a call."""
        with self._lock:
            return [worker.pid for worker in self._idle]

    def start(self, operator: Operator) -> None:
        """Start a worker, unless one waits."""
        self._give_back(*self._take(operator))

    def call(
        self,
        operator: Operator,
        events: Sequence[tuple[Any, ...]],
        handed: dict[str, Any],
        timeout: float,
    ) -> Answers | Fault:
        """The answers for the events; `LateError` after `timeout` seconds.

        A worker that is late or lost, or whose caller is interrupted, is killed.
        """
        worker, taken = self._take(operator)
        try:
            found = worker.call(events, handed, timeout)
        except (UnsentError, StartingError):
            self._give_back(worker, taken)
            raise
        except (LateError, LostError) as error:
            self._lose(worker)
            # What does not start is tried again when somebody asks: it may never do so.
            if not isinstance(error, NotStartedError):
                self._replace(operator, taken)
            raise
        except BaseException:
            worker.kill()
            raise
        self._give_back(worker, taken)
        return found

    def _take(self, operator: Operator) -> tuple[Worker, int]:
        """One that waits and is well, or a new one; and a number to give it back under."""
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
                taken, troubled = self._closed, self._troubled
            if worker is None:
                break
            if worker.well:
                return worker, taken
            self._lose(worker)
        try:
            worker = Worker(operator)
        except NotStartedError:
            self._lose()
            raise
        if not troubled:
            try:
                worker.wait()
            except NotStartedError:
                self._lose(worker)
                raise
            except BaseException:
                worker.kill()
                raise
        return worker, taken

    def _lose(self, worker: Worker | None = None) -> None:
        with self._lock:
            self._troubled = True
        if worker is not None:
            worker.kill()

    def _replace(self, operator: Operator, taken: int) -> None:
        """Have a worker start for whoever calls next."""
        # Who calls next finds out why there is none.
        with suppress(NotStartedError):
            self._give_back(Worker(operator), taken)

    def _give_back(self, worker: Worker, taken: int) -> None:
        """Keep it for the next call, unless all were closed meanwhile."""
        with self._lock:
            kept = taken == self._closed
            if kept:
                self._idle.insert(len(self._idle) if worker.ready else 0, worker)
        if not kept:
            worker.kill()

    def close(self) -> None:
        """Kill those that wait, and begin anew. Those that work end with their call."""
        with self._lock:
            self._closed += 1
            self._troubled = False
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()

    def disown(self) -> None:
        """In a fork: `_forked` has told every worker, those in a call included."""
