"""Where a broker keeps things: the log, what is derived from it, records, and notifications."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Protocol

from tamis.broker.access.tickets import TicketOffice
from tamis.broker.data_folder import DataFolder
from tamis.broker.matching.notification_files import NotificationFiles
from tamis.broker.matching.notification_store import NotificationStore
from tamis.broker.records import Records
from tamis.broker.state import State
from tamis.errors import BrokerError
from tamis.model.schema import Schema
from tamis.store.changes import ID_TYPES
from tamis.store.log import Log


class Storage(Protocol):
    """What a broker is built on."""

    log: Log
    state: State  # derived from the log
    records: Records  # not derived

    def notifications(self) -> NotificationStore:
        """The notifications of the log."""

    def tickets(self) -> TicketOffice:
        """The keys that make tickets. The state is up to date when this is called."""

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
            self._opened = opened.pop_all()

    def notifications(self) -> NotificationFiles:
        return NotificationFiles(self._folder.notifications, ID_TYPES[self.log.ids])

    def tickets(self) -> TicketOffice:
        new = not self.state.has_tickets()
        return TicketOffice.open(self._folder.key, str(self.log.identity), new=new)

    def close(self) -> None:
        self._opened.close()
