"""Ctrl-C that takes effect between two steps.

Python raises KeyboardInterrupt wherever the program happens to be. That would leave a call into the
JVM half done.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_POLL = 0.1  # seconds; signals are noticed between two waits


class StoppedError(Exception):
    """The user asked to stop before a step or during it."""


class InterruptGuard:
    """Within its block, the first SIGINT or SIGTERM sets `requested`; the second interrupts."""

    def __init__(self) -> None:
        self._requested = Event()
        self._handlers: dict[int, Any] = {}
        self._steps: SimpleQueue[_GuardedStep] = SimpleQueue()
        self._worker: Thread | None = None

    def __enter__(self) -> InterruptGuard:
        for number in _SIGNALS:
            self._handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @property
    def requested(self) -> bool:
        """Whether the user asked to stop."""
        return self._requested.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for some seconds, or until the user asks to stop; gives whether that happened."""
        return self._requested.wait(seconds)

    def run(self, work: Callable[[], T], cancel: Callable[[], object] | None = None) -> T:
        """Run a long step in a thread, where signals do not interrupt it.

        When the user asks to stop, `cancel` is called once. The result of the step is returned all
        the same; the next step raises `StoppedError`. All steps run in one thread, because Spark
        ties the active session to the thread that made it.
        """
        if self.requested:
            raise StoppedError
        if self._worker is None:
            self._worker = Thread(target=self._work, name="steps", daemon=True)
            self._worker.start()
        step = _GuardedStep(work)
        self._steps.put(step)
        while not step.over.wait(_POLL):
            if self.requested and cancel is not None:
                cancel()
                cancel = None
        if step.error is None:
            result: T = step.result
            return result
        if self.requested:
            raise StoppedError
        raise step.error

    def _work(self) -> None:
        while True:
            self._steps.get().run()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self._requested.set()


class _GuardedStep:
    """Some work, and its result or error."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work, self.over = work, Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as why:  # noqa: BLE001 - raised again in the waiting thread
            self.error = why
        finally:
            self.over.set()
