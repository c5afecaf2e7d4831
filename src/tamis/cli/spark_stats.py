"""`tamis spark stats`: what past events are like, for people, planners and schedulers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import perf_counter

import click

from tamis.cli.screen import screen
from tamis.cli.spark_jobs import (
    bar,
    cancellable,
    declared,
    master_option,
    operators_option,
    rate,
    started,
)
from tamis.cli.stats_tables import show


@click.command()
@click.option("--events", help="A folder of parquet files, a pattern for them, or one file.")
@click.option("--schema", type=click.Path(path_type=Path), help="Of these events: YAML or JSON.")
@click.option("--log", type=click.Path(path_type=Path), help="Folder of a log, instead of these.")
@click.option(
    "--subscriptions",
    type=click.Path(path_type=Path),
    help="Also what these match of the sample: folder of an index, a version, or a saved engine.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that gets stats.json and sample.parquet.",
)
@click.option(
    "--sample",
    default=4096,
    show_default=True,
    type=click.IntRange(1),
    help="Events that are drawn at random, to plan for.",
)
@click.option(
    "--asked",
    default=256,
    show_default=True,
    type=click.IntRange(0),
    help="Of these, so many are shown to operators that subscriptions call.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@click.option("--replace", is_flag=True, help="Take the place of statistics that OUT holds.")
@operators_option
@master_option
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
) -> None:
    """Tell what past events are like: how often attributes are bound, and to which values.

    Events are parquet files, whose --schema has to be given, or all events of a --log. With
    --subscriptions, events of the sample are matched as well, and operators are called for some of
    them, to see how often each says yes and what that takes.

    `tamis spark compile --stats OUT` lays subscriptions out for events like these, and has
    schedulers begin with what was seen of operators; in a program, Engine.expect(Stats.open(OUT)).
    """
    if (events is None) == (log is None) or (events is None) != (schema is None):
        raise click.UsageError("Give either --events and --schema, or --log.")
    from tamis.model.schema import Schema
    from tamis.spark.runtime.engine_folders import engine_folders
    from tamis.spark.stats.event_stats import check_given, gather
    from tamis.spark.stats.subscription_stats import ask
    from tamis.store.log import Log
    from tamis.store.stats import check_free

    # What can be refused is refused before Spark starts, which takes a while.
    target = check_free(out, replace=replace)
    above = target.parent  # where workers can write as well
    past: str | Log = str(events) if log is None else Log.open(log)
    known = None if schema is None else Schema.load(schema)
    check_given(past, known)
    if subscriptions is not None:
        engine_folders(subscriptions)
    console = screen()
    with started(console, master) as spark:
        begun = perf_counter()
        with bar(console, "Counting, by tasks") as progress:
            counting = partial(gather, sample=sample, seed=seed, work=above, progress=progress)
            made = cancellable(spark, lambda: counting(spark, past, known))
        seconds = perf_counter() - begun
        made.save(target, replace=replace)  # whatever becomes of the rest
        if subscriptions is not None:
            given = declared(modules) or ()
            with bar(console, "Matching the sample, by tasks") as progress:
                asking = partial(ask, operators=given, asked=asked, work=above, progress=progress)
                made = cancellable(spark, partial(asking, spark, made, subscriptions))
            made.save(target, replace=True)
    show(console, made)
    rows = made.events + made.dead
    console.print(f"{rows:,} events in {seconds:.1f} s, {rate(rows, seconds)}")
    console.print(f"The statistics are in {out}.", soft_wrap=True)
