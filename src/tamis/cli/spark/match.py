"""`tamis spark match`: match events in parquet files against subscriptions in a folder."""

from __future__ import annotations

from pathlib import Path

import click

from tamis.cli.spark.session import (
    EVENTS,
    declared_operators,
    master_option,
    operators_option,
    print_operators,
    run_on_spark,
)
from tamis.cli.terminal.console import report_console
from tamis.cli.terminal.numbers import rate
from tamis.cli.terminal.options import FOLDER, PATH, now_option, option, split_names
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import counted
from tamis.model.times.moments import read_moment


@click.command()
@option("--events", EVENTS, required=True)
@option(
    "--subscriptions",
    "Folder of an index, of one of its versions, or of a saved engine.",
    PATH,
    required=True,
)
@option("--out", "Folder for the pairs, the dead letters and the manifest of their files.", FOLDER)
@option("--id", "Column that identifies events.  [default: their number, as sequence]")
@click.option("--columns", default="", help="Columns to add to the pairs, separated by commas.")
@click.option("--count-only", is_flag=True, help="Count the pairs, and write nothing.")
@click.option("--append", is_flag=True, help="Add to the files in OUT.")
@click.option(
    "--trusted",
    is_flag=True,
    help="Skip validation of the events, and read only the columns that subscriptions mention.",
)
@now_option
@operators_option
@master_option
@json_option
def match(
    events: str,
    subscriptions: Path,
    out: Path | None,
    id: str | None,
    columns: str,
    count_only: bool,
    append: bool,
    trusted: bool,
    now: str | None,
    modules: tuple[str, ...],
    master: str | None,
    as_json: bool,
) -> None:
    """Match events in parquet files, and write the pairs as parquet.

    Workers read the files and write the pairs: rows of sequence, subscription and the given columns
    in OUT/notifications. Events that break a rule of the schema go to OUT/dead with the reason. The
    manifest in OUT/manifests names the files that count; it appears last.
    """
    if (out is None) != count_only:
        raise click.UsageError("Give either --out, where the pairs go, or --count-only.")
    from tamis.spark.jobs.match_files import check_given, match_files

    check_given(events, subscriptions, out, append)
    if now is not None:
        read_moment(now)
    console = report_console(as_json)
    done = run_on_spark(
        console,
        master,
        "Matching, by tasks",
        lambda spark, progress: match_files(
            spark,
            events,
            subscriptions,
            out,
            id=id,
            columns=split_names(columns),
            operators=declared_operators(modules),
            trusted=trusted,
            append=append,
            now=now,
            progress=progress,
        ),
    )
    seconds = done.seconds
    console.print(
        f"{counted(done.events, 'event')} of {counted(done.files, 'file')} in {seconds:.1f} s, "
        f"{rate(done.events, seconds)}"
    )
    console.print(
        f"{counted(done.pairs, 'pair')}, {rate(done.pairs, seconds)}; "
        f"{counted(done.matched, 'event')} matched, "
        f"{done.events - done.matched - done.dead:,} did not, "
        f"{counted(done.dead, 'is', 'are')} dead"
    )
    print_operators(console, done.operators)
    if out is not None:
        console.print(f"Notifications are in {out}/notifications.", soft_wrap=True)
        if done.dead:
            console.print(f"Dead letters, with reasons, are in {out}/dead.", soft_wrap=True)
    print_answer(done._asdict(), as_json, "")
