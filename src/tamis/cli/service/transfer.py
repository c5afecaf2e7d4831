"""`tamis import` and `tamis export`: files of subscriptions to and from a service."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa

from tamis.cli.data.formats import check_not_input
from tamis.cli.data.outputs import OUTPUTS, check_output, stdout_lines, table_output
from tamis.cli.data.subscription_rows import (
    CONDITION,
    DETAILS,
    FORMATS,
    ID,
    PREDICATES,
    RefusedSubscription,
)
from tamis.cli.data.subscriptions import SubscriptionTable, read_subscriptions, strict_option
from tamis.cli.service.connection import connected, service_command
from tamis.cli.terminal.console import print_lines, spinner, stderr_console
from tamis.cli.terminal.numbers import rate
from tamis.cli.terminal.options import PATH, WholeNumber
from tamis.cli.terminal.outcomes import json_text, print_answer
from tamis.errors import TamisError, counted

if TYPE_CHECKING:
    from tamis.client import Client

_NDJSON = "application/x-ndjson"
_PATH = "/v1/subscriptions"
_BATCH = 10_000  # subscriptions in a request


@click.command(
    "import",
    help=f"""Subscribe to all conditions in FILE, or in a folder of files.

    Formats: {" ".join(FORMATS)}. Wrong subscriptions are reported and left out; with --strict, they
    refuse the whole file. If the ids of the service are numbers, it chooses new ones; --out writes
    them with the tickets.
    """,
)
@click.argument("file", type=PATH)
@click.option("--out", type=PATH, help=f"Write ids and tickets to this file: {' '.join(OUTPUTS)}.")
@click.option(
    "--key", help="Name of this import. Run again with the same name, it adds nothing twice."
)
@click.option(
    "--batch",
    type=WholeNumber(),
    default=_BATCH,
    show_default=True,
    help="Subscriptions in each request.",
)
@strict_option
@service_command
def import_file(
    file: Path,
    out: Path | None,
    key: str | None,
    batch: int,
    strict: bool,
    server: str,
    as_json: bool,
) -> None:
    check_output(out)
    if out is not None:
        check_not_input(out, (file,))
    console, begun = stderr_console(), perf_counter()
    with spinner(console, "Reading"):
        found = read_subscriptions(file)
        if PREDICATES in found.table.column_names:
            raise TamisError(f"{file}: a service takes conditions in text, not predicates")
        found.check(file, strict=strict)
    answers: list[pa.Table] = []
    added = 0
    try:
        with connected(server) as client, console.status("Importing") as status:
            for at, lines in _batches(found, batch):
                name = f"{key or secrets.token_hex(16)}-{at}"
                answer = _send(client, lines, name)
                kept = [each for each in answer if "error" not in each]
                wrong = [
                    RefusedSubscription(found.places[at + each["line"] - 1], each["error"])
                    for each in answer
                    if "error" in each
                ]
                found.refused.extend(wrong)
                added += len(kept)
                answers.append(_answers(found, at, kept))
                status.update(f"{file}: {added:,} of {found.table.num_rows:,}")
    finally:
        if out is not None and answers:  # after a failure too: nobody gives a ticket again
            with table_output(out) as write:
                for table in answers:
                    write(table)
    seconds = perf_counter() - begun
    text = f"{counted(added, 'subscription')} in {seconds:.1f} s, {rate(added, seconds)}"
    print_answer({"added": added, "refused": len(found.refused)}, as_json, text)
    print_lines(console, found.report())


def _batches(found: SubscriptionTable, size: int) -> Iterator[tuple[int, bytes]]:
    """The first row of each batch, and its rows as lines."""
    names = [name for name in (ID, CONDITION, *DETAILS) if name in found.table.column_names]
    for at in range(0, found.table.num_rows, size):
        rows = found.table.slice(at, size).select(names).to_pylist()
        lines = (
            json_text({name: value for name, value in row.items() if value is not None})
            for row in rows
        )
        yield at, "\n".join(lines).encode()


def _send(client: Client, lines: bytes, key: str) -> list[dict[str, Any]]:
    import msgspec

    from tamis.client.call import ServiceCall

    decode = msgspec.json.Decoder(dict[str, Any]).decode_lines
    headers = {"Content-Type": _NDJSON, "Idempotency-Key": key}
    return client.perform(
        ServiceCall(
            "POST", f"{_PATH}/bulk", decode, headers=headers, content=lines, repeatable=True
        )
    )


def _answers(found: SubscriptionTable, at: int, kept: list[dict[str, Any]]) -> pa.Table:
    """Ids before and after, and tickets."""
    rows = pa.array([at + each["line"] - 1 for each in kept], pa.int64())
    columns = {"from": found.table[ID].take(rows).cast(pa.string())}
    for name in (ID, "ticket", "until", "secret"):
        texts = [None if each.get(name) is None else str(each[name]) for each in kept]
        columns[name] = pa.chunked_array([pa.array(texts, pa.string())])
    return pa.table(columns)


@click.command("export")
@click.option(
    "--out",
    type=PATH,
    help=f"Write to this file: {' '.join(OUTPUTS)}.  [default: JSON lines to standard output]",
)
@click.option("--owner", help="Only those of this owner; for admins.")
@click.option("--after", help="Only those after this id, to continue an interrupted export.")
@service_command
def export_file(
    out: Path | None, owner: str | None, after: str | None, server: str, as_json: bool
) -> None:
    """Write your live subscriptions; for an admin, those of all owners.

    `tamis import` and all other commands that take subscriptions read the file.
    """
    check_output(out)
    console, begun = stderr_console(), perf_counter()
    count = 0
    with connected(server) as client, console.status("Exporting") as status:
        pages = _pages(client, owner, after)
        if out is None:
            for page in pages:
                stdout_lines(page)
            return
        with table_output(out) as write:
            for page in pages:
                write(page)
                count += page.num_rows
                status.update(f"{out}: {count:,}")
    seconds = perf_counter() - begun
    text = f"{counted(count, 'subscription')} in {seconds:.1f} s, {rate(count, seconds)}"
    print_answer({"exported": count}, as_json, text)


def _pages(client: Client, owner: str | None, after: str | None) -> Iterator[pa.Table]:
    import msgspec

    from tamis.client.call import ServiceCall

    decode = msgspec.json.Decoder(dict[str, Any]).decode_lines
    names = (CONDITION, *DETAILS)
    while True:
        params = {"most": str(_BATCH)}
        params |= {} if owner is None else {"owner": owner}
        params |= {} if after is None else {"cursor": after}
        rows = client.perform(
            ServiceCall("GET", _PATH, decode, params, {"Accept": _NDJSON}, repeatable=True)
        )
        if rows:
            kind = pa.int64() if isinstance(rows[0][ID], int) else pa.string()
            columns = {ID: pa.array([row[ID] for row in rows], kind)}
            for name in names:
                columns[name] = pa.array([row.get(name) for row in rows], pa.string())
            yield pa.table(columns)
            after = str(rows[-1][ID])
        if len(rows) < _BATCH:
            return
