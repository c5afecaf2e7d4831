"""Notifications to topics of Kafka: one thread with a cursor of its own.

It reads notifications page by page in the order of the log, sends them with the subscription as the
key, and moves its cursor when the brokers have acknowledged the page. What they refuse for good
becomes a dead letter, in the transaction that moves the cursor. While they are away, this thread
waits, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, NamedTuple

import msgspec

from tamis.broker.delivery.kafka_settings import KafkaSettings
from tamis.broker.delivery.outbox import DeadDelivery, PendingDelivery
from tamis.broker.delivery.sink_index import SinkIndex
from tamis.broker.delivery.sinks import Sink
from tamis.broker.delivery.topic_outbox import TopicOutbox
from tamis.broker.matching.notification_reader import NotificationReader
from tamis.broker.matching.readable_matching import ReadableMatching
from tamis.broker.notification_body import shape_event
from tamis.broker.sequence.answers import AnsweredWith
from tamis.broker.storage import Storage
from tamis.errors import BrokerError, TamisError
from tamis.replay.notification_id import notification_id
from tamis.replay.topic_producer import (
    TopicMessage,
    TopicProducer,
    read_properties,
)
from tamis.store.subscription_snapshot import Id

PAGE = 5000  # notifications that are acknowledged together
_LOOK = 1.0  # seconds between two looks without news
_ELSEWHERE = -2  # in place of a cursor: another service moves it


class TopicPage(NamedTuple):
    """Messages to send, the deliveries that they are, and the cursor after them."""

    messages: list[TopicMessage]
    deliveries: list[PendingDelivery]
    dead: list[PendingDelivery]  # those that cannot be sent
    cursor: int

    @property
    def size(self) -> int:
        return len(self.deliveries) + len(self.dead)


class KafkaDelivery:
    """Sends the notifications of subscriptions with Kafka sinks, until it is stopped."""

    def __init__(self, storage: Storage, clock: Callable[[], int], settings: KafkaSettings) -> None:
        settings.check()
        self._log, self._state, self._leads = storage.log, storage.state, storage.delivers
        self._clock, self._settings = clock, settings
        self._outbox = TopicOutbox(storage.records)
        cursor = self._outbox.cursor()
        known = self._state.sinks(-1 if cursor is None else cursor)
        self.index = SinkIndex(known, lambda sink: sink.topic is not None)
        self.paused: Callable[[], bool] = lambda: False  # then nothing is read
        self._reader: NotificationReader | None = None
        self._producer: TopicProducer | None = None
        self._replays: SimpleQueue[list[DeadDelivery]] = SimpleQueue()
        self._wake, self._stopping = Event(), Event()
        self._thread: Thread | None = None
        self._cursor = self._stored = _ELSEWHERE
        self.sent = 0  # messages that were acknowledged since the start
        self.failure: BaseException | None = None  # of the last round

    def start(self, matching: ReadableMatching) -> None:
        """Send from where the last start ended; the first time, from where matching is.

        Without brokers nothing is sent, and the cursor stays for a start with them.
        """
        if self._settings.brokers is None:
            return
        self._reader = NotificationReader(self._log, matching)
        cursor = self._outbox.cursor()
        if cursor is None:
            cursor = matching.matched - 1
            self._outbox.advance(cursor, [], self._clock())
        path = self._settings.properties
        properties = {} if path is None else read_properties(path)
        self._producer = TopicProducer(self._settings.brokers, properties, self._stopping.is_set)
        self._thread = Thread(
            target=self._run, args=(self._producer, cursor), name="tamis-kafka", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End soon; what was not acknowledged is sent again after the next start."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def enabled(self) -> bool:
        """Whether there are brokers to send to."""
        return self._settings.brokers is not None

    @property
    def unreachable(self) -> str | None:
        """Why no broker answers now, if that is so."""
        return None if self._producer is None else self._producer.unreachable

    def wake(self) -> None:
        """There is something to send."""
        self._wake.set()

    def replay(self, dead: list[DeadDelivery]) -> int:
        """Send dead letters again; how many there are. They stay until they are acknowledged."""
        self._replays.put(dead)
        self.wake()
        return len(dead)

    def dead_of(self, id: Id) -> list[DeadDelivery]:
        """The dead letters of a subscription."""
        return self._outbox.dead_of(id)

    # -- the thread ------------------------------------------------------------------------------

    def _run(self, producer: TopicProducer, cursor: int) -> None:
        self._cursor = self._stored = cursor
        while not self._stopping.is_set():
            self._wake.clear()
            outcome: Future[bool] = Future()
            with AnsweredWith(outcome):  # whatever fails, such as a full disk, is tried again
                outcome.set_result(self._round(producer))
            failure = outcome.exception()
            if failure is not None:  # sent again, from the cursor that is stored
                self._cursor = self._stored
            self.failure = None if self._stopping.is_set() else failure
            if failure is not None or not outcome.result():
                self._wake.wait(_LOOK)
        with suppress(TamisError):
            producer.close()

    def _round(self, producer: TopicProducer) -> bool:
        """Send a page of notifications, and what is to be sent again; whether there may be more."""
        if not self._leads():  # another service sends
            self._cursor = _ELSEWHERE
            return False
        if self._cursor == _ELSEWHERE:
            at = self._outbox.cursor()
            self._cursor = self._stored = -1 if at is None else at
        page = self._page(self._cursor)
        if page.size or page.cursor > self._stored + PAGE:
            refused = self._send(producer, page)
            self._outbox.advance(page.cursor, [*page.dead, *refused], self._clock())
            self._stored = page.cursor
        self._cursor = page.cursor
        while not self._replays.empty():
            self._send_dead(producer, self._replays.get())
        return page.size > 0

    def _send(self, producer: TopicProducer, page: TopicPage) -> list[PendingDelivery]:
        """Send messages, and return those that were refused."""
        refused = producer.send(page.messages)
        self.sent += len(page.messages) - len(refused)
        return [
            page.deliveries[at]._replace(attempts=1, error=reason) for at, reason in refused.items()
        ]

    def _send_dead(self, producer: TopicProducer, dead: list[DeadDelivery]) -> None:
        assert self._reader is not None
        page = TopicPage([], [], [], 0)
        for each in dead:
            event = self._reader.event(each.sequence)
            delivery = PendingDelivery(each.subscription, each.sequence, each.attempts, 0, "")
            text = None if event is None else event.text
            self._put(page, delivery, self._sink(each.subscription), text)
        failed = {each.key for each in (*self._send(producer, page), *page.dead)}
        self._outbox.forget(
            [each.id for each in dead if (each.subscription, each.sequence) not in failed]
        )

    def _page(self, after: int) -> TopicPage:
        assert self._reader is not None
        # Notifications that were trimmed before they could be sent are lost to Kafka.
        after = max(after, self._reader.first - 1)
        paused = self.paused()
        found = self._reader.page(after, self.index.wanted(after), PAGE)
        if paused or self.paused():
            return TopicPage([], [], [], after)
        page = TopicPage([], [], [], found.cursor)
        sinks: dict[Id, Sink | None] = {}
        for each in found.notifications:
            if each.subscription not in sinks:
                sinks[each.subscription] = self._sink(each.subscription)
            delivery = PendingDelivery(each.subscription, each.sequence, 0, 0, "")
            self._put(page, delivery, sinks[each.subscription], each.event)
        return page

    def _put(
        self, page: TopicPage, delivery: PendingDelivery, sink: Sink | None, event: str | None
    ) -> None:
        if sink is None:
            page.dead.append(delivery._replace(error="the sink cannot be read"))
            return
        if sink.topic is None:  # it has no topic any more
            return
        try:
            self._settings.accept(sink.topic)
        except BrokerError as why:
            page.dead.append(delivery._replace(error=str(why)))
            return
        id = notification_id(str(self._log.identity), delivery.sequence, delivery.subscription)
        data: dict[str, Any] = {
            "sequence": delivery.sequence,
            "subscription": delivery.subscription,
        }
        shown = shape_event(event, sink.body)
        if shown is not None:
            data["event"] = msgspec.Raw(shown.encode())
        value = msgspec.json.encode(data)
        page.messages.append(TopicMessage(sink.topic, str(delivery.subscription), value, id))
        page.deliveries.append(delivery)

    def _sink(self, id: Id) -> Sink | None:
        known = self._state.known(id)
        try:
            if known is None:
                return None
            return Sink(None) if known.sink is None else Sink.read(known.sink)
        except BrokerError:
            return None
