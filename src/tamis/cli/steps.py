"""What comes before the work proper: steps that take seconds, each told before and after."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from tamis.cli.stopping import StoppedError, Stopping

T = TypeVar("T")


class Steps:
    """A spinner while a step takes its time, in a terminal; a line when it is done, anywhere."""

    def __init__(self, console: Console, stopping: Stopping) -> None:
        self._console, self._stopping = console, stopping

    def step(
        self,
        what: str,
        work: Callable[[], T],
        done: Callable[[T], str],
        cancel: Callable[[], object] | None = None,
    ) -> T:
        """Do some work; `what` says what is going on and how long it may take."""
        if self._stopping.asked:
            raise StoppedError
        began = monotonic()
        if not self._console.is_terminal:
            self._console.print(Text(what))
        with self._console.status(Text(what)) as status:

            def hurry() -> None:
                status.update(Text("Stopping, after this step"))
                if cancel is not None:
                    cancel()

            result = self._stopping.step(work, hurry)
        self.say(done(result), monotonic() - began)
        return result

    def say(self, what: str, seconds: float | None = None) -> None:
        """Tell that something is done."""
        took = "" if seconds is None else f"  {seconds:.1f} s"
        self._console.print(
            Text.assemble(("✓ ", "green"), what, (took, "dim"), no_wrap=True, overflow="ellipsis")
        )
