"""`tamis keys`: create, list and revoke the API keys of a service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from tamis.cli.service.connection import at_most_one, connected, service_command
from tamis.cli.terminal.outcomes import print_answer
from tamis.client.answers import KeyInfo
from tamis.errors import BrokerError

if TYPE_CHECKING:
    from tamis.broker.access.api_keys import ApiKeys

_folder_argument = click.argument(
    "folder", metavar="[FOLDER]", nargs=-1, type=click.Path(path_type=Path), callback=at_most_one
)

_database_option = click.option(
    "--database",
    envvar="TAMIS_DATABASE",
    help="PostgreSQL database that services share, in place of FOLDER.",
)


class KeyPlace(Protocol):
    """Where keys are: in the data folder of a service, or at a service that runs."""

    def create_key(self, name: str, roles: Sequence[str]) -> str: ...
    def list_keys(self) -> Sequence[KeyInfo]: ...
    def revoke_key(self, id: str) -> None: ...


@click.group()
def keys() -> None:
    """Create, list and revoke the API keys of a service.

    With the data FOLDER of the service, you need no key, and the service may be running. Without
    FOLDER, the command calls the service at --server, with an admin's key in TAMIS_KEY.
    """


@keys.command()
@_folder_argument
@click.option(
    "--name",
    required=True,
    help="Name of the caller, who owns the subscriptions made with the key.",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    help="publisher, subscriber, reader or admin; may be repeated.",
)
@_database_option
@service_command
def create(
    folder: Path | None,
    name: str,
    roles: tuple[str, ...],
    database: str | None,
    server: str,
    as_json: bool,
) -> None:
    """Create a key and print it. It is not shown again."""
    with _place(folder, database, server) as place:
        made = place.create_key(name, roles)
    print_answer({"key": made}, as_json, made)


@keys.command("list")
@_folder_argument
@_database_option
@service_command
def list_keys(folder: Path | None, database: str | None, server: str, as_json: bool) -> None:
    """List the keys, without their secrets."""
    with _place(folder, database, server) as place:
        found = place.list_keys()
    lines = [
        f"{each.id}  {each.created:%Y-%m-%d %H:%M}  {each.name}  {', '.join(each.roles)}"
        for each in found
    ]
    print_answer(found, as_json, "\n".join(lines))


@keys.command()
@_folder_argument
@click.argument("key")
@_database_option
@service_command
def revoke(folder: Path | None, key: str, database: str | None, server: str, as_json: bool) -> None:
    """Revoke the key with the id KEY, at once."""
    with _place(folder, database, server) as place:
        place.revoke_key(key)
    print_answer({"revoked": key}, as_json, "")


class _FolderKeys:
    """The keys in a data folder, or in a database."""

    def __init__(self, found: ApiKeys) -> None:
        self._found = found

    def create_key(self, name: str, roles: Sequence[str]) -> str:
        return self._found.create(name, roles)

    def list_keys(self) -> list[KeyInfo]:
        return [
            KeyInfo(
                each.id,
                each.name,
                list(each.roles),
                datetime.fromtimestamp(each.created / 1e6, UTC),
            )
            for each in self._found.list()
        ]

    def revoke_key(self, id: str) -> None:
        self._found.revoke(id)


@contextmanager
def _place(folder: Path | None, database: str | None, server: str) -> Iterator[KeyPlace]:
    if database is not None:
        with _shared_keys(database) as found:
            yield _FolderKeys(found)
    elif folder is None:
        with connected(server) as client:
            yield client
    else:
        with folder_keys(folder) as found:
            yield _FolderKeys(found)


@contextmanager
def _shared_keys(database: str) -> Iterator[ApiKeys]:
    from tamis.broker.access.api_keys import ApiKeys
    from tamis.broker.shared.shared_records import SharedRecords
    from tamis.store.postgresql.session import Session
    from tamis.store.postgresql.shared_log import shared_document

    session = Session(database)
    try:
        shared_document(session)  # refuses a database without a log
        yield ApiKeys(SharedRecords(session))
    finally:
        session.close()


@contextmanager
def folder_keys(folder: Path) -> Iterator[ApiKeys]:
    """The keys in a data folder, which a service may be serving."""
    from tamis.broker.access.api_keys import ApiKeys
    from tamis.broker.data_folder import DataFolder
    from tamis.broker.state import State

    places = DataFolder(folder)
    if not places.state.exists():
        raise BrokerError(f"{folder}: is not a data folder; `tamis serve` makes one")
    log = places.own_log()
    state = State(places.state, log.ids, str(log.identity))
    try:
        yield ApiKeys(state)
    finally:
        state.close()
