"""The steps before a stream runs. Each takes seconds, and is announced and reported."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from tamis.cli.terminal.interrupt import InterruptGuard, StoppedError

T = TypeVar("T")


class StartupSteps:
    """Shows a spinner during a step, in a terminal, and a line after it."""

    def __init__(self, console: Console, interrupt: InterruptGuard) -> None:
        self._console, self._interrupt = console, interrupt

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

            def stop() -> None:
                status.update(Text("Stopping, after this step"))
                if cancel is not None:
                    cancel()

            result = self._interrupt.run(work, stop)
        self.report(done(result), monotonic() - began)
        return result

    def report(self, what: str, seconds: float | None = None) -> None:
        """Print a line with a check mark."""
        took = "" if seconds is None else f"  {seconds:.1f} s"
        self._console.print(
            Text.assemble(("✓ ", "green"), what, (took, "dim"), no_wrap=True, overflow="ellipsis")
        )
