"""`tamis tail`: follow notifications."""

from __future__ import annotations

import click

from tamis.cli.service.connection import connected, service_command, ticket_option
from tamis.cli.terminal.outcomes import json_text


@click.command()
@click.argument("id", required=False)
@ticket_option
@click.option(
    "--after",
    type=click.IntRange(min=-1),
    metavar="CURSOR",
    help="Begin after this sequence number, or at the start with -1.  [default: from now on]",
)
@click.option("--most", type=click.IntRange(min=1), help="Stop after this many notifications.")
@service_command
def tail(
    id: str | None,
    ticket: str | None,
    after: int | None,
    most: int | None,
    server: str,
    as_json: bool,
) -> None:
    """Print notifications of the subscription ID, or of all your own, until Ctrl-C.

    A line has the sequence number, the subscription and the event; with --json, it is an object. If
    the service restarts, the command waits for it.
    """
    with connected(server) as client:
        left = most
        for each in client.notifications(id, ticket=ticket, after=after):
            if as_json:
                click.echo(json_text(each))
            else:
                event = json_text(each.event)
                click.echo(f"{each.sequence}  {each.subscription}  {event}")
            if left is not None:
                left -= 1
                if not left:
                    return
