"""`tamis dead`: dead letters, which are webhooks that were given up."""

from __future__ import annotations

import click

from tamis.cli.service.connection import connected, service_command, ticket_option
from tamis.cli.terminal.console import stdout_console
from tamis.cli.terminal.outcomes import print_answer
from tamis.cli.terminal.tables import table
from tamis.errors import counted


@click.group()
def dead() -> None:
    """List and retry dead letters: webhooks that no attempt could deliver."""


@dead.command("list")
@service_command
def list_letters(server: str, as_json: bool) -> None:
    """List your dead letters, oldest first. An admin sees those of all owners.

    --json prints an object on each line.
    """
    rows = []
    with connected(server) as client:
        after: int | None = 0
        while after is not None:
            page = client.dead_letters(after=after, most=1000)
            after = page.cursor
            for each in page.dead_letters:
                if as_json:
                    print_answer(each, as_json, "")
                number = "lease" if each.sequence is None else str(each.sequence)
                died = f"{each.moment:%Y-%m-%d %H:%M}"
                rows.append([str(each.id), str(each.subscription), number, died, each.error])
    if not as_json:
        headings = ("id", "subscription", "event", "given up", "why")
        stdout_console().print(table("rrrls", headings, rows, f"{len(rows):,} dead letters"))


@dead.command()
@click.argument("id", type=click.IntRange(0))
@ticket_option
@service_command
def retry(id: int, ticket: str | None, server: str, as_json: bool) -> None:
    """Retry the dead letter ID, with a full series of attempts."""
    with connected(server) as client:
        replayed = client.retry_dead_letter(id, ticket=ticket)
    print_answer({"replayed": replayed}, as_json, f"{id} is tried again")


@dead.command()
@click.argument("subscription")
@ticket_option
@service_command
def replay(subscription: str, ticket: str | None, server: str, as_json: bool) -> None:
    """Retry all dead letters of a subscription."""
    with connected(server) as client:
        replayed = client.replay(subscription, ticket=ticket)
    print_answer(
        {"replayed": replayed}, as_json, counted(replayed, "is tried again", "are tried again")
    )
