"""`tamis spark backtest`: which past events conditions would have matched."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from tamis.cli.data.subscription_rows import FORMATS
from tamis.cli.data.subscriptions import strict_option, subscribe_file
from tamis.cli.reports.backtest import show
from tamis.cli.spark.session import (
    declared_operators,
    events_option,
    log_option,
    master_option,
    operators_option,
    print_operators,
    run_on_spark,
    schema_option,
)
from tamis.cli.terminal.console import report_console, spinner
from tamis.cli.terminal.options import FOLDER, PATH, option, split_names
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import TamisError

if TYPE_CHECKING:
    from tamis.engine import Engine
    from tamis.spark.backtest.backtest_job import Backtest

_PICTURE = "plot.png"


@click.command()
@click.argument("conditions", nargs=-1, metavar="[CONDITION]...")
@events_option
@schema_option
@log_option
@click.option(
    "--conditions",
    "file",
    type=PATH,
    help=f"File or folder of conditions: {' '.join(FORMATS)}.",
)
@option(
    "--subscriptions",
    "Test these instead: folder of an index, of a version, or of a saved engine.",
    PATH,
)
@strict_option
@option("--time", "Column that dates events.  [default: events keep their order]")
@option("--buckets", "Most buckets of time.  [default: 60]", click.IntRange(1, 100_000))
@option("--samples", "Samples of each condition.  [default: 5]", click.IntRange(0))
@option("--columns", "Columns of the samples, separated by commas.  [default: all]")
@option("--out", f"Folder for counts, samples and {_PICTURE}.", FOLDER)
@operators_option
@master_option
@json_option
def backtest(
    conditions: tuple[str, ...],
    events: str | None,
    schema: Path | None,
    log: Path | None,
    file: Path | None,
    subscriptions: Path | None,
    strict: bool,
    time: str | None,
    buckets: int | None,
    samples: int | None,
    columns: str | None,
    out: Path | None,
    modules: tuple[str, ...],
    master: str | None,
    as_json: bool,
) -> None:
    """Test each CONDITION, or thousands of them, on past events.

    Give parquet files with --events and their --schema, or all events of a --log. The report says
    how many events each condition matches, and when. OUT gets counts.parquet,
    over_time.parquet, totals.parquet, samples.parquet and a picture.

    A wrong CONDITION is refused, with the place of the mistake. Wrong conditions in a file are left
    out and reported; --strict refuses the file.
    """
    tested = sum((bool(conditions), file is not None, subscriptions is not None))
    _check_options(tested, events, log, schema, subscriptions)
    from tamis.engine import Engine
    from tamis.model.schema import Schema
    from tamis.spark.backtest import backtest_job
    from tamis.spark.backtest.result_tables import check_new
    from tamis.store.log import Log

    console = report_console(as_json)
    names = None if columns is None else list(split_names(columns))
    # Check everything before Spark starts, which takes a while.
    if out is not None:
        check_new(out)
    past: str | Log = str(events) if log is None else Log.open(log)
    given: Path | Engine
    if subscriptions is not None:
        given = subscriptions
    else:
        known = Schema.from_dict(past.schema) if isinstance(past, Log) else Schema.load(str(schema))
        engine = Engine(known, operators=declared_operators(modules))
        given = _subscribe(console, engine, conditions, file, strict)
    with given if isinstance(given, Engine) else nullcontext():
        backtest_job.check_given(past, given, time=time, columns=[] if samples == 0 else names)
        found = run_on_spark(
            console,
            master,
            "Testing, by tasks",
            lambda spark, progress: backtest_job.backtest(
                spark,
                past,
                given,
                time=time,
                buckets=buckets,
                samples=samples,
                columns=names,
                operators=declared_operators(modules),
                work=out,
                progress=progress,
                looking=progress,
            ),
        )
    show(console, found)
    print_operators(console, found.operators)
    if out is not None:
        _write(console, found, out)
    if as_json:
        print_answer(_document(found), as_json, "")


def _document(found: Backtest) -> dict[str, Any]:
    """A back-test without its grid: the tables are lists of rows."""
    tables = ("counts", "over_time", "totals", "samples", "reasons")
    plain = ("events", "matched", "pairs", "dead", "time", "files", "seconds", "operators")
    return {
        **{name: getattr(found, name) for name in plain},
        **{name: getattr(found, name).to_pylist() for name in tables},
    }


def _check_options(
    tested: int,
    events: str | None,
    log: Path | None,
    schema: Path | None,
    subscriptions: Path | None,
) -> None:
    if (events is None) == (log is None):
        raise click.UsageError("Give either --events or --log to test on.")
    if not tested:
        raise click.UsageError(
            "There is nothing to test: give a CONDITION, --conditions or --subscriptions."
        )
    if tested > 1:
        raise click.UsageError("Give only one of CONDITION, --conditions and --subscriptions.")
    own = "a log" if log is not None else "an index" if subscriptions is not None else None
    if own is not None and schema is not None:
        raise click.UsageError(f"Leave --schema out: {own} has its own.")
    if own is None and schema is None:
        raise click.UsageError("Give the --schema of the events as well.")


def _subscribe(
    console: Console, engine: Engine, conditions: tuple[str, ...], file: Path | None, strict: bool
) -> Engine:
    """Fill an engine. A wrong condition raises; in a file it is left out and reported."""
    for number, condition in enumerate(conditions, 1):
        engine.subscribe(condition, id=number)
    if file is not None:
        with spinner(console, "Compiling conditions"):
            found = subscribe_file(engine, file, strict=strict)
        for line in found.report():
            console.print(line, soft_wrap=True)
    return engine


def _write(console: Console, found: Backtest, out: Path) -> None:
    from tamis.errors import StoreError
    from tamis.files.os_errors import os_errors_as
    from tamis.files.sync import make_folder
    from tamis.lab.plots.backtest import plot
    from tamis.spark.backtest.result_tables import write

    with os_errors_as(StoreError, f"{out}: cannot be written to"):
        make_folder(out)
    picture = []
    try:  # the counts come last: they mark a complete folder
        picture.append(plot(found, out / _PICTURE).name)
    except TamisError as why:
        console.print(str(why))
    except (ValueError, ArithmeticError) as why:  # times that matplotlib cannot draw
        console.print(f"There is no picture: {why}")
    names = [*write(found, out), *picture]
    console.print(f"{out} has {', '.join(names[:-1])} and {names[-1]}.", soft_wrap=True)
