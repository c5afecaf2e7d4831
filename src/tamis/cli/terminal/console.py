"""One console for all commands, its spinners and its bars.

Spinners and bars appear in a terminal only, and disappear when the work is done.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.text import Text

from tamis.cli.terminal.printable import PrintableStream, printable

_PLAIN_WIDTH = 120  # columns where standard output is not a terminal


class PrintableConsole(Console):
    """A console that escapes control characters in what it renders."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            own = segment.control  # such as moves of the cursor
            yield segment if own else Segment(printable(segment.text), segment.style)


def stdout_console() -> Console:
    """A console on standard output: colours in a terminal, plain text in a pipe or a file.

    Numbers are not highlighted, and a user's text is never read as markup.
    """
    return _console(sys.stdout)


def stderr_console() -> Console:
    """The same on standard error, for commands that write data to standard output."""
    return _console(sys.stderr)


def report_console(as_json: bool) -> Console:
    """A console for what people read: standard error if standard output is for JSON."""
    return stderr_console() if as_json else stdout_console()


def _console(out: TextIO) -> Console:
    file = out.stream if isinstance(out, PrintableStream) else out  # rich steers the terminal
    console = PrintableConsole(file=file, highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PLAIN_WIDTH
    return console


def print_lines(console: Console, lines: Iterable[str]) -> None:
    """Print lines as they are, however long."""
    for line in lines:
        console.print(Text(line), soft_wrap=True)


@contextmanager
def spinner(console: Console, what: str) -> Iterator[None]:
    if not console.is_terminal:
        yield
        return
    with console.status(Text(what)):
        yield


class ProgressBar:
    """A bar with a description, the count and the elapsed time."""

    def __init__(self, progress: Progress, what: str, total: int) -> None:
        self._progress, self._task = progress, progress.add_task(what, total=total)

    def update(self, done: int, total: int | None = None) -> None:
        """Move the bar to `done`, of `total` if that has changed."""
        self._progress.update(self._task, completed=done, total=total)

    def describe(self, what: str) -> None:
        self._progress.update(self._task, description=what)

    def advance(self) -> None:
        self._progress.advance(self._task)


@contextmanager
def bar(console: Console, what: str, total: int = 1) -> Iterator[ProgressBar]:
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=40),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        yield ProgressBar(progress, what, total)
