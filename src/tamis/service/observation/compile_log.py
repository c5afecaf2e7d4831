"""Log lines while code is compiled: on a new machine, the first match waits for it."""

from __future__ import annotations

import time
from threading import Event, Thread
from typing import Any, Self

import structlog
from numba.core import event as numba_events

_KIND = "numba:compile"
_log = structlog.stdlib.get_logger("tamis.compile")


class CompileLog(numba_events.Listener):
    """Says that code is being compiled, how far that is, and that it is done.

    Compiled code is stored, so this happens once on a machine, and again after an upgrade. What
    takes less than a second is not worth a line.

    Args:
        patience: seconds of compiling after which the first line comes.
        pause: seconds between two lines of progress, and without compiling after which it is done.
    """

    def __init__(self, patience: float = 1.0, pause: float = 10.0) -> None:
        self._patience, self._pause = patience, pause
        self._under_way: list[str] = []  # a function is compiled while its caller is
        self._functions = 0
        self._begun = self._ended = 0.0
        self._said_at: float | None = None  # None: nothing is compiled, or not for long
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="tamis-compile-log", daemon=True)

    def __enter__(self) -> Self:
        numba_events.register(_KIND, self)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        numba_events.unregister(_KIND, self)
        self._stopping.set()
        self._thread.join()

    def on_start(self, event: Any) -> None:
        """Called by the thread that compiles."""
        if not self._functions and not self._under_way:
            self._begun = time.monotonic()
        self._under_way.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        self._under_way.pop()
        self._functions += 1
        self._ended = time.monotonic()

    def _run(self) -> None:
        while not self._stopping.wait(min(1.0, self._patience)):
            self._look(time.monotonic())

    def _look(self, now: float) -> None:
        busy = bool(self._under_way)
        if not busy and not self._functions:
            return
        if self._said_at is None and busy and now - self._begun >= self._patience:
            _log.info(
                "compiling the matcher for this machine; this happens once, and the first "
                "notifications wait for it"
            )
            self._said_at = now
        elif self._said_at is not None and busy and now - self._said_at >= self._pause:
            at = self._under_way[0] if self._under_way else None
            _log.info("still compiling", functions=self._functions, at=at)
            self._said_at = now
        elif not busy and now - self._ended >= self._pause:
            if self._said_at is not None:
                seconds = round(self._ended - self._begun, 1)
                _log.info("compiled", functions=self._functions, seconds=seconds)
            self._functions, self._said_at = 0, None
