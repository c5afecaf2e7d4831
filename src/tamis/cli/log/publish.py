"""`tamis log create` and `tamis log publish`: a new log, and events for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa

from tamis import Schema
from tamis.cli.data.bad_events import REFUSE, BadEvents, absent_option, bad_option
from tamis.cli.data.events import STDIN, EventFiles
from tamis.cli.terminal.console import print_lines, stderr_console
from tamis.cli.terminal.options import PATH, log_argument, option
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.encode.encoder import Encoder
from tamis.errors import counted
from tamis.replay.event_source import READ
from tamis.replay.pipeline import BatchPace, ReadEvents, read_events
from tamis.store.changes import ID_TYPES
from tamis.store.log import Log
from tamis.store.published import JSON


@click.command()
@log_argument
@option(
    "--schema",
    "Schema of the events, YAML or JSON.  [default: events have any attributes]",
    PATH,
)
@option("--ids", "The ids of subscriptions.", click.Choice(list(ID_TYPES)), "text")
@json_option
def create(folder: Path, schema: Path | None, ids: str, as_json: bool) -> None:
    """Create an empty log in the folder LOG."""
    made = Log.create(folder, Schema.open() if schema is None else Schema.load(schema), ids)
    answer = {"log": made.folder, "ids": made.ids, "schema_version": made.schema_at().version}
    print_answer(answer, as_json, f"The log is {made.folder}.")


@click.command()
@log_argument
@click.argument("events", type=PATH)
@bad_option
@absent_option
@json_option
def publish(folder: Path, events: Path, bad: str, absent: tuple[str, ...], as_json: bool) -> None:
    """Append the events of the file or folder EVENTS to a log; - reads JSON lines.

    Formats are those of `tamis match`. Events are validated first: with --bad refuse, nothing is
    published if one is bad, except from standard input, where those before it are. Each block of
    events is on disk as a whole, or not at all.

    The exit code is 0 if all is well, 1 if --bad report has found bad events, and 2 if something is
    refused.
    """
    log = Log.open(folder)
    schema = log.schema_at()
    source, encoder = EventFiles(events, schema, absent), Encoder(schema)
    found = BadEvents(stderr_console(), bad)
    numbers: list[range] | None = None
    try:
        with stderr_console().status("Validating") as status:
            if bad == REFUSE and events != STDIN:
                for _ in _valid(source, encoder, found):
                    status.update(f"Validating, {source.read:.0%}")
            numbers = []
            for read in _valid(source, encoder, found):
                if len(read.valid):
                    numbers.append(log.publish(_stored(read)))
                status.update(f"Publishing, {source.read:.0%}")
    finally:  # what is published stays so, whatever happens
        if numbers is not None:
            _report(numbers, found.count, as_json)
    print_lines(stderr_console(), found.report())
    found.leave()


def _report(numbers: list[range], bad: int, as_json: bool) -> None:
    many = sum(map(len, numbers))
    text = counted(many, "event was published", "events were published")
    answer = {"published": many, "bad": bad}
    if many:
        first, last = numbers[0][0], numbers[-1][-1]
        answer |= {"first": first, "last": last}
        text += f", numbers {first:,} to {last:,}"
    print_answer(answer, as_json, f"{text}.")


def _valid(source: EventFiles, encoder: Encoder, found: BadEvents) -> Iterator[ReadEvents]:
    for read in read_events(source.chunks(), encoder, BatchPace(READ, READ)):
        found.take(source.bad(read))
        yield read
    found.take(source.bad())


def _stored(read: ReadEvents) -> pa.Table:
    """The valid rows as they came."""
    table = read.chunk.table
    if read.valid.refused:
        table = table.take(pa.array(read.valid.rows))
    if read.chunk.lines is None:
        return table
    return pa.table({JSON: table[JSON].cast(pa.string())})
