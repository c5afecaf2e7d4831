"""Where a broker keeps things: the log, what is derived from it, and records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Protocol

from tamis.broker.access.tickets import TicketOffice
from tamis.broker.data_folder import DataFolder
from tamis.broker.delivery.led_deliverer import Delivering
from tamis.broker.matching.matching_switch import MatchingSwitch
from tamis.broker.matching.notification_files import NotificationPairs
from tamis.broker.matching.readable_matching import ReadableMatching
from tamis.broker.records import Records
from tamis.broker.sequence.turns import SoleTurns, Turns
from tamis.broker.state import State
from tamis.errors import BrokerError
from tamis.model.schema import Schema
from tamis.operators.enabled_operators import EnabledOperators
from tamis.store.log import Log


class Storage(Protocol):
    """What a broker is built on."""

    state: State  # derived from the log
    records: Records  # not derived
    turns: Turns

    @property
    def log(self) -> Log:
        """Events and changes in one sequence: the truth."""

    def tickets(self) -> TicketOffice:
        """The keys that make tickets. The state is up to date when this is called."""

    def matching(
        self,
        found: Callable[[NotificationPairs], None],
        wanted: str | None,
        operators: EnabledOperators,
        at_once: bool,
    ) -> ReadableMatching:
        """Start matching; `found` is called with what was found, and `wanted` says who matches.

        With `at_once`, a simple matcher may stand in while the default one is compiled.
        """

    def delivers(self) -> bool:
        """Whether this service is the one that delivers now."""

    def delivery(
        self, make: Callable[[], Delivering], otherwise: Callable[[], None] = lambda: None
    ) -> Delivering:
        """Deliver by what `make` makes, whenever this service is the one that delivers.

        While another one delivers, `otherwise` is called now and then.
        """

    def watch(self, grown: Callable[[], object]) -> None:
        """Call `grown`, in any thread, when other services have appended to the log."""

    def close(self) -> None:
        """Let go of everything."""


class FolderStorage:
    """Everything in a data folder, which one broker holds at a time."""

    def __init__(self, folder: DataFolder, schema: Schema | Mapping[str, Any] | None) -> None:
        self._folder = folder
        with ExitStack() as opened:
            opened.enter_context(folder.served())
            document = schema if isinstance(schema, Schema) or schema is None else dict(schema)
            self.log = folder.open_log(document)
            if self.log.identity is None:
                raise BrokerError(f"{self.log.folder}: has an old format; run `tamis log upgrade`")
            opened.enter_context(self.log.served())
            self.state = State(folder.state, self.log.ids, self.log.identity)
            opened.callback(self.state.close)
            self.records: Records = self.state
            self.turns: Turns = SoleTurns()
            self._opened = opened.pop_all()

    def tickets(self) -> TicketOffice:
        """The keys of the file `server.key`. The database has digests of them, to know them by."""
        path, new = self._folder.key, not self.state.has_tickets()
        office = TicketOffice.open(path, str(self.log.identity), new=new)
        own = {f"server key {each}": digest for each, digest in office.digests().items()}
        with self.state.transaction() as base:
            if new:
                base.execute("DELETE FROM facts WHERE name LIKE 'server key %'")
            for row in own.items():
                base.execute("INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO NOTHING", row)
        known = self.state.select("SELECT name, value FROM facts WHERE name LIKE 'server key %'")
        if dict(known) != own:
            raise BrokerError(
                f"{path}: is not the file that made the tickets of this folder; put that one back "
                "from a backup"
            )
        return office

    def matching(
        self,
        found: Callable[[NotificationPairs], None],
        wanted: str | None,
        operators: EnabledOperators,
        at_once: bool,
    ) -> ReadableMatching:
        return MatchingSwitch(self.log, self._folder, found, wanted, operators, at_once=at_once)

    def delivers(self) -> bool:
        return True

    def delivery(
        self, make: Callable[[], Delivering], otherwise: Callable[[], None] = lambda: None
    ) -> Delivering:
        return make()

    def watch(self, grown: Callable[[], object]) -> None:
        """Nobody else appends."""

    def close(self) -> None:
        self._opened.close()


def open_storage(
    folder: DataFolder,
    schema: Schema | Mapping[str, Any] | None,
    database: str | None = None,
    rebuild: bool = False,
) -> Storage:
    """What is kept in a folder, or in a database with copies in a folder."""
    if database is None:
        return FolderStorage(folder, schema)
    from tamis.broker.shared.shared_storage import SharedStorage  # it needs psycopg

    return SharedStorage(folder, database, schema, rebuild=rebuild)
