"""`tamis log verify`, `repair`, `trim`, `extend`, `schema` and `upgrade`: look after a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from tamis.cli.terminal.console import bar, spinner, stderr_console, stdout_console
from tamis.cli.terminal.numbers import file_size
from tamis.cli.terminal.options import log_argument
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.cli.terminal.tables import table
from tamis.errors import counted

if TYPE_CHECKING:
    from tamis.store.verification import LogReport

_SHOWN = 20  # findings
_DAMAGED = 1  # exit code


@click.command()
@log_argument
@json_option
def verify(folder: Path, as_json: bool) -> None:
    """Read all of a log, and say what is damaged or lost.

    The exit code is 0 if nothing is wrong, and 1 otherwise. Others may use the log meanwhile.
    """
    from tamis.store.log import Log
    from tamis.store.verification import Verification

    verification = Verification(Log.open(folder))
    console = stdout_console()
    with bar(console, "segments") as progress:
        for done, total in verification.steps():
            progress.update(done, total)
    report = verification.report()
    if as_json:
        print_answer(_document(report), as_json, "")
    else:
        _show(console, report)
    raise click.exceptions.Exit(0 if report.good else _DAMAGED)


@click.command()
@log_argument
@click.option(
    "--skip-lost",
    is_flag=True,
    help="Go on without the rows that are lost. The log records it.",
)
@click.option("--reason", default="", help="Why, for the record.")
@json_option
def repair(folder: Path, skip_lost: bool, reason: str, as_json: bool) -> None:
    """Mend a damaged log, while nobody appends to it.

    The head of the log is written anew, and files that do not belong there are put aside. Lost rows
    cannot come back: put the damaged file back from a backup, or choose --skip-lost. Damaged files
    are kept in the folder `damaged` of the log.
    """
    from tamis.store.log import Log
    from tamis.store.repair import repair as repair_log

    opened = Log.open(folder)
    with spinner(stderr_console(), "Reading the log"):
        report = repair_log(opened, skip_lost=skip_lost, reason=reason)
    if as_json:
        print_answer(_document(report), as_json, "")
        return
    console = stdout_console()
    _show(console, report)
    if not report.good:
        kept = " The damaged files are in its folder `damaged`." if report.lost else ""
        console.print(Text(f"The log is whole again.{kept}"))


@click.command()
@log_argument
@click.argument("before", type=click.IntRange(0))
@json_option
def trim(folder: Path, before: int, as_json: bool) -> None:
    """Delete old rows: those before the sequence number BEFORE.

    Subscriptions that are live stay live. Whole segments are deleted, so the log may begin a little
    earlier. Do not trim what a stream has not read yet. The data folder of a service refuses to
    trim what is not matched yet.
    """
    from tamis.replay.matching_shifts import MatchingShifts
    from tamis.store.log import Log

    log = Log.open(folder)
    MatchingShifts(log.folder.parent).check_trim(log, before)
    with spinner(stderr_console(), "Trimming"):
        begin = log.trim(before)
    print_answer({"begin": begin}, as_json, f"The log now begins at {begin:,}.")


@click.command()
@log_argument
@click.argument("schema", type=click.Path(path_type=Path))
@json_option
def extend(folder: Path, schema: Path, as_json: bool) -> None:
    """Extend the schema of a log: SCHEMA is a YAML or JSON file with the whole new schema.

    It applies to what is appended from now on. Running streams follow it. A schema only grows: by
    domains, attributes, event types, optional attributes of event types, and values of domains. Any
    other change is refused. `tamis log schema` prints the present one.
    """
    from tamis.model.schema import Schema
    from tamis.store.log import Log

    opened = Log.open(folder)
    number = opened.extend(Schema.load(schema))
    version = opened.schema_at().version
    text = f"Version {version} of the schema applies after {number:,}."
    print_answer({"version": version, "after": number}, as_json, text)


@click.command()
@log_argument
@json_option
def schema(folder: Path, as_json: bool) -> None:
    """Print the schema of a log, as YAML: what it has now, to edit and to extend."""
    from tamis.store.log import Log

    found = Log.open(folder).schema_at()
    print_answer(found.to_dict(), as_json, found.to_yaml().rstrip("\n"))


@click.command()
@log_argument
@json_option
def upgrade(folder: Path, as_json: bool) -> None:
    """Rewrite a log of an earlier format in the current one, while nobody appends to it.

    Sequence numbers stay, so streams go on where they were. If this is interrupted, run it again.
    """
    from tamis.store.earlier.upgrade import upgrade as upgrade_log
    from tamis.store.log import Log

    console = stdout_console()
    before = Log.open(folder).format
    with bar(console, "rows") as progress:
        for done, total in upgrade_log(folder):
            progress.update(done, total)
    after = Log.open(folder).format
    same = f"The log has format {after} already."
    text = same if before == after else f"The log now has format {after}."
    print_answer({"format": after, "upgraded": before != after}, as_json, text)


def _show(console: Console, report: LogReport) -> None:
    packs = counted(report.packs, "pack")
    read = f"{counted(report.rows, 'row')} in {packs}, {file_size(report.bytes)}"
    if report.good:
        console.print(Text(f"{read}: nothing is wrong."))
        return
    shown = report.findings[:_SHOWN]
    more = len(report.findings) - len(shown)
    caption = f"and {more:,} more" if more else ""
    console.print(table("lw", ("file", "what is wrong"), shown, caption))
    lost = sum(each.end - each.first for each in report.lost)
    console.print(Text(f"{read} are whole; {counted(lost, 'row is', 'rows are')} lost."))


def _document(report: LogReport) -> dict[str, object]:
    return {
        "good": report.good,
        "rows": report.rows,
        "packs": report.packs,
        "bytes": report.bytes,
        "findings": [each._asdict() for each in report.findings],
        "lost": [{"first": each.first, "end": each.end} for each in report.lost],
    }
