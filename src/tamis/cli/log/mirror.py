"""`tamis log mirror`: copy a log from PostgreSQL, for everything that reads folders."""

from __future__ import annotations

import time
from pathlib import Path

import click

_LOOK = 1.0  # seconds between two looks


@click.command()
@click.argument("url")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--follow", is_flag=True, help="Go on copying, until Ctrl-C.")
def mirror(url: str, folder: Path, follow: bool) -> None:
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
        log = SharedLog.copied(folder, session, document)
        click.echo(f"{folder}: {log.end:,} rows of {session.name}", err=True)
        while follow:
            time.sleep(_LOOK)
            try:
                log.follow()
            except UnavailableError as why:
                click.echo(f"{why}; tried again", err=True)
    finally:
        session.close()
