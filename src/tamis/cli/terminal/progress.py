"""Spinners and bars. They appear in a terminal only, and disappear when the work is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text


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
        TextColumn("{task.description}"),
        BarColumn(bar_width=40),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        yield ProgressBar(progress, what, total)
