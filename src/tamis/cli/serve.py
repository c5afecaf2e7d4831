"""`tamis serve`: one process, one data folder."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--schema",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The schema of a new log (YAML or JSON).",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535))
def serve(folder: Path, schema: Path | None, host: str, port: int) -> None:
    """Serve the data in FOLDER over HTTP, until Ctrl-C.

    A new folder needs a schema. After a crash, the start recovers and says what it recovered.
    """
    from tamis.service.serve import serve as run
    from tamis.service.settings import Settings

    run(Settings(folder, host, port, schema), lambda text: click.echo(text, err=True))
