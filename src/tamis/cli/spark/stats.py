"""`tamis spark stats`: statistics of past events, for people, planners and schedulers."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import click

from tamis.cli.reports.stats import show
from tamis.cli.spark.session import (
    declared_operators,
    events_option,
    log_option,
    master_option,
    operators_option,
    run_in,
    schema_option,
    spark_session,
)
from tamis.cli.terminal.console import report_console
from tamis.cli.terminal.numbers import rate
from tamis.cli.terminal.options import FOLDER, PATH, option, seed_option
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import counted


@click.command()
@events_option
@schema_option
@log_option
@option(
    "--subscriptions",
    "Match the sample with these: folder of an index, of a version, or of a saved engine.",
    PATH,
)
@option("--out", "Folder for stats.json and sample.parquet.", FOLDER, required=True)
@option("--sample", "Number of events in the random sample.", click.IntRange(1), 4096)
@option(
    "--asked", "Number of sampled events on which operators are called.", click.IntRange(0), 256
)
@seed_option(0, "the sample")
@click.option("--replace", is_flag=True, help="Replace the statistics in OUT.")
@operators_option
@master_option
@json_option
def stats(
    events: str | None,
    schema: Path | None,
    log: Path | None,
    subscriptions: Path | None,
    out: Path,
    sample: int,
    asked: int,
    seed: int,
    replace: bool,
    modules: tuple[str, ...],
    master: str | None,
    as_json: bool,
) -> None:
    """Gather statistics of past events: which attributes they bind, and to which values.

    Give parquet files with --events and their --schema, or all events of a --log. With
    --subscriptions, the sample is matched as well, and operators are called on some of its events,
    to measure how often each is true and what a call costs.

    `tamis spark compile --stats OUT` plans an index for such events, and schedulers start with the
    measured costs. In a program, call Engine.expect(Stats.open(OUT)).
    """
    if (events is None) == (log is None) or (events is None) != (schema is None):
        raise click.UsageError("Give either --events and --schema, or --log.")
    from tamis.model.schema import Schema
    from tamis.spark.runtime.engine_folders import engine_folders
    from tamis.spark.stats.event_stats import gather_stats, opened_events
    from tamis.spark.stats.subscription_stats import match_sample
    from tamis.store.log import Log
    from tamis.store.stats import check_free

    # Check everything before Spark starts, which takes a while.
    target = check_free(out, replace=replace)
    work = target.parent  # a folder that workers can write to as well
    past: str | Log = str(events) if log is None else Log.open(log)
    known = None if schema is None else Schema.load(schema)
    opened_events(past, known)
    if subscriptions is not None:
        engine_folders(subscriptions)
    console = report_console(as_json)
    with spark_session(console, master) as spark:
        begun = perf_counter()
        made = run_in(
            spark,
            console,
            "Counting, by tasks",
            lambda spark, progress: gather_stats(
                spark, past, known, sample=sample, seed=seed, work=work, progress=progress
            ),
        )
        seconds = perf_counter() - begun
        made.save(target, replace=replace)  # kept even if the rest fails
        if subscriptions is not None:
            gathered = made
            made = run_in(
                spark,
                console,
                "Matching the sample, by tasks",
                lambda spark, progress: match_sample(
                    spark,
                    gathered,
                    subscriptions,
                    operators=declared_operators(modules),
                    asked=asked,
                    work=work,
                    progress=progress,
                ),
            )
            made.save(target, replace=True)
    show(console, made)
    rows = made.events + made.dead
    console.print(f"{counted(rows, 'event')} in {seconds:.1f} s, {rate(rows, seconds)}")
    console.print(f"The statistics are in {out}.", soft_wrap=True)
    print_answer(made.to_dict(), as_json, "")
