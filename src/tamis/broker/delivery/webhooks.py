"""The sinks of a broker: webhooks with their secrets, deliveries, dead letters, and topics."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa

from tamis.broker.access.tickets import TicketOffice
from tamis.broker.cloud_events.write_cloud_event import cloud_event_text
from tamis.broker.delivery.deliverer import Deliverer, DeliverySource, MessagePage
from tamis.broker.delivery.kafka_delivery import KafkaDelivery
from tamis.broker.delivery.lease_warnings import LeaseWarnings
from tamis.broker.delivery.led_deliverer import Delivering
from tamis.broker.delivery.message import OutgoingMessage
from tamis.broker.delivery.outbox import DeadDelivery, Outbox, PendingDelivery
from tamis.broker.delivery.signature import PREFIX
from tamis.broker.delivery.sink_address import SinkRules, resolve
from tamis.broker.delivery.sink_index import SinkIndex
from tamis.broker.delivery.sinks import CLOUD_EVENTS, Sink, is_topic
from tamis.broker.limits import Limits
from tamis.broker.matching.notification_files import NotificationPairs
from tamis.broker.matching.notification_reader import KeptEvent, NotificationReader
from tamis.broker.matching.readable_matching import ReadableMatching
from tamis.broker.state import KnownSubscription, StoredSubscription
from tamis.broker.storage import Storage
from tamis.errors import BrokerError
from tamis.store.subscription_snapshot import Id

_PAGE = 1000  # dead letters that are read at once
OVERLAP = 86_400_000_000  # microseconds for which the secret before a rotation still signs


class Webhooks:
    """Delivers notifications to the sinks of subscriptions."""

    def __init__(
        self,
        storage: Storage,
        tickets: TicketOffice,
        clock: Callable[[], int],
        rules: SinkRules,
        limits: Limits,
    ) -> None:
        self._storage, self._log, self._state = storage, storage.log, storage.state
        self._records, self._tickets, self._clock = storage.records, tickets, clock
        self.rules, self.outbox = rules, Outbox(storage.records)
        self._limits = limits
        known = self._state.sinks(self.outbox.cursor() or -1)
        self.index = SinkIndex(known, lambda sink: sink.url is not None)
        self.topics = KafkaDelivery(storage, clock, rules.kafka)
        ahead = limits.lease_warning // timedelta(microseconds=1)
        self.warnings = LeaseWarnings(self._state, self.outbox, clock, ahead)
        self._state.watcher = self._take
        self._paused: Callable[[], bool] = lambda: False
        self._deliverer: Delivering | None = None
        self._reader: NotificationReader | None = None

    def start(self, matching: ReadableMatching) -> None:
        """Deliver from where the last delivery ended; the first time, from where matching is."""
        self._reader = NotificationReader(self._log, matching)
        source = DeliverySource(
            self._page,
            self._message,
            self._waiting,
            self.warnings.look,
            str(self._log.identity),
            self._clock,
            self._limits.pending_deliveries,
            self._dead,
            self._limits.dead_letters,
        )
        start = self.outbox.begin(matching.matched - 1)  # now: the deliverer may begin later
        self._deliverer = self._storage.delivery(
            lambda: Deliverer(source, self.outbox, self.rules, start), self.warnings.watch
        )
        self.topics.start(matching)

    def pause_while(self, behind: Callable[[], bool]) -> None:
        """Read nothing while the database is behind the log: it may lack a subscription.

        The cursor would move over notifications that nobody seems to want.
        """
        self._paused = self.topics.paused = behind

    def stop(self) -> None:
        if self._deliverer is not None:
            self._deliverer.stop()
        self.topics.stop()

    def _take(self, changes: pa.Table) -> None:
        self.index.take(changes)
        self.topics.index.take(changes)
        self.warnings.take(changes)

    @property
    def failure(self) -> BaseException | None:
        """Why nothing is delivered now, if that is so."""
        return None if self._deliverer is None else self._deliverer.failure

    @property
    def delivered(self) -> int:
        """How many messages were delivered since the start."""
        return 0 if self._deliverer is None else self._deliverer.delivered

    def found(self, pairs: NotificationPairs) -> None:
        """Notifications were found."""
        if len(pairs.numbers):
            self.wake()
            self.topics.wake()

    def wake(self) -> None:
        """There is something to deliver."""
        if self._deliverer is not None:
            self._deliverer.wake()

    def _page(self, after: int, within: Id | None, most: int) -> MessagePage:
        assert self._reader is not None
        # Notifications that were trimmed before they could be sent are lost to webhooks.
        after, asked = max(after, self._reader.first - 1), after
        within = within if after == asked else None
        paused = self._paused()
        page = self._reader.divided_page(after, within, self.index.wanted(after), most)
        if paused or self._paused():
            return MessagePage([], after, within)
        messages = []
        for each in page.notifications:
            pending = PendingDelivery(each.subscription, each.sequence, 0, 0, "")
            event = None if each.event is None else KeptEvent(each.event, each.time or 0)
            found = self._outgoing(pending, event)
            if found is not None:
                messages.append(found)
        return MessagePage(messages, page.cursor, page.within)

    def _waiting(self) -> Counter[str | None]:
        """How many deliveries of each owner wait."""
        return self._by_owner(dict(self.outbox.counts()))

    def _dead(self) -> Counter[str | None]:
        """How many dead letters each owner has."""
        return self._by_owner(dict(self.outbox.dead_counts()))

    def _by_owner(self, counts: dict[Id, int]) -> Counter[str | None]:
        owners = self._state.owners_among(list(counts))
        found: Counter[str | None] = Counter()
        for id, count in counts.items():
            found[owners.get(id)] += count
        return found

    def dead_letters(self, after: int, most: int, owner: str | None = None) -> list[DeadDelivery]:
        """Dead letters in the order in which they died: of an owner, or of all."""
        found: list[DeadDelivery] = []
        page = self.outbox.dead(after, _PAGE)
        while page and len(found) < most:
            if owner is not None:
                owners = self._state.owners_among([each.subscription for each in page])
                found += [each for each in page if owners.get(each.subscription) == owner]
            else:
                found += page
            page = self.outbox.dead(page[-1].id, _PAGE) if len(page) == _PAGE else []
        return found[:most]

    def _message(self, pending: PendingDelivery) -> OutgoingMessage | None:
        """A delivery of the outbox as a message; None if nobody wants it any more."""
        assert self._reader is not None
        if pending.sequence >= 0:
            return self._outgoing(pending, self._reader.event(pending.sequence))
        live = self._state.subscription(pending.subscription)
        if live is None or live.until != -pending.sequence:
            return None  # the lease was renewed, or has ended
        return self._outgoing(pending, None)

    def _outgoing(
        self, pending: PendingDelivery, event: KeptEvent | None
    ) -> OutgoingMessage | None:
        known = self._state.known(pending.subscription)
        if known is None or known.sink is None:
            return None
        try:
            sink, secrets = Sink.read(known.sink), self.secrets(known)
        except BrokerError:  # fails like a sink that does not answer, and may be put right
            sink, secrets = Sink(""), []
        if sink.url is None:
            return None
        time = self._clock() if event is None else event.time
        text = None if event is None else event.text
        if event is not None and sink.format == CLOUD_EVENTS:
            text = cloud_event_text(self._log, pending.sequence)
        return OutgoingMessage(pending, known, sink, secrets, text, time)

    def accept(self, sink: Sink) -> Sink:
        """Refuse a sink that must not be called. This asks the resolver."""
        if sink.url is not None:
            resolve(sink.url, self.rules)
        if sink.topic is not None:
            self.rules.kafka.accept(sink.topic)
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
        if self._has_topic(id):
            return self.topics.replay(self.topics.dead_of(id))
        revived = self.outbox.revive(id, self._clock())
        self.wake()
        return revived

    def retry(self, id: int) -> int:
        """Try one dead letter again; how many there were."""
        dead = self.outbox.dead_letter(id)
        if dead is not None and self._has_topic(dead.subscription):
            return self.topics.replay([dead])
        revived = self.outbox.revive_one(id, self._clock())
        self.wake()
        return revived

    def _has_topic(self, id: Id) -> bool:
        known = self._state.known(id)
        return known is not None and known.sink is not None and is_topic(known.sink)
