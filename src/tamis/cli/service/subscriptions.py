"""`tamis subscribe`, `tamis renew` and `tamis unsubscribe`."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import click

from tamis.cli.service.connection import (
    connected,
    lease_option,
    service_command,
    ticket_option,
)
from tamis.cli.terminal.outcomes import print_answer
from tamis.errors import TamisError


@click.command()
@click.argument("condition")
@lease_option
@click.option("--name", help="Name of the subscription, for people.")
@click.option("--sink", metavar="URL", help="Send notifications to this webhook.")
@click.option("--metadata", metavar="JSON", help="JSON object to store with the subscription.")
@click.option("--language", default="tamis", show_default=True, help="Language of CONDITION.")
@click.option("--id", help="Id of the subscription, only for logs with text ids.")
@service_command
def subscribe(
    condition: str,
    lease: timedelta | None,
    name: str | None,
    sink: str | None,
    metadata: str | None,
    language: str,
    id: str | None,
    server: str,
    as_json: bool,
) -> None:
    """Subscribe to the events that satisfy CONDITION.

    Prints the id and the ticket. The ticket is not shown again: it is needed to renew, to
    unsubscribe and to read notifications, unless you call with a key.
    """
    with connected(server) as client:
        made = client.subscribe(
            condition,
            lease=lease,
            name=name,
            sink=sink,
            metadata=_object(metadata),
            language=language,
            id=id,
        )
    lines = [f"id      {made.id}", f"ticket  {made.ticket}", f"until   {_when(made.until)}"]
    if made.secret is not None:
        lines.append(f"secret  {made.secret}")
    print_answer(made, as_json, "\n".join(lines))


@click.command()
@click.argument("id")
@ticket_option
@lease_option
@service_command
def renew(id: str, ticket: str | None, lease: timedelta | None, server: str, as_json: bool) -> None:
    """Renew the lease of the subscription ID, counted from now."""
    with connected(server) as client:
        found = client.renew(id, lease, ticket=ticket)
    print_answer(found, as_json, f"until {_when(found.until)}")


@click.command()
@click.argument("id")
@ticket_option
@service_command
def unsubscribe(id: str, ticket: str | None, server: str, as_json: bool) -> None:
    """End the subscription ID."""
    with connected(server) as client:
        client.cancel(id, ticket=ticket)
    print_answer({"cancelled": id}, as_json, f"{id} has ended")


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as why:
        raise TamisError(f"--metadata: is not JSON: {why}") from None
    if not isinstance(found, dict):
        raise TamisError('--metadata: is a JSON object, such as \'{"for": "ann"}\'')
    return found


def _when(until: datetime | None) -> str:
    return "never" if until is None else f"{until:%Y-%m-%d %H:%M:%S} UTC"
