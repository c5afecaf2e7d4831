"""Logs with text ids, which subscribers choose: an id stays with its owner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.broker.access.caller import PUBLISHER, SUBSCRIBER, Caller
from tamis.broker.broker import Broker
from tamis.broker.bulk_subscribe import BulkSubscription
from tamis.broker.incoming import IncomingEvent
from tamis.broker.maintenance.erasure import erase_owner
from tamis.errors import BrokerError
from tamis.store.log import Log

SCHEMA = {"attributes": {"price": "decimal"}}
ROLES = frozenset({PUBLISHER, SUBSCRIBER})
ANN, BOB = Caller("ann", ROLES), Caller("bob", ROLES)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    Log.create(tmp_path / "log", SCHEMA, ids="text")
    with Broker(tmp_path) as broker:
        yield broker


def _come_and_go(broker: Broker, caller: Caller) -> int:
    """Subscribe as "mine", be notified, cancel; the number of the event."""
    broker.subscribe("price < 5", id="mine", caller=caller).result()
    (number,) = broker.publish([IncomingEvent('{"price": 1}')], caller).result().numbers
    broker.cancel("mine", caller=caller).result()
    assert broker.matching.wait(number, 60) > number
    return number


def test_an_id_that_another_owner_has_had_is_taken(broker: Broker) -> None:
    """Else each of them could read the notifications of the other."""
    _come_and_go(broker, ANN)
    with pytest.raises(BrokerError, match="'mine' is taken"):
        broker.subscribe("price < 5", id="mine", caller=BOB).result()
    with pytest.raises(BrokerError, match="'mine' is taken"):
        broker.subscribe_many([BulkSubscription("price < 5", "mine")], BOB).result()
    with pytest.raises(BrokerError, match="'mine' is taken"):
        broker.subscribe("price < 5", id="mine").result()


def test_an_owner_may_use_an_id_again(broker: Broker) -> None:
    _come_and_go(broker, ANN)
    number = _come_and_go(broker, ANN)
    broker.subscribe_many([BulkSubscription("price < 5", "mine")], ANN).result()
    found = broker.notifications(number - 1, broker.readable(ANN)).notifications
    assert [each.sequence for each in found] == [number]


def test_erasing_an_owner_leaves_what_others_have(tmp_path: Path) -> None:
    Log.create(tmp_path / "log", SCHEMA, ids="text")
    with Broker(tmp_path) as broker:
        _come_and_go(broker, ANN)
        broker.subscribe("price < 7", id="other", caller=BOB).result()
    erase_owner(tmp_path, "ann")
    with Broker(tmp_path, rebuild=True) as broker:
        live = broker.state.subscriptions()
        assert [(each.id, each.owner) for each in live] == [("other", "bob")]
        broker.subscribe("price < 5", id="mine", caller=BOB).result()  # nothing of it is left
