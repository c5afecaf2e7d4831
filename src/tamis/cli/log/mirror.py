"""`tamis log mirror`, `upload` and `download`: logs in PostgreSQL and in folders."""

from __future__ import annotations

import time
from pathlib import Path

import click

from tamis.cli.terminal.console import spinner, stderr_console
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import counted

_LOOK = 1.0  # seconds between two looks


@click.command()
@click.argument("url")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--follow", is_flag=True, help="Go on copying, until Ctrl-C.")
@json_option
def mirror(url: str, folder: Path, follow: bool, as_json: bool) -> None:
    """Copy the log in the PostgreSQL at URL into FOLDER, byte by byte.

    Spark and all other readers of logs can read the copy. Nobody can append to it. A copy that was
    interrupted goes on where it ended.
    """
    from tamis.errors import UnavailableError
    from tamis.store.postgresql.session import Session
    from tamis.store.postgresql.shared_log import SharedLog, refuse_another, shared_document

    session = Session(url)
    try:
        document = shared_document(session)
        refuse_another(folder, document, session.name)
        with spinner(stderr_console(), "Copying"):
            log = SharedLog.copied(folder, session, document)
        text = f"{folder}: {counted(log.end, 'row')} of {session.name}"
        print_answer({"folder": folder, "rows": log.end}, as_json, text)
        while follow:
            time.sleep(_LOOK)
            try:
                log.follow()
            except UnavailableError as why:
                click.echo(f"{why}; tried again", err=True)
    finally:
        session.close()


@click.command()
@click.argument("data", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("url")
@json_option
def upload(data: Path, url: str, as_json: bool) -> None:
    """Move the data folder DATA into the PostgreSQL at URL, which has no log yet.

    The service must not run. Start it with --database URL then: DATA holds copies from now on.
    """
    from tamis.broker.maintenance import move_log

    with spinner(stderr_console(), "Moving"):
        moved = move_log.upload(data, url)
    print_answer(moved._asdict(), as_json, f"{moved}; start the service with --database")


@click.command()
@click.argument("url")
@click.argument("data", type=click.Path(path_type=Path, file_okay=False))
@json_option
def download(url: str, data: Path, as_json: bool) -> None:
    """Move the log in the PostgreSQL at URL into the data folder DATA, with everything else.

    No service may run. DATA has the server.key of the services: a folder of one of them, or a new
    one. Start the service without --database then. The database stays as it is.
    """
    from tamis.broker.maintenance import move_log

    with spinner(stderr_console(), "Moving"):
        moved = move_log.download(url, data)
    print_answer(moved._asdict(), as_json, f"{moved}; start the service without --database")
