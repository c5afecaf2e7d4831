"""Options, sessions and cancellation for jobs on Spark."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar

import click
from rich.console import Console
from rich.text import Text

from tamis.cli.terminal.console import bar, spinner
from tamis.cli.terminal.interrupt import InterruptGuard, StoppedError
from tamis.cli.terminal.options import PATH, option, split_names
from tamis.cli.terminal.printable import one_line
from tamis.errors import SparkError, SparkGoneError, TamisError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.operators.operator import Operator
    from tamis.operators.report import Report
    from tamis.spark.runtime.job_runner import Progress

T = TypeVar("T")
_RETRY = 0.2  # seconds
SHOWN_REFUSALS = 5

master_option = option(
    "--master", "URL of a Spark master or of a Connect server.  [default: this machine]"
)
EVENTS = "A folder of parquet files, a pattern for them, or one file."
events_option = option("--events", EVENTS)
schema_option = option("--schema", "Schema of the events, YAML or JSON.", PATH)
log_option = option("--log", "Folder of a log, instead of files.", PATH)


def _modules(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    names = split_names(value)
    for name in names:
        try:
            import_module(name)
        except ImportError as why:
            raise click.BadParameter(
                f"{name!r} cannot be imported ({why}); give a module that is installed, or that "
                "lies in a folder of PYTHONPATH, here and for the workers"
            ) from None
    return names


operators_option = click.option(
    "--operators",
    "modules",
    default="",
    callback=_modules,
    help="Modules that declare operators for conditions, separated by commas.",
)


def declared_operators(modules: Sequence[str]) -> tuple[Operator, ...]:
    """The operators that modules declare."""
    from tamis.operators.operator import Operator

    values = (each for module in modules for each in vars(import_module(module)).values())
    return tuple({each.name: each for each in values if isinstance(each, Operator)}.values())


def print_operators(console: Console, report: Report) -> None:
    """Print how often operators were called and failed, if any was; and what was ignored."""
    if len(report):
        console.print("Operators:")
        for each in str(replace(report, ignored={})).splitlines():
            console.print(Text(f"  {each}"), soft_wrap=True)
    if report.ignored:
        what = f"Attributes that the schema does not know, {report.ignored_text}"
        console.print(Text(one_line(what)), soft_wrap=True)


@contextmanager
def spark_session(console: Console, master: str | None) -> Iterator[SparkSession]:
    """The active session, or one that ends with the block."""
    from tamis.spark.runtime import sessions
    from tamis.spark.runtime.error_text import error_text
    from tamis.spark.runtime.quiet_session import errors_to

    before = sessions.active()
    hide_py4j()
    with NamedTemporaryFile(prefix="tamis-spark-") as said:
        with spinner(console, "Starting Spark: about 10 seconds"):
            try:
                with errors_to(Path(said.name)):  # of Java, and of its Python workers
                    spark = sessions.session(master)
            except TamisError:
                raise
            except Exception as why:  # noqa: BLE001 - Spark raises many kinds
                click.echo(said.read().decode(errors="replace"), err=True, nl=False)
                if sessions.java_ended():
                    raise sessions.gone() from None
                raise SparkError(f"Spark does not start: {error_text(why)}") from None
        try:
            yield spark
        except (SparkGoneError, StoppedError):
            raise
        except Exception:  # the first call that notices may be any
            if sessions.java_ended():
                raise sessions.gone() from None
            raise
        finally:
            if before is None:
                sessions.end(spark)


class _Py4J(logging.Filter):
    """Drops what py4j logs, some of it in the name of others, when Java ends."""

    def filter(self, record: logging.LogRecord) -> bool:
        return f"{os.sep}py4j{os.sep}" not in record.pathname


def hide_py4j() -> None:
    """Keep the tracebacks of py4j off the terminal. All else that is logged is shown as before."""
    if not logging.getLogger().handlers:
        shown = logging.StreamHandler()
        shown.setLevel(logging.WARNING)
        shown.addFilter(_Py4J())
        logging.getLogger().addHandler(shown)


def run_on_spark(
    console: Console, master: str | None, what: str, job: Callable[[SparkSession, Progress], T]
) -> T:
    """Run one job in a session, with a bar. Ctrl-C cancels the job."""
    with spark_session(console, master) as spark:
        return run_in(spark, console, what, job)


def run_in(
    spark: SparkSession, console: Console, what: str, job: Callable[[SparkSession, Progress], T]
) -> T:
    """Run one job of several in a session, with a bar. Ctrl-C cancels the job."""
    with bar(console, what) as progress:
        return _cancellable(spark, lambda: job(spark, progress.update))


def _cancellable(spark: SparkSession, work: Callable[[], T]) -> T:
    """Run a job. Ctrl-C cancels the job, then interrupts as usual.

    An exception during a call into the JVM would leave the call half done, and Spark would print
    pages about it.
    """
    over = Event()

    def cancel() -> None:
        while not over.wait(_RETRY):  # a job may start only now
            with suppress(Exception):
                _cancel(spark)

    with InterruptGuard() as interrupt:
        try:
            return interrupt.run(work, Thread(target=cancel, daemon=True).start)
        except StoppedError:
            raise KeyboardInterrupt from None
        finally:
            over.set()


def _cancel(spark: SparkSession) -> None:
    """Cancel all jobs of a session, classic or Connect."""
    try:
        context = spark.sparkContext
    except Exception:  # noqa: BLE001 - Connect refuses with a class that has changed
        spark.interruptAll()
    else:
        context.cancelAllJobs()
