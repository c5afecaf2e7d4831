"""`tamis spark match`: events in parquet files against subscriptions in a folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path

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
    tell_operators,
)


@click.command()
@click.option(
    "--events", required=True, help="A folder of parquet files, a pattern for them, or one file."
)
@click.option(
    "--subscriptions",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder of an index, of one of its versions, or of a saved engine.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the pairs, dead letters and the manifest that names their files.",
)
@click.option(
    "--id", "id_", help="Column that tells events apart.  [default: their number, as sequence]"
)
@click.option("--columns", default="", help="Columns to write beside, with commas between.")
@click.option("--count-only", is_flag=True, help="Count the pairs, and write nothing.")
@click.option("--append", is_flag=True, help="Add to what OUT holds already.")
@click.option(
    "--trusted",
    is_flag=True,
    help="Events are known to be consistent: read only what subscriptions ask for.",
)
@operators_option
@master_option
def match(
    events: str,
    subscriptions: Path,
    out: Path | None,
    id_: str | None,
    columns: str,
    count_only: bool,
    append: bool,
    trusted: bool,
    modules: tuple[str, ...],
    master: str | None,
) -> None:
    """Match events in parquet files, and write the pairs as parquet.

    Workers read the files themselves and write the pairs themselves: rows of (sequence,
    subscription, and the columns asked for) in OUT/notifications. Events that break a rule of the
    schema go to OUT/dead with the reason. What counts is in OUT/manifests, when all of it is there.
    """
    if (out is None) != count_only:
        raise click.UsageError("Give either --out, where the pairs go, or --count-only.")
    from tamis.spark.jobs.match_files import check_given, match_files

    check_given(events, subscriptions, out, append)
    names = tuple(name.strip() for name in columns.split(",") if name.strip())
    console = screen()
    with started(console, master) as spark, bar(console, "Matching, by tasks") as progress:
        work = partial(
            match_files,
            spark,
            events,
            subscriptions,
            out,
            id=id_,
            columns=names,
            operators=declared(modules) or (),
            trusted=trusted,
            append=append,
            progress=progress,
        )
        done = cancellable(spark, work)
    seconds = done.seconds
    console.print(
        f"{done.events:,} events of {done.files:,} files in {seconds:.1f} s, "
        f"{rate(done.events, seconds)}"
    )
    console.print(
        f"{done.pairs:,} pairs, {rate(done.pairs, seconds)}; {done.matched:,} events matched, "
        f"{done.events - done.matched - done.dead:,} did not, {done.dead:,} are dead"
    )
    tell_operators(console, done.operators)
    if out is not None:
        console.print(f"Notifications are in {out}/notifications.", soft_wrap=True)
        if done.dead:
            console.print(f"Dead letters, with reasons, are in {out}/dead.", soft_wrap=True)
