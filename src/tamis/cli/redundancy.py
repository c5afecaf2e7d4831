"""`tamis redundancy`: which subscriptions of a file say nothing that others do not say."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import click

from tamis import Engine, Schema
from tamis.cli.data import subscription_rows
from tamis.cli.data.subscriptions import read_subscriptions, strict_option
from tamis.cli.spark.session import declared_operators, operators_option
from tamis.cli.terminal.console import bar, print_lines, stderr_console, stdout_console
from tamis.cli.terminal.options import PATH, option
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.cli.terminal.printable import one_line

_FOUND = 1  # the exit code if something is redundant
_SHOWN = 10


@click.command()
@option("--schema", "File of the schema (YAML or JSON); without it, the open schema.", PATH)
@option(
    "--subscriptions",
    f"File or folder of subscriptions: {' '.join(subscription_rows.FORMATS)}.",
    PATH,
    required=True,
)
@strict_option
@option("--lines", "Most entries of a kind; --json has all.", click.IntRange(0), _SHOWN)
@json_option
@operators_option
def redundancy(
    schema: Path | None,
    subscriptions: Path,
    strict: bool,
    lines: int,
    as_json: bool,
    modules: tuple[str, ...],
) -> int:
    """List the subscriptions of files that are redundant.

    These are copies of others, also if written in another way; those all of whose events another
    one matches too; those that never hold; and those that always hold. What is listed is true of
    every event that the schema allows. What could not be decided is listed as well, with the
    reason.

    Wrong subscriptions are left out and reported; --strict refuses the file. The exit code is 0 if
    nothing is redundant, 1 if something is, and 2 if something is refused.
    """
    from tamis.engine.redundancy.find_redundancy import of_table

    began = perf_counter()
    found = read_subscriptions(subscriptions)
    known = None if schema is None else Schema.load(schema)
    console = stderr_console()
    with (
        Engine(known, operators=declared_operators(modules)) as engine,
        bar(console, "Reading conditions") as shown,
    ):

        def progress(what: str, done: int, total: int) -> None:
            shown.describe(what)
            shown.update(done, total)

        report, refused = of_table(engine, found.table, progress)
    found = found.refuse(refused)
    found.check(subscriptions, strict=strict, empty=True)
    print_lines(console, found.report())
    if as_json:
        print_answer(report.to_dict(), as_json, "")
    else:
        shown_lines = [one_line(each) for each in report.lines(lines)]
        print_lines(stdout_console(), shown_lines)
        work = ", ".join(f"{many:,} {what}" for what, many in report.work.items())
        print_lines(console, [f"{perf_counter() - began:.1f} s: {work}"])
    return _FOUND if report.redundant else 0
