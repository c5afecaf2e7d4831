"""Ctrl-C as a wish that is granted at the next good moment.

Python's own way, an exception wherever the program happens to be, would break calls into the JVM
off half way.
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
_WAIT = 0.1  # seconds; signals are noticed between two waits


class StoppedError(Exception):
    """Somebody asked to stop before a step, or during it."""


class Stopping:
    """Within its block, SIGINT and SIGTERM are noted; a second one interrupts as usual."""

    def __init__(self) -> None:
        self._asked = Event()
        self._before: dict[int, Any] = {}
        self._steps: SimpleQueue[_Step] = SimpleQueue()
        self._worker: Thread | None = None

    def __enter__(self) -> Stopping:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._noted)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def asked(self) -> bool:
        """Whether somebody wants it to end."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until somebody wants it to end; whether he does."""
        return self._asked.wait(seconds)

    def step(self, work: Callable[[], T], cancel: Callable[[], object] | None = None) -> T:
        """Do something that takes long, in a thread, so that it is not broken off anywhere.

        When somebody asks to stop, `cancel` may hurry it. What is done is given back all the same;
        the next step is refused with `StoppedError`. All steps are done in the same thread: Spark
        has a session that is active in a thread, that in which it was made.
        """
        if self.asked:
            raise StoppedError
        if self._worker is None:
            self._worker = Thread(target=self._work, name="steps", daemon=True)
            self._worker.start()
        step = _Step(work)
        self._steps.put(step)
        while not step.over.wait(_WAIT):
            if self.asked and cancel is not None:
                cancel()
                cancel = None
        if step.failed is None:
            done: T = step.done
            return done
        if self.asked:
            raise StoppedError
        raise step.failed

    def _work(self) -> None:
        while True:
            self._steps.get().do()

    def _noted(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self._asked.set()


class _Step:
    """Some work, and what became of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work, self.over = work, Event()
        self.done: Any = None
        self.failed: BaseException | None = None

    def do(self) -> None:
        try:
            self.done = self._work()
        except BaseException as why:  # noqa: BLE001 - raised again where it is waited for
            self.failed = why
        finally:
            self.over.set()
