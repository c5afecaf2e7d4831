"""`tamis publish`: events of files to a running service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from tamis import Schema
from tamis.cli.data.bad_events import BadEvents, absent_option, bad_option
from tamis.cli.data.events import FORMATS, EventFiles, check_events, event_of
from tamis.cli.service.connection import connected, service_command
from tamis.cli.terminal.console import print_lines, stderr_console
from tamis.cli.terminal.numbers import rate
from tamis.cli.terminal.options import PATH, WholeNumber
from tamis.cli.terminal.outcomes import print_answer
from tamis.encode.encoder import Encoder
from tamis.errors import TamisError, counted
from tamis.replay.event_source import READ
from tamis.replay.pipeline import BatchPace, ReadEvents, read_events

if TYPE_CHECKING:
    from tamis.client.event_batches import AnyEvent


@click.command(
    help=f"""Publish the events in files or folders. - reads JSON lines from standard input.

    Formats: {" ".join(FORMATS)}. Events are first checked against the schema of the service. Each
    request is published as a whole or not at all. If one fails, earlier requests stay published.

    With --source and --id, each event is published once, even if you run the command again soon:
    the service remembers the source and the id for ten minutes.

    The exit code is 0 if all is well, 1 if --bad report has found bad events, and 2 if something is
    refused.
    """
)
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("--source", help="Who publishes, such as /shop/7; needs --id.")
@click.option("--id", "column", help="Attribute that identifies an event of the source.")
@click.option(
    "--batch", type=WholeNumber(), default=1000, show_default=True, help="Events in each request."
)
@bad_option
@absent_option
@service_command
def publish(
    files: tuple[Path, ...],
    source: str | None,
    column: str | None,
    batch: int,
    bad: str,
    absent: tuple[str, ...],
    server: str,
    as_json: bool,
) -> None:
    if (source is None) != (column is None):
        raise click.UsageError("--source and --id go together.")
    for path in files:
        check_events(path)
    console, begun = stderr_console(), perf_counter()
    found = BadEvents(console, bad)
    counts = {"published": 0, "duplicates": 0}
    with connected(server) as client, console.status("Publishing") as status:
        schema = Schema.from_dict(client.schema())
        encoder = Encoder(schema)
        for path in files:
            given = EventFiles(path, schema, absent)
            events = _events(given, encoder, found, source, column)
            for receipt in client.publish_all(events, most=batch):
                counts["published"] += receipt.count - receipt.duplicates
                counts["duplicates"] += receipt.duplicates
                so_far = counted(counts["published"], "event")
                status.update(f"{path}: {given.read:.0%}, {so_far}")
    seconds = perf_counter() - begun
    many, twice = counts.values()
    known = f"; {counted(twice, 'was', 'were')} there already" if twice else ""
    text = f"{counted(many, 'event')} in {seconds:.1f} s, {rate(many, seconds)}{known}"
    print_answer({**counts, "bad": found.count}, as_json, text)
    print_lines(console, found.report())
    found.leave()


def _events(
    given: EventFiles, encoder: Encoder, found: BadEvents, source: str | None, column: str | None
) -> Iterator[AnyEvent]:
    """The valid events of files, as they came."""
    from tamis.client.event_batches import SourcedEvent

    for read in read_events(given.chunks(), encoder, BatchPace(READ, READ)):
        found.take(given.bad(read))
        for at in range(len(read.valid)):
            event = _plain(read, at)
            if source is None or column is None:
                yield event
                continue
            id = event.get(column)
            if id is None or isinstance(id, dict | list):
                raise TamisError(f"{given.place(int(read.numbers[at]))}: has no {column!r}")
            yield SourcedEvent(event, source, str(id))
    found.take(given.bad())


def _plain(read: ReadEvents, at: int) -> dict[str, Any]:
    """An event without absent cells, of values that JSON has."""
    event: dict[str, Any] = event_of(read, at)
    if read.chunk.lines is not None:
        return event
    kept = {name: value for name, value in event.items() if value is not None}
    return dict(json.loads(json.dumps(kept, default=_written)))


def _written(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
