"""`tamis keys`: create, list and revoke the API keys of a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tamis.errors import BrokerError

if TYPE_CHECKING:
    from tamis.broker.access.api_keys import ApiKeys

FOLDER = click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))


@click.group()
def keys() -> None:
    """Look after the API keys of the service in FOLDER. It may be running."""


@keys.command()
@FOLDER
@click.option("--name", required=True, help="Who calls with the key: the owner of subscriptions.")
@click.option("--role", "roles", multiple=True, required=True, help="publisher, subscriber, admin.")
def create(folder: Path, name: str, roles: tuple[str, ...]) -> None:
    """Create a key and print it. It is not shown again."""
    with _keys(folder) as found:
        click.echo(found.create(name, roles))


@keys.command("list")
@FOLDER
def list_keys(folder: Path) -> None:
    """List the keys, without their secrets."""
    with _keys(folder) as found:
        for each in found.list():
            created = datetime.fromtimestamp(each.created / 1e6, UTC)
            click.echo(f"{each.id}  {created:%Y-%m-%d %H:%M}  {each.name}  {', '.join(each.roles)}")


@keys.command()
@FOLDER
@click.argument("key")
def revoke(folder: Path, key: str) -> None:
    """End the key with this id at once."""
    with _keys(folder) as found:
        found.revoke(key)


@contextmanager
def _keys(folder: Path) -> Iterator[ApiKeys]:
    from tamis.broker.access.api_keys import ApiKeys
    from tamis.broker.data_folder import DataFolder
    from tamis.broker.state import State
    from tamis.store.log import Log

    places = DataFolder(folder)
    if not places.state.exists():
        raise BrokerError(f"{folder}: is not a data folder; `tamis serve` makes one")
    log = Log.open(places.log)
    state = State(places.state, log.ids, str(log.identity))
    try:
        yield ApiKeys(state)
    finally:
        state.close()
