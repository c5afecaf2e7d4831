"""Calls in worker processes: which worker to call, and how to replace one that is gone.

A start may take far longer than a call, and only the first start has its own time. A worker that is
gone is replaced at once, and the replacement starts in the background: otherwise a function that
hangs or dies would delay every event by a start.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Any

from tamis.model.operator import Fault
from tamis.operators.executor import (
    Events,
    Executor,
    LateError,
    LostError,
    NotStartedError,
    StartingError,
)
from tamis.operators.operator import Operator
from tamis.operators.results import Answers
from tamis.operators.worker_process import UnsentError, WorkerProcess


class ProcessExecutor(Executor):
    """The workers of one operator: as many as there are concurrent calls, kept for later ones.

    A worker that hangs is killed, so an executor of this kind is never blocked.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[WorkerProcess] = []  # workers that are starting come first, used last
        self._closed = 0  # how often
        self._troubled = False  # a worker was lost: later starts have no time of their own

    def start(self, operator: Operator) -> None:
        """Start a worker, unless one is idle."""
        self._give_back(*self._take(operator))

    def call(
        self, operator: Operator, events: Events, handed: dict[str, Any], timeout: float
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
            # A worker that cannot start is tried again on demand only: it may never start.
            if not isinstance(error, NotStartedError):
                self._replace(operator, taken)
            raise
        except BaseException:
            worker.kill()
            raise
        self._give_back(worker, taken)
        return found

    def _take(self, operator: Operator) -> tuple[WorkerProcess, int]:
        """An idle worker that is alive, or a new one; and a number to give it back under."""
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
                taken, troubled = self._closed, self._troubled
            if worker is None:
                break
            if worker.healthy:
                return worker, taken
            self._lose(worker)
        try:
            worker = WorkerProcess(operator)
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

    def _lose(self, worker: WorkerProcess | None = None) -> None:
        with self._lock:
            self._troubled = True
        if worker is not None:
            worker.kill()

    def _replace(self, operator: Operator, taken: int) -> None:
        """Start a worker for the next call."""
        # If it cannot start, the next call reports the reason.
        with suppress(NotStartedError):
            self._give_back(WorkerProcess(operator), taken)

    def _give_back(self, worker: WorkerProcess, taken: int) -> None:
        """Keep a worker for the next call, unless the executor was closed meanwhile."""
        with self._lock:
            kept = taken == self._closed
            if kept:
                self._idle.insert(len(self._idle) if worker.ready else 0, worker)
        if not kept:
            worker.kill()

    def close(self) -> None:
        """Kill the idle workers. Busy ones end with their call; a later call starts new ones."""
        with self._lock:
            self._closed += 1
            self._troubled = False
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()
