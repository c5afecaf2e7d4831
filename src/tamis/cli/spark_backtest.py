"""`tamis spark backtest`: what conditions would have matched, of events that are past."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from tamis.cli.backtest_tables import show
from tamis.cli.screen import screen
from tamis.cli.spark_jobs import (
    bar,
    cancellable,
    declared,
    master_option,
    operators_option,
    started,
    tell_operators,
    waiting,
)
from tamis.errors import TamisError

if TYPE_CHECKING:
    from tamis.engine import Engine
    from tamis.spark.backtest.backtest_job import Backtest

_TOLD = 5  # refusals that are shown
_PICTURE = "plot.png"


@click.command()
@click.argument("conditions", nargs=-1, metavar="[CONDITION]...")
@click.option("--events", help="A folder of parquet files, a pattern for them, or one file.")
@click.option("--schema", type=click.Path(path_type=Path), help="Of these events: YAML or JSON.")
@click.option("--log", type=click.Path(path_type=Path), help="Folder of a log, instead of these.")
@click.option(
    "--conditions",
    "file",
    type=click.Path(path_type=Path),
    help="Conditions from a file, with an id each: .parquet .csv .jsonl; or .txt, one a line.",
)
@click.option(
    "--subscriptions",
    type=click.Path(path_type=Path),
    help="Folder of an index, of one of its versions, or of a saved engine, instead.",
)
@click.option(
    "--time", help="What tells when an event was.  [default: the events are taken in their order]"
)
@click.option("--buckets", type=click.IntRange(1, 100_000), help="Of time, at most.  [default: 60]")
@click.option("--samples", type=click.IntRange(0), help="Of each condition.  [default: 5]")
@click.option("--columns", help="Columns of samples, with commas between.  [default: all]")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Folder for counts, samples and {_PICTURE}.",
)
@operators_option
@master_option
def backtest(
    conditions: tuple[str, ...],
    events: str | None,
    schema: Path | None,
    log: Path | None,
    file: Path | None,
    subscriptions: Path | None,
    time: str | None,
    buckets: int | None,
    samples: int | None,
    columns: str | None,
    out: Path | None,
    modules: tuple[str, ...],
    master: str | None,
) -> None:
    """Test each CONDITION, or thousands, with events that are past.

    Events are parquet files, whose --schema has to be given, or all events of a --log. Shown is how
    many of them each condition matches, and when. OUT gets all of it: counts.parquet,
    over_time.parquet, totals.parquet, samples.parquet and a picture.

    A CONDITION that is wrong is refused, with the place; those from a file are left out, and told.
    """
    tested = sum((bool(conditions), file is not None, subscriptions is not None))
    _check_options(tested, events, log, schema, subscriptions)
    from tamis.engine import Engine
    from tamis.model.schema import Schema
    from tamis.spark.backtest import backtest_job as backtesting
    from tamis.spark.backtest.result_tables import check_new
    from tamis.store.log import Log

    console = screen()
    names = (
        None if columns is None else [each.strip() for each in columns.split(",") if each.strip()]
    )
    # What can be refused is refused before Spark starts, which takes a while.
    if out is not None:
        check_new(out)
    past: str | Log = str(events) if log is None else Log.open(log)
    given: Path | Engine
    if subscriptions is not None:
        given = subscriptions
    else:
        known = Schema.from_dict(past.schema) if isinstance(past, Log) else Schema.load(str(schema))
        engine = Engine(known, operators=declared(modules))
        given = _filled(console, engine, conditions, file)
    with given if isinstance(given, Engine) else nullcontext():
        backtesting.check_given(past, given, time=time, columns=[] if samples == 0 else names)
        with started(console, master) as spark, bar(console, "Testing, by tasks") as progress:
            found = cancellable(
                spark,
                lambda: backtesting.backtest(
                    spark,
                    past,
                    given,
                    time=time,
                    buckets=buckets,
                    samples=samples,
                    columns=names,
                    operators=declared(modules) or (),
                    work=out,
                    progress=progress,
                    looking=progress,
                ),
            )
    show(console, found)
    tell_operators(console, found.operators)
    if out is not None:
        _write(console, found, out)


def _check_options(
    tested: int,
    events: str | None,
    log: Path | None,
    schema: Path | None,
    subscriptions: Path | None,
) -> None:
    if (events is None) == (log is None):
        raise click.UsageError("Give either --events or --log: what is to be tested with.")
    if not tested:
        raise click.UsageError(
            "There is nothing to test: give a CONDITION, --conditions or --subscriptions."
        )
    if tested > 1:
        raise click.UsageError("Give one of: CONDITIONs, --conditions and --subscriptions.")
    own = "a log" if log is not None else "an index" if subscriptions is not None else None
    if own is not None and schema is not None:
        raise click.UsageError(f"Give no --schema: {own} has its own.")
    if own is None and schema is None:
        raise click.UsageError("Give the --schema of the events as well.")


def _filled(
    console: Console, engine: Engine, conditions: tuple[str, ...], file: Path | None
) -> Engine:
    """With the conditions; one that is wrong is refused, or left out if it is from a file."""
    from tamis.cli.files import read_conditions
    from tamis.replay.subscribe_rows import subscribe_rows

    for number, condition in enumerate(conditions, 1):
        engine.subscribe(condition, id=number)
    if file is None:
        return engine
    table = read_conditions(file)
    with waiting(console, f"Compiling {table.num_rows:,} conditions"):
        refused = subscribe_rows(engine, table)
    if refused:
        console.print(f"{len(refused):,} of {table.num_rows:,} conditions were refused:")
        for row, reason in refused[:_TOLD]:
            console.print(f"  {table['id'][row].as_py()!r}: {reason}", soft_wrap=True)
        console.print()
    if not len(engine):
        raise TamisError(f"{file}: there is no condition to test")
    return engine


def _write(console: Console, found: Backtest, out: Path) -> None:
    from tamis.errors import StoreError
    from tamis.files.os_errors import os_errors_as
    from tamis.files.sync import make_folder
    from tamis.lab.plots.backtests import plot
    from tamis.spark.backtest.result_tables import write

    with os_errors_as(StoreError, f"{out}: cannot be written to"):
        make_folder(out)
    picture = []
    try:  # before the counts: with these it is complete
        picture.append(plot(found, out / _PICTURE).name)
    except TamisError as why:
        console.print(str(why))
    except (ValueError, ArithmeticError) as why:  # of times that are off the chart
        console.print(f"There is no picture: {why}")
    names = [*write(found, out), *picture]
    console.print(f"{out} has {', '.join(names[:-1])} and {names[-1]}.", soft_wrap=True)
