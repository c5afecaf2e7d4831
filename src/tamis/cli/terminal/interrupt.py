"""Ctrl-C that takes effect between two steps.

Python raises KeyboardInterrupt wherever the program happens to be. That would leave a call into the
JVM half done.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic
from types import FrameType
from typing import Any, TypeVar

from rich.console import Console
from rich.text import Text

T = TypeVar("T")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last: the terminal was closed
_POLL = 0.1  # seconds; signals are noticed between two waits
_LINE_SECONDS = 10.0  # between two lines about a step, outside a terminal


class StoppedError(Exception):
    """The user asked to stop before a step or during it."""


class InterruptGuard:
    """Within its block, the first signal to end sets `requested`; the second one interrupts.

    `nohup` has SIGHUP ignored, and so it stays.
    """

    def __init__(self) -> None:
        self._requested = Event()
        self._handlers: dict[int, Any] = {}
        self._steps: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._worker: Thread | None = None

    def __enter__(self) -> InterruptGuard:
        for number in _SIGNALS:
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue
            self._handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @property
    def requested(self) -> bool:
        return self._requested.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for some seconds, or until the user asks to stop; gives whether that happened."""
        return self._requested.wait(seconds)

    def run(
        self,
        work: Callable[[], T],
        cancel: Callable[[], object] | None = None,
        tick: Callable[[], object] = lambda: None,
    ) -> T:
        """Run a long step in a thread, where signals do not interrupt it.

        `tick` is called now and then while it runs.

        When the user asks to stop, `cancel` is called once. The result of the step is returned all
        the same; the next step raises `StoppedError`. All steps run in one thread, because Spark
        ties the active session to the thread that made it.
        """
        if self.requested:
            raise StoppedError
        if self._worker is None:
            self._worker = Thread(target=self._work, name="steps", daemon=True)
            self._worker.start()
        step: Future[T] = Future()
        self._steps.put((step, work))
        while not wait([step], _POLL).done:
            tick()
            if self.requested and cancel is not None:
                cancel()
                cancel = None
        if step.exception() is not None and self.requested:
            raise StoppedError
        return step.result()

    def _work(self) -> None:
        # Not an executor: Python would wait for its thread at exit, even if a step hangs.
        while True:
            step, work = self._steps.get()
            try:
                step.set_result(work())
            except BaseException as why:  # noqa: BLE001 - raised again in the waiting thread
                step.set_exception(why)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self._requested.set()


class StartupSteps:
    """The steps before a stream runs, each of which takes seconds.

    It shows a spinner with the time during a step, in a terminal, and a line after it. Elsewhere it
    prints a line now and then.
    """

    def __init__(
        self, console: Console, interrupt: InterruptGuard, every: float = _LINE_SECONDS
    ) -> None:
        self._console, self._interrupt, self._every = console, interrupt, every

    def run(
        self,
        what: str,
        work: Callable[[], T],
        done: Callable[[T], str],
        cancel: Callable[[], object] | None = None,
    ) -> T:
        """Run a step. `what` announces it with the expected time; `done` words its result."""
        if self._interrupt.requested:
            raise StoppedError
        began = monotonic()
        if not self._console.is_terminal:
            self._console.print(Text(what))
        with self._console.status(Text(what)) as status:
            shown = began

            def stop() -> None:
                status.update(Text("Stopping, after this step"))
                if cancel is not None:
                    cancel()

            def tick() -> None:
                nonlocal shown
                now = monotonic()
                every = 1 if self._console.is_terminal else self._every
                if self._interrupt.requested or now - shown < every:
                    return
                shown = now
                if self._console.is_terminal:
                    status.update(Text(f"{what} ({now - began:.0f} s so far)"))
                else:
                    first = what.partition(":")[0]
                    self._console.print(Text(f"{first}, {now - began:.0f} s so far"))

            result = self._interrupt.run(work, stop, tick)
        self.report(done(result), monotonic() - began)
        return result

    def show(self, line: Text) -> None:
        """Print a line whole, however long it is: a link, for example."""
        self._console.print(line, soft_wrap=True)

    def report(self, what: str, seconds: float | None = None) -> None:
        """Print a line with a check mark."""
        took = "" if seconds is None else f"  {seconds:.1f} s"
        self._console.print(
            Text.assemble(("✓ ", "green"), what, (took, "dim"), no_wrap=True, overflow="ellipsis")
        )
