"""Pages of live subscriptions: every order, from every cursor, against a sort of all of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tamis.broker import subscription_search
from tamis.broker.access.caller import ANONYMOUS, SUBSCRIBER, Caller
from tamis.broker.broker import Broker
from tamis.broker.delivery.sinks import Sink
from tamis.broker.state import StoredSubscription
from tamis.broker.subscription_query import Order, SubscriptionQuery
from tamis.broker.subscription_search import search_part

ANN = Caller("ann", frozenset({SUBSCRIBER}))


def _pages(broker: Broker, query: SubscriptionQuery, most: int) -> list[StoredSubscription]:
    found: list[StoredSubscription] = []
    while page := broker.state.search(query, most):
        assert len(page) <= most
        found += page
        query = query._replace(after=page[-1].id, until=page[-1].until)
    return found


@pytest.mark.parametrize("most", [1, 3, 100])
def test_every_order_has_every_subscription_once(tmp_path: Path, most: int) -> None:
    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        for number, hours in enumerate([3, None, 1, 3, 2, None, 1, 3]):
            lease = None if hours is None else timedelta(hours=hours)
            broker.subscribe(f"price < {number}", lease=lease).result()
        everything = broker.state.subscriptions()
        orders: dict[Order, list[StoredSubscription]] = {
            "oldest": everything,
            "newest": everything[::-1],
            "ending": sorted(
                (each for each in everything if each.until is not None),
                key=lambda each: (each.until or 0, each.id),
            ),
        }
        for order, expected in orders.items():
            assert _pages(broker, SubscriptionQuery(order=order), most) == expected


def test_what_a_page_is_limited_to(tmp_path: Path) -> None:
    with Broker(tmp_path, {"attributes": {"price": "decimal", "title": "text"}}) as broker:
        broker.subscribe("price < 1", name="cheap", sink=Sink(None)).result()
        broker.subscribe("price < 2", caller=ANN).result()
        broker.subscribe('title = "cheap"', caller=ANN).result()

        def ids(query: SubscriptionQuery) -> list[object]:
            return [each.id for each in broker.state.search(query, 10)]

        assert ids(SubscriptionQuery(owner="ann", order="newest")) == [2, 1]
        assert ids(SubscriptionQuery(containing="cheap")) == [0, 2]
        assert ids(SubscriptionQuery(containing="cheap", owner="ann")) == [2]
        assert ids(SubscriptionQuery(with_sink=True)) == [0]
        assert ids(SubscriptionQuery(containing="'")) == []


@pytest.mark.parametrize("order", ["oldest", "newest", "ending"])
@pytest.mark.parametrize("owner", [None, "ann"])
def test_a_search_in_parts_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Order, owner: str | None
) -> None:
    monkeypatch.setattr(subscription_search, "_ROWS", 3)
    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        for number in range(20):
            broker.subscribe(
                f"price < {number % 7}",
                caller=ANN if number % 3 else ANONYMOUS,
                lease=timedelta(hours=1 + number % 4) if number % 5 else None,
            ).result()
        for text, most in (("price < 3", 2), ("price", 4), ("nothing has this", 4)):
            query = SubscriptionQuery(owner, text, order)
            whole = broker.state.search(query, 100)
            found: list[StoredSubscription] = []
            rest: SubscriptionQuery | None = query
            looked = parts = 0
            while rest is not None:
                part = search_part(broker.state, rest, most, 0.0)
                assert part.looked <= 3  # no time is left for a second question
                found, rest = found + part.found, part.rest
                looked, parts = looked + part.looked, parts + 1
            assert found == whole
            assert parts > 1
        # With time, one part is enough.
        part = search_part(broker.state, SubscriptionQuery(owner, "< 3", order), 100, 60.0)
        assert part.found == broker.state.search(SubscriptionQuery(owner, "< 3", order), 100)
        assert part.rest is None
