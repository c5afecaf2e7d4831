"""The webhooks of a broker: secrets of sinks, deliveries, dead letters."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from tamis.broker.access.tickets import TicketOffice
from tamis.broker.delivery.deliverer import Deliverer, DeliverySource
from tamis.broker.delivery.outbox import Outbox
from tamis.broker.delivery.signature import PREFIX
from tamis.broker.delivery.sink_address import SinkRules, resolve
from tamis.broker.delivery.sinks import Sink
from tamis.broker.matching.inline_matching import InlineMatching
from tamis.broker.matching.notification_files import NotificationPairs
from tamis.broker.matching.notification_reader import NotificationReader, Page
from tamis.broker.records import Records
from tamis.broker.state import KnownSubscription, State, StoredSubscription
from tamis.store.log import Log
from tamis.store.subscription_snapshot import Id

OVERLAP = 86_400_000_000  # microseconds for which the secret before a rotation still signs


class Webhooks:
    """Delivers notifications to the sinks of subscriptions."""

    def __init__(
        self,
        log: Log,
        state: State,
        records: Records,
        tickets: TicketOffice,
        clock: Callable[[], int],
        rules: SinkRules,
    ) -> None:
        self._log, self._state, self._tickets, self._clock = log, state, tickets, clock
        self.rules, self.outbox, self._records = rules, Outbox(records), records
        self._deliverer: Deliverer | None = None
        self._reader: NotificationReader | None = None

    def start(self, matching: InlineMatching) -> None:
        """Deliver from where the last delivery ended; the first time, from where matching is."""
        self._reader = NotificationReader(self._log, matching)
        source = DeliverySource(
            self._page,
            self._state.known,
            self._reader.event,
            self.secrets,
            str(self._log.identity),
            self._clock,
        )
        self._deliverer = Deliverer(source, self.outbox, self.rules, matching.matched - 1)

    def stop(self) -> None:
        if self._deliverer is not None:
            self._deliverer.stop()

    @property
    def failure(self) -> BaseException | None:
        """Why nothing is delivered now, if that is so."""
        return None if self._deliverer is None else self._deliverer.failure

    def wake(self, pairs: NotificationPairs) -> None:
        """Notifications were found."""
        if self._deliverer is not None and len(pairs.numbers):
            self._deliverer.wake()

    def _page(self, after: int, most: int) -> Page:
        assert self._reader is not None
        # Notifications that were trimmed before they could be sent are lost to webhooks.
        after = max(after, self._reader.first - 1)
        return self._reader.page(after, self._state.ids_with_sinks(after), most)

    def accept(self, sink: Sink) -> Sink:
        """Refuse a sink that must not be called. This asks the resolver."""
        resolve(sink.url, self.rules)
        return sink

    def secrets(self, live: StoredSubscription | KnownSubscription) -> list[str]:
        """The secrets that sign the webhooks of a subscription now, the newest first."""
        query = "SELECT rotation, moment FROM sink_rotations WHERE subscription = ?"
        rows = self._records.select(query, (live.id,))
        rotation, moment = rows[0] if rows else (0, 0)
        both = rotation > 0 and self._clock() - moment < OVERLAP
        current = [rotation, rotation - 1] if both else [rotation]
        return [self._secret(live, each) for each in current]

    def _secret(self, live: StoredSubscription | KnownSubscription, rotation: int) -> str:
        secret = self._tickets.sink_secret(
            live.id, live.nonce or b"", live.key_generation, rotation
        )
        return PREFIX + b64encode(secret).decode()

    def rotate(self, live: StoredSubscription) -> str:
        """A new secret; for a day, messages carry signatures by both."""
        self._records.execute_synced(
            "INSERT INTO sink_rotations VALUES (?, 1, ?) ON CONFLICT (subscription) DO UPDATE "
            "SET rotation = sink_rotations.rotation + 1, moment = excluded.moment",
            (live.id, self._clock()),
        )
        return self.secrets(live)[0]

    def replay(self, id: Id) -> int:
        """Try all dead letters of a subscription again; how many there were."""
        revived = self.outbox.revive(id, self._clock())
        if self._deliverer is not None:
            self._deliverer.wake()
        return revived
