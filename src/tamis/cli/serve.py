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
@click.option(
    "--keys/--anonymous",
    default=None,
    help="Whether callers need a key. The default: only if others than this machine can call.",
)
@click.option(
    "--allow-sink",
    "allowed",
    multiple=True,
    metavar="HOST",
    help="Also send webhooks to this address, network or host; may be repeated.",
)
@click.option("--rebuild", is_flag=True, help="Build the state database anew from the log.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535))
def serve(
    folder: Path,
    schema: Path | None,
    keys: bool | None,
    allowed: tuple[str, ...],
    rebuild: bool,
    host: str,
    port: int,
) -> None:
    """Serve the data in FOLDER over HTTP, until Ctrl-C.

    A new folder needs a schema. After a crash, the start recovers and says what it recovered.
    `tamis keys create` makes the first key.
    """
    from tamis.service.serve import serve as run
    from tamis.service.settings import Settings, is_loopback

    anonymous = is_loopback(host) if keys is None else not keys
    settings = Settings(
        folder, host, port, schema, anonymous=anonymous, rebuild=rebuild, allow_sinks=allowed
    )
    run(settings, lambda text: click.echo(text, err=True))
