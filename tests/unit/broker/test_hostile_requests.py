"""A bad request refuses only itself: others, and the broker, go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tamis.broker.access.caller import ANONYMOUS, Caller
from tamis.broker.broker import Broker
from tamis.broker.bulk_subscribe import BulkSubscription
from tamis.broker.delivery.sinks import Sink
from tamis.broker.incoming import IncomingEvent
from tamis.broker.limits import Limits
from tamis.broker.sequence.requests import Publish, PublishedEvent
from tamis.broker.state import State
from tamis.errors import (
    BrokerError,
    BrokerStoppedError,
    BusyError,
    EventError,
    NotFoundError,
    QuotaError,
    RequestKeyError,
    TamisError,
)
from tamis.model.schema import Schema
from tests.unit.broker.test_webhooks import until

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}
HALF = "\ud800"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path, SCHEMA, limits=Limits(subscriptions=3)) as broker:
        yield broker


@pytest.mark.parametrize(
    "event",
    [
        IncomingEvent('{"title": "x"}', source=HALF, id="1"),
        IncomingEvent('{"title": "x"}', envelope={"a": HALF}),
        IncomingEvent('{"title": "x"}', time=2**63),
        IncomingEvent(f'{{"title": "{HALF}"}}'),
        IncomingEvent('{"more": ' + "[" * 64 + "]" * 64 + "}"),
        IncomingEvent('{"price": 1}', source="s" * 65_536, id="1"),
        IncomingEvent('{"price": 1}', source="s", id="1" * 65_536),
    ],
)
def test_a_bad_event_is_refused(broker: Broker, event: IncomingEvent) -> None:
    with pytest.raises(EventError):
        broker.publish([event]).result()
    assert broker.publish([IncomingEvent('{"price": 1}')]).result().numbers == [0]


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, [{"b": [2**63]}]])
def test_an_open_schema_refuses_what_it_could_not_match(tmp_path: Path, value: Any) -> None:
    with Broker(tmp_path, {"unknown": "dynamic"}) as broker:
        with pytest.raises(EventError, match="64-bit"):
            broker.publish([IncomingEvent(json.dumps({"a": value}))]).result()
        assert broker.publish([IncomingEvent('{"a": 9223372036854775807}')]).result().numbers == [0]


@pytest.mark.parametrize(
    "bad", [PublishedEvent(HALF), PublishedEvent("{}", time=2**70), PublishedEvent("{}", id=HALF)]
)
def test_what_arrow_cannot_hold_refuses_only_itself(broker: Broker, bad: PublishedEvent) -> None:
    """Also if the checks before it have let it through."""
    sequencer = broker._sequencer
    answers = [
        sequencer.submit(Publish([each], sequencer.schema, lambda schema: []))
        for each in (PublishedEvent("{}"), bad, PublishedEvent("{}"))
    ]
    assert len(answers[0].result().numbers) == 1
    with pytest.raises(BrokerError):
        answers[1].result()
    assert len(answers[2].result().numbers) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"name": HALF},
        {"metadata": {"a": HALF}},
        {"metadata": {"a": float("nan")}},
        {"request_key": HALF},
        {"metadata": {"a": json.loads("[" * 64 + "]" * 64)}},  # no answer could show it
        {"name": "n" * 1001},
        {"request_key": "k" * 256},
    ],
)
def test_a_bad_subscribe_is_refused(broker: Broker, more: dict[str, Any]) -> None:
    with pytest.raises(BrokerError):
        broker.subscribe("price < 1", **more).result()
    with pytest.raises(TamisError):
        broker.subscribe(f"title = {HALF}").result()
    given = more.copy()
    key = given.pop("request_key", None)
    many = [BulkSubscription("price < 1", **given)]
    with pytest.raises(BrokerError):
        broker.subscribe_many(many, together=True, request_key=key).result()
    lease = broker.subscribe("price < 1").result()
    assert lease.id == 0
    if given:
        with pytest.raises(BrokerError):
            broker.update(0, ticket=lease.ticket, **given).result()


@pytest.mark.parametrize("name", [HALF, "n" * 1001])
def test_a_sink_with_a_bad_attribute_is_refused(name: str) -> None:
    with pytest.raises(BrokerError):
        Sink.of({"url": "http://example.com/", "body": [name]})


def test_a_cancelled_request_stops_nobody(broker: Broker) -> None:
    sequencer = broker._sequencer
    answers = [
        sequencer.submit(Publish([PublishedEvent("{}")], sequencer.schema, lambda schema: []))
        for _ in range(500)
    ]
    for each in answers[::2]:
        each.cancel()
    assert len({each.result().numbers[0] for each in answers if not each.cancelled()}) >= 250
    assert broker.failure is None


def test_a_failure_of_the_database_answers_everybody(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise OSError("broken")

    monkeypatch.setattr(State, "apply", fail)
    with pytest.raises(BrokerStoppedError):
        broker.subscribe("price < 1").result(60)
    with pytest.raises(BrokerStoppedError):
        broker.subscribe("price < 1").result(60)


def test_another_writer_of_the_database_is_waited_for(broker: Broker) -> None:
    """`tamis keys create` holds the database for a moment, while the broker applies changes."""
    other = apsw.Connection(str(broker.folder.state))
    with broker.state._lock:  # other threads of the broker use it
        broker.state._base.set_busy_timeout(10)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO keys VALUES ('a', 'b', 'admin', x'00', 0)")
    broker.subscribe("price < 1").result(60)  # it is in the log, and not yet in the database
    with pytest.raises(BusyError):
        broker.subscribe("price < 2").result(60)
    other.execute("COMMIT")
    assert broker.subscribe("price < 3").result(60).id is not None
    assert broker.failure is None


def test_a_request_key_belongs_to_one_request(broker: Broker) -> None:
    """Anonymous callers do not share keys; an owner learns that a key was used before."""
    first = broker.subscribe("price < 1", request_key="k").result()
    second = broker.subscribe("price < 2", request_key="k").result()
    assert first.ticket != second.ticket
    assert broker.subscribe("price < 1", request_key="k").result() == first
    ann = Caller("ann", ANONYMOUS.roles)
    mine = broker.subscribe("price < 1", request_key="k", caller=ann).result()
    assert broker.subscribe("price < 1", request_key="k", caller=ann).result() == mine
    with pytest.raises(RequestKeyError):
        broker.subscribe("price < 2", request_key="k", caller=ann).result()


def test_each_owner_has_a_quota_of_their_own(broker: Broker) -> None:
    ann = Caller("ann", ANONYMOUS.roles)
    for _ in range(3):
        lease = broker.subscribe("price < 1", caller=ann).result()
    with pytest.raises(QuotaError):
        broker.subscribe("price < 1", caller=ann).result()
    broker.subscribe("price < 1").result()
    broker.cancel(lease.id, caller=ann).result()
    broker.subscribe("price < 1", caller=ann).result()
    assert broker.state.count_of("ann") == 3
    assert broker.state.count_of(None) == 1


def test_nobody_has_a_name_resolved_without_a_ticket(broker: Broker) -> None:
    lease = broker.subscribe("price < 1").result()
    with pytest.raises(NotFoundError):
        broker.update(lease.id, ticket="wrong", sink=Sink("http://127.0.0.1/")).result()


def test_an_equal_schema_adds_nothing(broker: Broker) -> None:
    end = broker.log.end
    assert broker.extend(lambda schema: Schema.from_dict(schema.to_dict())).result() == end
    assert broker.log.end == end


def test_an_answer_is_new_while_the_database_is_behind(broker: Broker) -> None:
    lease = broker.subscribe("price < 1").result()
    other = apsw.Connection(str(broker.folder.state))
    with broker.state._lock:  # other threads of the broker use it
        broker.state._base.set_busy_timeout(10)
    other.execute("BEGIN IMMEDIATE")
    changed = broker.update(lease.id, ticket=lease.ticket, condition="price < 2").result(60)
    assert changed.condition == "price < 2"
    other.execute("COMMIT")
    renewed = broker.renew(lease.id, None, ticket=lease.ticket).result(60)
    assert renewed == changed._replace(until=None)
    assert broker.subscription(lease.id, ticket=lease.ticket) == renewed


def test_a_page_of_long_events_is_short(broker: Broker) -> None:
    """Each stream whose reader is slow holds a page."""
    lease = broker.subscribe("price < 5").result()
    event = IncomingEvent('{"price": 1, "title": "' + "x" * 60_000 + '"}')
    last = broker.publish([event] * 60).result().numbers[-1]
    until(lambda: broker.matching.matched > last)
    found, cursor = [], -1
    while cursor < last:
        page = broker.notifications(cursor, [lease.id])
        assert sum(len(each.event or "") for each in page.notifications) < 2 << 20
        found += [each.sequence for each in page.notifications]
        cursor = page.cursor
    assert found == list(range(last - 59, last + 1))
