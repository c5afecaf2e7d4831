"""A sink that is slow or fails does not hold up the others."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tamis.broker.broker import Broker
from tamis.broker.delivery import retries
from tamis.broker.delivery.message import DeliveryAttempt, OutgoingMessage
from tamis.broker.delivery.outbox import PendingDelivery
from tamis.broker.delivery.sink_queue import PER_SINK, SinkQueue
from tamis.broker.delivery.sinks import Sink
from tamis.broker.limits import Limits
from tamis.broker.state import KnownSubscription
from tests.unit.broker import test_webhooks
from tests.unit.broker.test_webhooks import (
    RULES,
    SCHEMA,
    Receiver,
    _delivered,
    publish,
    received,
    until,
)

pytestmark = pytest.mark.slow

receiver, quick = test_webhooks.receiver, test_webhooks.quick


def test_a_sink_that_hangs_holds_up_nobody(tmp_path: Path, receiver: Receiver) -> None:
    """Its messages are stored while it hangs, and the cursor passes them."""
    with received() as slow, Broker(tmp_path, SCHEMA, sinks=RULES) as broker:
        slow.hold.clear()
        broker.subscribe("price < 5", sink=Sink(slow.url)).result()
        broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        numbers = set(publish(broker, *({"price": at % 5} for at in range(300))))
        until(lambda: _delivered(receiver) == numbers)
        assert len(slow.messages) <= 2 * PER_SINK
        outbox = broker.webhooks.outbox
        until(lambda: (outbox.cursor() or 0) >= max(numbers))
        until(lambda: outbox.count() == len(numbers))
        slow.hold.set()
        until(lambda: _delivered(slow) == numbers)
        until(lambda: outbox.count() == 0)


def test_what_hangs_when_the_broker_ends_is_sent_after_the_next_start(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.hold.clear()
    with Broker(tmp_path, SCHEMA, sinks=RULES) as broker:
        broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        numbers = set(publish(broker, *({"price": 1} for _ in range(30))))
        receiver.wait(PER_SINK)
    receiver.hold.set()
    seen = len(receiver.messages)
    with Broker(tmp_path, SCHEMA, sinks=RULES) as broker:
        until(lambda: len(receiver.messages) > seen)
        until(lambda: _delivered(receiver) == numbers)


def test_an_owner_has_so_many_deliveries_waiting(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them are dead letters at once."""
    monkeypatch.setattr(retries, "OPEN_FOR", 1000)
    receiver.answers = [(500, {})] * 1000
    limits = Limits(pending_deliveries=20)
    with Broker(tmp_path, SCHEMA, sinks=RULES, limits=limits) as broker:
        broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        publish(broker, *({"price": 1} for _ in range(100)))
        outbox = broker.webhooks.outbox
        until(lambda: len(outbox.dead()) == 80)
        assert outbox.count() == 20
        assert "too many" in outbox.dead()[0].error


def test_a_receiver_that_asks_for_a_pause_gets_it(tmp_path: Path, receiver: Receiver) -> None:
    """Not for the message alone: the others of the sink wait too."""
    receiver.answers = [(429, {"Retry-After": "600"})] * 50
    with Broker(tmp_path, SCHEMA, sinks=RULES) as broker:
        broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        publish(broker, *({"price": 1} for _ in range(50)))
        until(lambda: broker.webhooks.outbox.count() == 50)
        assert len(receiver.messages) <= 2 * PER_SINK


def test_a_sink_that_failed_is_tried_with_one_request() -> None:
    queue = SinkQueue()
    known = KnownSubscription(1, None, None, None)
    messages = [
        OutgoingMessage(PendingDelivery(1, at, 0, 0, ""), known, Sink("http://a"), [], None, 0)
        for at in range(20)
    ]

    def send() -> int:
        """Start what may be started; how many requests that are."""
        started = 0
        while queue.may_send:
            queue.under_way[queue.waiting.popleft()] = time.monotonic()
            started += 1
        return started

    def fail() -> None:
        for each in list(queue.under_way):
            queue.note(each, DeliveryAttempt(False, "down"))

    queue.waiting.extend(messages)
    assert send() == PER_SINK < retries.OPEN_AFTER <= 2 * PER_SINK
    fail()
    assert send() == PER_SINK
    fail()
    assert send() == 1
    queue.note(next(iter(queue.under_way)), DeliveryAttempt(True))
    assert send() == PER_SINK
