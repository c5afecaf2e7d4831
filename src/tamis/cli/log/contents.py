"""`tamis log tail` and `tamis log stats`: look into a log."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import click
import pyarrow as pa

from tamis.cli.terminal.console import spinner, stderr_console, stdout_console
from tamis.cli.terminal.numbers import file_size
from tamis.cli.terminal.options import log_argument
from tamis.cli.terminal.outcomes import json_option, json_text, print_answer
from tamis.cli.terminal.tables import table as text_table
from tamis.store.log import SEGMENTS, Log
from tamis.store.pack import CHANGES, EVENTS, SCHEMAS, appended
from tamis.store.published import JSON, RESERVED
from tamis.store.subscription_snapshot import SubscriptionSnapshot

_POLL = 0.2  # seconds
_LAST = 10  # events
# What Arrow and Python raise for values that Python cannot hold, such as the year 20000.
_UNREADABLE = (ValueError, ArithmeticError, KeyError, pa.ArrowException)


@click.command()
@log_argument
@click.option("--from", "from_", type=click.IntRange(0), help="Begin at this sequence number.")
@click.option(
    "-n", "--events", "many", type=click.IntRange(0), help=f"Last events.  [default: {_LAST}]"
)
@click.option("-f", "--follow", is_flag=True, help="Go on with events as they come, until Ctrl-C.")
@click.option("--plain", is_flag=True, help="Print the events alone, as they were published.")
def tail(folder: Path, from_: int | None, many: int | None, follow: bool, plain: bool) -> None:
    """Print the last events of a log as JSON lines: `sequence` and `event`.

    With --from, all events from a number on are printed, or the first of them with -n.
    """
    log = Log.open(folder)
    end = log.end
    start = _last(log, _LAST if many is None else many) if from_ is None else from_
    left = many if from_ is not None else None
    out = sys.stdout.buffer
    while True:
        for line in _lines(log, start, end, plain):
            if left == 0:
                return
            out.write(line)
            left = None if left is None else left - 1
        out.flush()
        if not follow or left == 0:
            return
        start = end
        while (end := log.end) == start:
            sleep(_POLL)


def _last(log: Log, many: int) -> int:
    """The sequence number from which on there are so many events."""
    start = log.end
    for section in reversed(log.boundaries(log.begin)):
        if many <= 0:
            break
        if section.kind == EVENTS:
            start = max(section.first, section.end - many)
            many -= section.end - start
    return start


def _lines(log: Log, start: int, end: int, plain: bool) -> Iterator[bytes]:
    for first, rows in log.events(start, end):
        for at, row in enumerate(_rows(rows)):
            reserved = {name: row.pop(name) for name in RESERVED if name in row}
            event = _parsed(row[JSON]) if list(row) == [JSON] else row
            found = event if plain else {"sequence": first + at, "event": event, **reserved}
            yield json_text(found).encode() + b"\n"


def _rows(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows with the attributes that they bind."""
    columns = [_values(column) for column in rows.columns]
    for values in zip(*columns, strict=True):
        named = zip(rows.column_names, values, strict=True)
        yield {name: value for name, value in named if value is not None}


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return column.to_pylist()
    except _UNREADABLE:
        return [f"a value of the type {column.type}"] * len(column)


def _parsed(text: str) -> Any:
    """The event of a line of JSON; a line that is not JSON as text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@click.command()
@log_argument
@json_option
def stats(folder: Path, as_json: bool) -> None:
    """Count what a log holds: events, changes, live subscriptions, bytes."""
    log = Log.open(folder)
    end = log.end
    counts: Counter[str] = Counter()
    for section in log.boundaries(log.begin, end):
        counts[section.kind] += section.end - section.first
    snapshot = SubscriptionSnapshot()
    with spinner(stderr_console(), "Reading the log"):
        snapshot.fold(log.changes(0, end), end)
    files = [each for each in (log.folder / SEGMENTS).iterdir() if each.is_file()]
    times = _times(log, end)
    facts: dict[str, Any] = {
        "log": str(log.folder),
        "format": log.format,
        "ids": log.ids,
        "schema_version": log.schema_at().version,
        "begin": log.begin,
        "end": end,
        "events": counts[EVENTS],
        "changes": counts[CHANGES],
        "schemas": counts[SCHEMAS],
        "subscriptions": len(snapshot),
        "leases": sum(each.until is not None for each in snapshot.values()),
        "files": len(files),
        "bytes": sum(each.stat().st_size for each in files),
        **times,
    }
    if as_json:
        print_answer(facts, as_json, "")
        return
    facts["bytes"] = file_size(facts["bytes"])
    rows = [
        (name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
        for name, value in facts.items()
    ]
    stdout_console().print(text_table("lw", ("", ""), rows))


def _times(log: Log, end: int) -> dict[str, str]:
    """When the first and the last events were appended."""
    sections = [each for each in log.boundaries(log.begin, end) if each.kind == EVENTS]
    found = {}
    for name, each in zip(
        ("first_event", "last_event"), (sections[:1], sections[-1:]), strict=True
    ):
        for section in each:
            _, rows = next(log.events(section.first, section.end))
            found[name] = appended(rows).isoformat()
    return found
