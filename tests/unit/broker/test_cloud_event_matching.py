"""CloudEvents are matched alike everywhere, and webhooks may have their form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.bindings import http as sdk
from standardwebhooks.webhooks import Webhook

from tamis.broker.broker import Broker
from tamis.broker.cloud_events.read_cloud_event import read_cloud_event
from tamis.broker.delivery.sink_address import SinkError
from tamis.broker.delivery.sinks import CLOUD_EVENTS, Sink, message_body
from tamis.broker.extension import extend_schema
from tamis.language.parser import parse
from tamis.model.semantics import satisfies
from tamis.replay.live_subscriptions import LiveSubscriptions
from tamis.replay.log_matching import match_log
from tamis.replay.pipeline import BatchPace
from tests.unit.broker.test_webhooks import Receiver, brokered, received

SCHEMA = {"attributes": {"price": "decimal", "ce.source": "text", "ce.level": "integer"}}
LATER = "ce.subject = desk and price > 5"
CONDITIONS = ("ce.source = '/shop'", "ce.level > 2 and price < 5", "ce.level missing")


def encoded(at: int, **more: Any) -> bytes:
    source = "/shop" if at % 2 else "/fair"
    event = {"specversion": "1.0", "id": str(at), "source": source, "type": "offer"}
    return json.dumps({**event, **more, "data": {"price": at}}).encode()


def test_inline_matching_and_a_reader_of_the_log_agree(tmp_path: Path) -> None:
    """Also while the schema grows: an event has what its schema knew."""
    with Broker(tmp_path / "data", SCHEMA) as broker:
        ids = {broker.subscribe(each).result().id: each for each in CONDITIONS}
        events = [read_cloud_event(encoded(at, level=at)) for at in range(4)]
        broker.publish(events).result()
        for rule, build in (
            ("create-attribute", lambda old: old.create_attribute("ce.subject", "text")),
            ("extend-event-type", lambda old: old.extend_event_type("event", "ce.subject")),
        ):
            extend_schema(broker, rule, build).result()
        id = broker.subscribe(LATER).result().id
        ids[id] = LATER
        later = [read_cloud_event(encoded(at, subject="desk")) for at in range(4, 8)]
        end = broker.publish(later).result().numbers[-1] + 1
        broker.matching.wait(end - 1, 60)
        page = broker.notifications(-1, None)
        inline = {(each.sequence, each.subscription) for each in page.notifications}
        log = broker.log
        live = LiveSubscriptions(log.schema_at(0), log.ids)
        read = set()
        for batch, pairs in match_log(live, log, 0, end, BatchPace()):
            numbers = batch.numbers[pairs.rows].tolist()
            read |= set(zip(numbers, pairs.ids.to_pylist(), strict=True))
        assert inline == read
        truth = set()
        for first, table in log.events(0, end):
            for row, text in enumerate(table["json"].to_pylist()):
                schema = log.schema_at(first + row)
                truth |= {
                    (first + row, each)
                    for each, condition in ids.items()
                    if int(each) < first + row  # int64 ids are numbers of the sequence
                    and satisfies(parse(condition, schema), json.loads(text), schema)
                }
        assert inline == truth
        assert len(truth) > 6


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with received() as made:
        yield made


def test_a_webhook_may_be_a_cloud_event(tmp_path: Path, receiver: Receiver) -> None:
    """As it was published, still signed; with the subscription and the number as extensions."""
    with brokered(tmp_path) as broker:
        sink = Sink.of({"url": receiver.url, "format": CLOUD_EVENTS})
        assert Sink.read(sink.to_text()) == sink
        lease = broker.subscribe("price < 5", sink=sink).result()
        (number,) = broker.publish([read_cloud_event(encoded(1, level=3))]).result().numbers
        ((headers, body),) = receiver.wait(1)
    assert headers["Content-Type"] == "application/cloudevents+json"
    Webhook(str(lease.secret)).verify(body, headers)
    event = sdk.from_http_event(sdk.HTTPMessage({"content-type": headers["Content-Type"]}, body))
    assert event.get_data() == {"price": 1}
    assert (event.get_source(), event.get_id(), event.get_type()) == ("/shop", "1", "offer")
    assert event.get_extension("level") == 3
    assert event.get_extension("tamissequence") == str(number)
    assert event.get_extension("tamissubscription") == str(lease.id)


def test_the_body_of_a_sink_holds_for_cloud_events() -> None:
    event = encoded(1, level=3).decode()
    for body, data in (("event", {"price": 1}), ("none", None), (("title", "price"), {"price": 1})):
        sink = Sink("http://example.com/", body, None, CLOUD_EVENTS)
        found = json.loads(message_body(sink, 5, 7, "2030-01-02T00:00:00Z", event))
        assert found.get("data") == data
        assert found["id"] == "1"
    for sequence, event_text in ((-1_000_000, None), (7, None)):  # a warning; a trimmed event
        sent = message_body(sink, 5, sequence, "2030-01-02T00:00:00Z", event_text)
        kind = {"content-type": "application/cloudevents+json"}
        assert sdk.from_http_event(sdk.HTTPMessage(kind, sent)).get_type().startswith("tamis.")


def test_only_webhooks_have_a_format() -> None:
    for given in ({"format": CLOUD_EVENTS}, {"url": "http://example.com/", "format": "avro"}):
        with pytest.raises(SinkError, match="format"):
            Sink.of(given)
