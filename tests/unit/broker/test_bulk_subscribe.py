"""Many subscriptions in one request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tamis.broker.access.caller import Caller
from tamis.broker.broker import Broker
from tamis.broker.bulk_subscribe import BulkRefusedError, BulkSubscription
from tamis.broker.delivery.sink_address import SinkRules
from tamis.broker.delivery.sinks import Sink
from tamis.broker.incoming import IncomingEvent
from tamis.broker.limits import Limits
from tamis.errors import BrokerError, QuotaError, RequestKeyError
from tamis.service.routes.bulk_routes import _read
from tamis.store.log import Log

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}
ANN = Caller("ann", frozenset({"subscriber", "publisher"}))
ROOT = Caller("root", frozenset({"admin"}))


def many(count: int, **more: Any) -> list[BulkSubscription]:
    return [BulkSubscription(f"price < {at}")._replace(**more) for at in range(1, count + 1)]


def test_many_are_as_one_by_one(tmp_path: Path) -> None:
    """The same events match, tickets hold, and a new start finds the same."""
    with Broker(tmp_path, SCHEMA) as broker:
        alone = broker.subscribe("price < 50", caller=ANN).result()
        answer = broker.subscribe_many(many(200), ANN).result()
        assert [each.row for each in answer.leases] == list(range(200))
        ids = [each.id for each in answer.leases]
        (number,) = broker.publish([IncomingEvent('{"price": 150}')]).result().numbers
        broker.matching.wait(number, 60)
        found = broker.notifications(number - 1, None).notifications
        assert {each.subscription for each in found} == set(ids[150:])
        for lease in answer.leases[::50]:
            assert broker.subscription(lease.id, ticket=lease.ticket).owner == "ann"
        broker.cancel(ids[0], ticket=answer.leases[0].ticket).result()
    with Broker(tmp_path, SCHEMA, rebuild=True) as broker:
        assert broker.state.count() == 200
        live = {each.id: each for each in broker.state.subscriptions("ann", most=1000)}
        assert set(live) == {alone.id, *ids[1:]}
        assert live[ids[99]].condition == "price < 100"


def test_wrong_rows_are_named_and_the_others_added(tmp_path: Path) -> None:
    given = [
        *many(100),
        BulkSubscription("price <"),
        BulkSubscription("price < 5", until=1),
        BulkSubscription("price < 5", owner="bob"),
        BulkSubscription("price < 5", metadata={"a": float("nan")}),
        BulkSubscription("titel = x"),
        BulkSubscription("price < 5", name="\ud800"),
        BulkSubscription("price < 5", sink=Sink("http://127.0.0.1:9/")),
        BulkSubscription("price < 5", language="unheard of"),
    ]
    with Broker(tmp_path, SCHEMA) as broker:
        answer = broker.subscribe_many(given, ANN).result()
        assert [each.row for each in answer.refused] == list(range(100, 108))
        assert "title" in answer.refused[4].reason
        assert "--allow-sink" in answer.refused[6].reason
        assert broker.state.count_of("ann") == 100
        with pytest.raises(BulkRefusedError, match="row 100"):
            broker.subscribe_many(given, ANN, together=True)
        assert broker.state.count_of("ann") == 100
        bobs = broker.subscribe_many(many(2, owner="bob"), ROOT).result()
        assert {broker.subscription(each.id, caller=ROOT).owner for each in bobs.leases} == {"bob"}


def test_limits_hold_for_many(tmp_path: Path) -> None:
    limits = Limits(subscriptions=10, bulk_subscriptions=20)
    with Broker(tmp_path, SCHEMA, limits=limits) as broker:
        with pytest.raises(BrokerError, match="several"):
            broker.subscribe_many(many(21), ANN)
        broker.subscribe_many(many(6), ANN).result()
        with pytest.raises(QuotaError):
            broker.subscribe_many(many(5), ANN).result()
        assert broker.state.count_of("ann") == 6
        broker.subscribe_many(many(4), ANN).result()


def test_a_repeated_request_adds_nothing(tmp_path: Path) -> None:
    """Also one that was cut off in the middle, and comes again with more rows."""
    with Broker(tmp_path, SCHEMA) as broker:
        first = broker.subscribe_many(many(5), ANN, request_key="k").result()
        again = broker.subscribe_many(many(8), ANN, request_key="k").result()
        assert again.leases[:5] == first.leases
        assert broker.state.count() == 8
        with pytest.raises(RequestKeyError):
            broker.subscribe_many(many(5, name="other"), ANN, request_key="k").result()


def test_secrets_sign_the_webhooks_of_many(tmp_path: Path) -> None:
    with Broker(tmp_path, SCHEMA, sinks=SinkRules.of(["127.0.0.1"])) as broker:
        sink = Sink("http://127.0.0.1:9/", ("price",))
        (lease,) = broker.subscribe_many(many(1, sink=sink)).result().leases
        live = broker.subscription(lease.id, ticket=lease.ticket)
        assert [lease.secret] == broker.webhooks.secrets(live)


def test_ids_in_text_are_given(tmp_path: Path) -> None:
    Log.create(tmp_path / "log", SCHEMA, ids="text")
    with Broker(tmp_path) as broker:
        broker.subscribe_many([BulkSubscription("price < 5", id="a")]).result()
        both = [BulkSubscription("price < 5", id=id) for id in ("b", "b", None)]
        assert [each.row for each in broker.subscribe_many(both).result().refused] == [1, 2]
        with pytest.raises(BrokerError, match="taken"):
            broker.subscribe_many([BulkSubscription("price < 5", id="a")]).result()


def test_only_webhooks_have_secrets(tmp_path: Path) -> None:
    sinks = [Sink("http://127.0.0.1:9/"), Sink(None, "none"), None]
    with Broker(tmp_path, SCHEMA, sinks=SinkRules.of(["127.0.0.1"])) as broker:
        given = [BulkSubscription("price < 5", sink=sink) for sink in sinks]
        leases = broker.subscribe_many(given, ANN).result().leases
        assert [each.secret is not None for each in leases] == [True, False, False]


def test_the_end_of_a_lease_has_a_time_zone() -> None:
    lines = b'{"condition": "a", "until": "2030-01-01T00:00:00"}\n' * 2
    found, wrong = _read(lines + lines.replace(b':00"', b':00Z"'), 0)
    assert list(found) == [2, 3]
    assert "timezone" in wrong[0]


def test_conditions_in_another_language_live_on(tmp_path: Path) -> None:
    pattern = '{"price": [{"numeric": ["<", 5]}], "title": [{"prefix": "o"}]}'
    with Broker(tmp_path, SCHEMA) as broker:
        alone = broker.subscribe(pattern, language="eventbridge", caller=ANN).result()
        given = [
            *many(1),
            BulkSubscription(pattern, language="eventbridge"),
            BulkSubscription("title LIKE 'o_k'", language="cesql"),
        ]
        many_ids = [each.id for each in broker.subscribe_many(given, ANN).result().leases]
        broker.update(alone.id, ticket=alone.ticket, name="cheap oak").result()
    with Broker(tmp_path, SCHEMA, rebuild=True) as broker:
        shown = broker.subscription(alone.id, ticket=alone.ticket)
        assert (shown.condition, shown.language) == (pattern, "eventbridge")
        (number,) = broker.publish([IncomingEvent('{"price": 4, "title": "oak"}')]).result().numbers
        broker.matching.wait(number, 60)
        found = broker.notifications(number - 1, None).notifications
        assert {each.subscription for each in found} == {alone.id, *many_ids[1:]}
