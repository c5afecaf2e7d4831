"""One event that matches many subscriptions of an owner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.broker.access.caller import Caller
from tamis.broker.broker import Broker
from tamis.broker.delivery import deliverer, retries
from tamis.broker.delivery.sink_address import SinkRules
from tamis.broker.delivery.sinks import Sink
from tamis.broker.incoming import IncomingEvent
from tamis.broker.limits import Limits
from tamis.broker.matching import notification_reader
from tamis.broker.matching.notification_reader import NotificationReader
from tamis.broker.matching.wanted_ids import WantedIds
from tests.unit.broker.test_webhooks import Receiver, received, until

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}
ANN = Caller("ann", frozenset({"subscriber", "publisher"}))


def _publish(broker: Broker, *prices: int) -> list[int]:
    events = [IncomingEvent(json.dumps({"price": price})) for price in prices]
    numbers = broker.publish(events).result().numbers
    broker.matching.wait(numbers[-1], 60)
    return numbers


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8, 100])
def test_an_event_is_read_in_several_pages(tmp_path: Path, most: int) -> None:
    with Broker(tmp_path, SCHEMA) as broker:
        ids = [broker.subscribe("price < 5").result().id for _ in range(7)]
        few = broker.subscribe("price = 2").result().id
        numbers = _publish(broker, 1, 9, 2)
        reader = NotificationReader(broker.log, broker.matching)
        found, cursor, within = [], -1, None
        for _ in range(100):
            page = reader.divided_page(cursor, within, WantedIds([*ids, few]), most)
            assert len(page.notifications) <= most
            found += [(each.sequence, each.subscription) for each in page.notifications]
            assert page.cursor < numbers[0] or page.within is None or page.cursor < numbers[2]
            cursor, within = page.cursor, page.within
            if not page.notifications:
                break
        assert found == [
            *((numbers[0], id) for id in ids),
            *((numbers[2], id) for id in [*ids, few]),
        ]
        assert cursor == numbers[2]


def test_an_event_is_not_repeated_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader gets every notification, and the event with the first of them."""
    text = json.dumps({"price": 1, "title": "x" * 100})
    monkeypatch.setattr(notification_reader, "REPEATED", 3 * len(text))
    with Broker(tmp_path, SCHEMA) as broker:
        for _ in range(5):
            broker.subscribe("price < 5", caller=ANN).result()
        numbers = broker.publish([IncomingEvent(text)]).result().numbers
        broker.matching.wait(numbers[-1], 60)
        page = broker.notifications(-1, broker.readable(ANN))
        assert [each.event is not None for each in page.notifications] == [True] * 3 + [False] * 2
        assert all(each.time is not None for each in page.notifications)


def test_a_dry_run_is_in_order(tmp_path: Path) -> None:
    with Broker(tmp_path, SCHEMA) as broker:
        ids = [broker.subscribe("price < 5", caller=ANN).result().id for _ in range(5)]
        broker.subscribe("price < 5").result()
        assert broker.dry_run({"price": 1}, ANN) == ids


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(retries, "PAUSES", (0.01,) * 7)
    monkeypatch.setattr(retries, "OPEN_FOR", 0)
    with received() as made:
        yield made


@pytest.mark.slow
def test_webhooks_of_one_event_are_read_a_page_at_a_time(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliverer, "PAGE", 3)
    monkeypatch.setattr(deliverer, "WINDOW", 6)
    with Broker(tmp_path, SCHEMA, sinks=SinkRules.of(["127.0.0.1"])) as broker:
        sink = Sink(receiver.url)
        ids = {broker.subscribe("price < 5", sink=sink).result().id for _ in range(20)}
        numbers = _publish(broker, 1, 2)
        until(lambda: len(receiver.messages) >= 40)
        found = [json.loads(body)["data"] for _, body in receiver.messages]
        assert {(each["sequence"], each["subscription"]) for each in found} == {
            (number, id) for number in numbers for id in ids
        }
        until(lambda: broker.webhooks.outbox.cursor() == numbers[-1])


@pytest.mark.slow
def test_dead_letters_do_not_grow_for_ever(tmp_path: Path, receiver: Receiver) -> None:
    """The rest is counted, and read by cursor."""
    receiver.answers = [(410, {})] * 5
    limits, rules = Limits(dead_letters=2), SinkRules.of(["127.0.0.1"])
    with Broker(tmp_path, SCHEMA, limits=limits, sinks=rules) as broker:
        for _ in range(5):
            broker.subscribe("price < 5", sink=Sink(receiver.url), caller=ANN).result()
        _publish(broker, 1)
        until(lambda: len(receiver.messages) >= 5)
        until(lambda: broker.webhooks.outbox.dead_count() == 2)
        until(lambda: broker.webhooks.outbox.count() == 0)
        assert broker.webhooks.outbox.dead_count() == 2
        assert len(broker.notifications(-1, broker.readable(ANN)).notifications) == 5
