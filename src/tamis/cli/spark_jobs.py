"""What the jobs on Spark have in common: a session, a bar over their tasks, and rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

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

from tamis.cli.stopping import StoppedError, Stopping
from tamis.errors import SparkError, TamisError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.operators.faults import Report
    from tamis.operators.operator import Operator

T = TypeVar("T")
_AGAIN = 0.2  # seconds

master_option = click.option(
    "--master", help="URL of a Spark master or of a Connect server.  [default: this machine]"
)


def _modules(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    for name in names:
        try:
            import_module(name)
        except ImportError as why:
            raise click.BadParameter(
                f"{name!r} cannot be imported ({why}); it is the name of a module that is "
                "installed, or lies in a folder of PYTHONPATH, here and for the workers"
            ) from None
    return names


operators_option = click.option(
    "--operators",
    "modules",
    default="",
    callback=_modules,
    help="Modules that declare operators which conditions call, with commas between.",
)


def declared(modules: Sequence[str]) -> list[Operator]:
    """The operators that modules have."""
    from tamis.operators.operator import Operator

    found: dict[str, Any] = {}
    for module in modules:
        for each in vars(import_module(module)).values():
            if isinstance(each, Operator):
                found[each.name] = each
    return list(found.values())


def tell_operators(console: Console, report: Report) -> None:
    """What operators were asked and did wrong; nothing where none was."""
    if len(report):
        console.print("Operators:")
        for each in str(report).splitlines():
            console.print(Text(f"  {each}"), soft_wrap=True)


@contextmanager
def started(console: Console, master: str | None) -> Iterator[SparkSession]:
    """A session for a command: the active one if there is one, else one that ends with it."""
    from tamis.spark.runtime import sessions
    from tamis.spark.runtime.error_text import reason

    before = sessions.active()
    with waiting(console, "Starting Spark: about 10 seconds"):
        try:
            spark = sessions.session(master)
        except TamisError:
            raise
        except Exception as why:  # noqa: BLE001 - Spark has many, and all are told alike
            raise SparkError(f"Spark does not start: {reason(why)}") from None
    try:
        yield spark
    finally:
        if before is None:
            sessions.end(spark)


def cancellable(spark: SparkSession, work: Callable[[], T]) -> T:
    """What a job gives. Ctrl-C cancels it; then it is interrupted as usual.

    An exception in the middle of a call into the JVM would leave that half done, and have Spark
    tell of it for pages.
    """
    over = Event()

    def cancel() -> None:
        while not over.wait(_AGAIN):  # a job may begin only now
            with suppress(Exception):
                _cancel(spark)

    with Stopping() as stopping:
        try:
            return stopping.step(work, Thread(target=cancel, daemon=True).start)
        except StoppedError:
            raise KeyboardInterrupt from None
        finally:
            over.set()


def _cancel(spark: SparkSession) -> None:
    """End all jobs of a session, which may be one of Connect."""
    try:
        context = spark.sparkContext
    except Exception:  # noqa: BLE001 - the class of the refusal is Spark's own, and has changed
        spark.interruptAll()
    else:
        context.cancelAllJobs()


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
