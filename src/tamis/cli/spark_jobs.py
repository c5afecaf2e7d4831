"""What the jobs on Spark have in common: a session, a bar over their tasks, and rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

master_option = click.option(
    "--master", help="URL of a Spark master or of a Connect server.  [default: this machine]"
)


@contextmanager
def started(console: Console, master: str | None) -> Iterator[SparkSession]:
    """A session for a command: the active one if there is one, else one that ends with it."""
    from tamis.spark import sessions

    before = sessions._active()
    with waiting(console, "Starting Spark: about 10 seconds"):
        spark = sessions.session(master)
    try:
        yield spark
    finally:
        if before is None:
            spark.stop()


@contextmanager
def waiting(console: Console, what: str) -> Iterator[None]:
    """A spinner, in a terminal."""
    if not console.is_terminal:
        yield
        return
    with console.status(Text(what)):
        yield


@contextmanager
def bar(console: Console, what: str) -> Iterator[Callable[[int, int], object]]:
    """A bar, in a terminal; gives what is to be called with how many are done, of how many."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=40),
        TextColumn("{task.completed:,}/{task.total:,}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(what, total=1)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def rate(count: int, seconds: float) -> str:
    """So many a second."""
    each = count / max(seconds, 1e-9)
    if each >= 1e6:
        return f"{each / 1e6:.2f} M/s"
    return f"{each / 1e3:.1f} k/s" if each >= 1e3 else f"{each:.1f}/s"


def size(bytes: int) -> str:
    """Bytes, to read."""
    number = float(bytes)
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
