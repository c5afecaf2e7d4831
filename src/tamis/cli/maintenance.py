"""`tamis backup`, `restore` and `erase`: look after the data folder of a service."""

from __future__ import annotations

from pathlib import Path

import click

from tamis.cli.terminal.console import spinner, stderr_console
from tamis.cli.terminal.numbers import file_size
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import counted

FOLDER = click.Path(path_type=Path, file_okay=False)
EXISTING = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command()
@click.argument("folder", metavar="DATA", type=EXISTING)
@click.argument("out", type=FOLDER)
@click.option("--since", type=EXISTING, help="Share unchanged files with this earlier backup.")
@click.option(
    "--index", is_flag=True, help="Also copy the compiled subscriptions, for a faster first start."
)
@json_option
def backup(folder: Path, out: Path, since: Path | None, index: bool, as_json: bool) -> None:
    """Back up the data folder DATA into a new folder OUT. The service may be running.

    The backup holds the log up to one sequence number, the state database, the server key and the
    notifications. Whoever has it can make tickets, so keep it as safe as the data.
    """
    from tamis.broker.maintenance.backup import back_up

    with spinner(stderr_console(), "Backing up"):
        done = back_up(folder, out, since=since, index=index)
    shared = f", {file_size(done.shared)} of them shared with {since}" if since else ""
    files = counted(done.files, "file")
    text = f"{out}: the log up to {done.end:,}, {files}, {file_size(done.bytes)}{shared}"
    print_answer(done._asdict(), as_json, text)


@click.command()
@click.argument("backup", type=EXISTING)
@click.argument("folder", metavar="[DATA]", required=False, type=FOLDER)
@click.option("--check", is_flag=True, help="Only read the backup and check its checksums.")
@json_option
def restore(backup: Path, folder: Path | None, check: bool, as_json: bool) -> None:
    """Restore a backup into a new data folder DATA, and check every file."""
    from tamis.broker.maintenance.backup import restore as restore_backup

    if check == (folder is not None):
        raise click.UsageError("name the new data folder, or choose --check")
    with spinner(stderr_console(), "Reading the backup"):
        done = restore_backup(backup, folder)
    where = backup if folder is None else folder
    text = f"{where}: whole, the log up to {done.end:,}, {file_size(done.bytes)}"
    print_answer(done._asdict(), as_json, text)


@click.command()
@click.argument("folder", metavar="DATA", type=EXISTING)
@click.option("--owner", help="Erase everything that belongs to this owner.")
@click.option("--event", type=click.IntRange(0), help="Erase the event with this sequence number.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def erase(folder: Path, owner: str | None, event: int | None, yes: bool, as_json: bool) -> None:
    """Erase one owner or one event from the data folder DATA. Stop the service first.

    This cannot be undone. Sequence numbers do not change: a recorded gap replaces the erased rows.
    """
    from tamis.broker.maintenance.erasure import erase_event, erase_owner

    if (owner is None) == (event is None):
        raise click.UsageError("choose what to erase: --owner NAME or --event NUMBER")
    what = f"the owner {owner!r}" if event is None else f"the event {event}"
    if not yes:
        click.confirm(f"Erase {what} from {folder}, for good?", abort=True, err=True)
    with spinner(stderr_console(), "Erasing"):
        done = erase_owner(folder, str(owner)) if event is None else erase_event(folder, event)
    rows, records = counted(done.rows, "row"), counted(done.records, "record")
    notifications = counted(done.notifications, "notification")
    text = f"{folder}: erased {what}: {rows} of the log, {notifications}, {records}"
    print_answer(done._asdict(), as_json, text)
    for each in done.out_of_reach:
        click.echo(f"not reached: {each}", err=True)
