"""The service that a command calls."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.terminal.outcomes import json_option
from tamis.errors import TamisError
from tamis.service.configuration.kinds import kind_of

if TYPE_CHECKING:
    from tamis.client import Client

NEVER = "never"
SERVER, KEY = "TAMIS_SERVER", "TAMIS_KEY"
URL = "http://127.0.0.1:8080"


class _LeaseType(click.ParamType[timedelta | None]):
    """How long a lease lasts; None: it does not end."""

    name = "span"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta | None:
        if value == NEVER:
            return None
        try:
            found: timedelta = kind_of(timedelta).read(value)
        except ValueError as why:
            self.fail(f"{value!r} {why}, or {NEVER}", param, ctx)
        return found


server_option = click.option(
    "--server",
    envvar=SERVER,
    default=URL,
    show_default=True,
    metavar="URL",
    help=f"URL of the service; the variable {SERVER} does the same.",
)
ticket_option = click.option(
    "--ticket", help="Ticket of the subscription. Owners, who call with a key, need no ticket."
)
lease_option = click.option(
    "--lease",
    type=_LeaseType(),
    default="1d",
    show_default=True,
    metavar="SPAN",
    help="How long the subscription lasts: 90s, 12h, 7d, or never for no end.",
)


@contextmanager
def connected(server: str) -> Iterator[Client]:
    """A client. The key is in the environment: other users can see the options of a process."""
    from tamis.client import Client
    from tamis.client.service_error import UnreachableError

    try:
        with Client(server, key=os.environ.get(KEY) or None) as client:
            yield client
    except UnreachableError as why:
        said = re.sub(r"\[Errno -?\d+\] ", "", str(why))
        hint = "tamis serve starts a service; --server or TAMIS_SERVER names another one"
        raise TamisError(f"{server}: {said}\n{hint}") from None


def at_most_one(context: click.Context, parameter: click.Parameter, given: tuple[Any, ...]) -> Any:
    """A path before other arguments, which may be left out: a running service is asked then."""
    if len(given) > 1:
        raise click.UsageError("there are too many arguments; put a condition in quotes", context)
    return given[0] if given else None


def service_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that calls a service."""
    return server_option(json_option(command))
