"""`tamis tail`: follow notifications."""

from __future__ import annotations

import click
import msgspec

from tamis.cli.service.connection import connected, service_command, ticket_option


@click.command()
@click.argument("id", required=False)
@ticket_option
@click.option(
    "--after",
    type=click.IntRange(min=-1),
    metavar="CURSOR",
    help="Begin after this sequence number; -1: at the beginning.  [default: what comes from now]",
)
@click.option("--most", type=click.IntRange(min=1), help="End after so many notifications.")
@service_command
def tail(
    id: str | None,
    ticket: str | None,
    after: int | None,
    most: int | None,
    server: str,
    as_json: bool,
) -> None:
    """Print notifications as they come, until Ctrl-C: of the subscription ID, or of all your own.

    A line has the sequence number, the subscription and the event; with --json, it is an object. A
    service that restarts is waited for.
    """
    with connected(server) as client:
        left = most
        for each in client.notifications(id, ticket=ticket, after=after):
            if as_json:
                click.echo(msgspec.json.encode(each).decode())
            else:
                event = msgspec.json.encode(each.event).decode()
                click.echo(f"{each.sequence}  {each.subscription}  {event}")
            if left is not None:
                left -= 1
                if not left:
                    return
