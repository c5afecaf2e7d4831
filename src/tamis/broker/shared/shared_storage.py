"""What a broker is built on, if several services share a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from tamis.broker.access.tickets import TicketOffice
from tamis.broker.data_folder import DataFolder
from tamis.broker.delivery.led_deliverer import Delivering, LedDeliverer
from tamis.broker.matching.notification_files import NotificationPairs
from tamis.broker.matching.readable_matching import ReadableMatching
from tamis.broker.records import Records
from tamis.broker.sequence.turns import Turns
from tamis.broker.shared.election import Election
from tamis.broker.shared.shared_matching import SharedMatching
from tamis.broker.shared.shared_notifications import MATCHED
from tamis.broker.shared.shared_records import SharedRecords
from tamis.broker.state import State
from tamis.errors import BrokerError, BrokerStoppedError, QuotaError
from tamis.model.schema import Schema
from tamis.operators.enabled_operators import EnabledOperators
from tamis.replay.matching_shifts import INLINE
from tamis.store.postgresql.session import Session
from tamis.store.postgresql.shared_log import GROWN, SharedLog, refuse_another, shared_document

_MATCHING, _DELIVERY = 1, 2  # what one service does for all


class SharedStorage:
    """The log and the records in a database; a copy of the log, and what is derived, in a folder.

    The folder is this service's own. All of it but `server.key` may be lost.
    """

    def __init__(
        self,
        folder: DataFolder,
        url: str,
        schema: Schema | Mapping[str, Any] | None,
        *,
        rebuild: bool = False,
    ) -> None:
        self._folder, self._url = folder, url
        self._election: Election | None = None
        self._matching: SharedMatching | None = None
        with ExitStack() as opened:
            opened.enter_context(folder.served())
            session, records = Session(url), Session(url)
            opened.callback(session.close)
            opened.callback(records.close)
            document = shared_document(session, schema)
            refuse_another(folder.log, document, session.name)
            if rebuild:
                folder.forget_derived()
            self.log = SharedLog.copied(folder.log, session, document)
            opened.enter_context(self.log.served())
            self.state = State(folder.state, self.log.ids, str(self.log.identity))
            opened.callback(self.state.close)
            self.records: Records = SharedRecords(records)
            self.turns: Turns = self.log
            self._opened = opened.pop_all()

    def tickets(self) -> TicketOffice:
        """The keys of the file `server.key`, which all services must have.

        The database holds only digests of them: who reads it, or a backup of it, cannot make
        tickets.
        """
        path = self._folder.key
        known = "SELECT generation, digest FROM server_keys"
        new = not self.records.select(known)
        if not new and not path.exists():
            raise BrokerError(
                f"{path}: is missing; the services of a database share their server key: copy the "
                "file from another one, and let nobody else read it"
            )
        office = TicketOffice.open(path, str(self.log.identity), new=new)
        own = office.digests()
        with self.records.transaction() as base:
            for row in own.items():
                base.execute("INSERT INTO server_keys VALUES (?, ?) ON CONFLICT DO NOTHING", row)
        if any(own.get(generation) != digest for generation, digest in self.records.select(known)):
            raise BrokerError(
                f"{path}: is not the server key of the other services; copy the file from one of "
                "them, and start again"
            )
        return office

    def matching(
        self,
        found: Callable[[NotificationPairs], None],
        wanted: str | None,
        operators: EnabledOperators,
        at_once: bool,
    ) -> ReadableMatching:
        """One of the services matches; the others follow it. No matcher stands in."""
        if wanted not in (None, INLINE):
            raise BrokerError(
                "services on a database match inline; for Spark, `tamis log mirror` copies the log"
            )
        session = Session(self._url)
        self._opened.callback(session.close)
        self._matching = SharedMatching(
            self.log, self._folder, session, self._leads, found, operators
        )
        return self._matching

    def _leads(self) -> bool:
        return self._election is not None and self._election.leads(_MATCHING)

    def delivery(
        self, make: Callable[[], Delivering], otherwise: Callable[[], None] = lambda: None
    ) -> Delivering:
        """Deliver by what `make` makes, while this service is elected."""
        return LedDeliverer(make, self.delivers, otherwise)

    def delivers(self) -> bool:
        """Whether this service is elected to deliver."""
        return self._election is not None and self._election.leads(_DELIVERY)

    def watch(self, grown: Callable[[], object]) -> None:
        """Call `grown` in another thread when other services have appended to the log."""

        def heard(channel: str) -> None:
            if channel != MATCHED:
                with suppress(BrokerStoppedError, QuotaError):  # a full queue follows anyway
                    grown()
            if channel != GROWN and self._matching is not None:
                self._matching.wake()

        self._election = Election(self._url, (_MATCHING, _DELIVERY), (GROWN, MATCHED), heard)
        self._opened.callback(self._election.stop)

    def close(self) -> None:
        self._opened.close()
