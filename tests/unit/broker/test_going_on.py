"""Matching and webhooks go on after a failure that passes."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from tamis.broker.broker import Broker
from tamis.broker.delivery import retries
from tamis.broker.delivery.deliverer import Deliverer
from tamis.broker.delivery.outbox import Outbox, PendingDelivery, Settlement
from tamis.broker.delivery.sink_queue import PER_SINK
from tamis.broker.delivery.sinks import Sink
from tamis.broker.delivery.webhooks import Webhooks
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching import inline_matching
from tamis.broker.matching.notification_files import NotificationFiles
from tamis.errors import BrokerError, FullError, StoreError
from tests.unit.broker import test_webhooks
from tests.unit.broker.test_webhooks import RULES, SCHEMA, Receiver, until

pytestmark = pytest.mark.slow

receiver, quick = test_webhooks.receiver, test_webhooks.quick


def publish(broker: Broker, price: int) -> int:
    return broker.publish([IncomingEvent(f'{{"price": {price}}}')]).result().numbers[0]


def test_matching_waits_for_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk refuses the files; matching goes on, up to a limit, and writes them later."""
    monkeypatch.setattr(inline_matching, "FLUSH", 0.01)
    monkeypatch.setattr(inline_matching, "KEPT", 3)
    right, full = NotificationFiles.write, True

    def write(self: NotificationFiles, *given: Any) -> None:
        if full:
            raise StoreError("no space") from OSError(errno.ENOSPC, "No space left on device")
        right(self, *given)

    monkeypatch.setattr(NotificationFiles, "write", write)
    with Broker(tmp_path, SCHEMA) as broker:
        broker.subscribe("price < 5").result()
        for _ in range(3):
            last = publish(broker, 1)
        until(lambda: broker.matching.full and broker.matching.matched > last)
        beyond = publish(broker, 1)
        assert broker.matching.wait(beyond, 0.3) == beyond  # memory is full too
        full = False
        assert broker.matching.wait(beyond, 60) > beyond
        until(lambda: broker.matching.files.matched > beyond)
        assert broker.matching.failure is None


def test_webhooks_outlive_a_full_disk_and_a_missing_key(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, secrets = Outbox.settle, Webhooks.secrets
    failures: list[Exception] = [FullError("full"), FullError("full")]
    missing: list[Exception] = []

    def failing_settle(self: Outbox, *given: Any) -> None:
        if broker_runs and failures:
            raise failures.pop()
        settle(self, *given)

    def failing_secrets(self: Webhooks, live: Any) -> list[str]:
        if missing:
            raise missing.pop()
        return secrets(self, live)

    broker_runs = False
    monkeypatch.setattr(Outbox, "settle", failing_settle)
    monkeypatch.setattr(Webhooks, "secrets", failing_secrets)
    with Broker(tmp_path, SCHEMA, sinks=RULES) as broker:
        broker_runs = True
        broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        missing.append(BrokerError("the server lacks the key"))
        publish(broker, 1)
        receiver.wait(1)
        until(lambda: not failures and broker.webhooks.failure is None)
        number = publish(broker, 2)
        until(lambda: number in test_webhooks._delivered(receiver))


def test_what_was_matched_before_the_end_is_delivered(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers = [(500, {})] * 4
    with Broker(tmp_path, SCHEMA, sinks=RULES) as broker:
        lease = broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        publish(broker, 1)
        broker.cancel(lease.id, ticket=lease.ticket).result()
        receiver.wait(5)
        until(lambda: broker.webhooks.outbox.count() == 0)


def test_the_cursor_moves_in_small_steps(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events without a notification move it too: a start need not read them again."""
    monkeypatch.setattr("tamis.broker.delivery.deliverer.PAGE", 5)
    with Broker(tmp_path, SCHEMA, sinks=RULES) as broker:
        broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        for _ in range(4):
            number = broker.publish([IncomingEvent('{"price": 9}')] * 3).result().numbers[-1]
            broker.matching.wait(number, 60)
            seen = broker.webhooks._deliverer
            assert isinstance(seen, Deliverer)
            until(lambda: seen._cursor >= number)  # noqa: B023
        assert (broker.webhooks.outbox.cursor() or 0) > 0


def test_a_failure_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    broker = Broker(tmp_path, SCHEMA, matching=False, failed=lambda: said.append("failed"))

    def fail(opened: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("os.fdatasync", fail)
        with pytest.raises(BrokerError):
            publish(broker, 1)
        until(lambda: bool(said))
    broker.close()


def test_a_failing_sink_is_left_alone_at_once(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of the same page that wait for their turn are not tried any more."""
    monkeypatch.setattr(retries, "OPEN_FOR", 1000)
    receiver.answers = [(500, {})] * 100
    with Broker(tmp_path, SCHEMA, sinks=RULES) as broker:
        broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        broker.publish([IncomingEvent('{"price": 1}')] * 60).result()
        until(lambda: broker.webhooks.outbox.count() == 60)
        assert len(receiver.messages) < retries.OPEN_AFTER + 2 * PER_SINK


def test_a_replay_is_of_one_subscription(tmp_path: Path) -> None:
    with Broker(tmp_path, SCHEMA, matching=False) as broker:
        outbox = broker.webhooks.outbox
        for id, sequence in ((1, 5), (2, 5), (1, 6)):
            outbox.settle(Settlement(dead=[PendingDelivery(id, sequence, 8, 0, "gone")]))
        assert broker.webhooks.replay(1) == 2
        assert [each.subscription for each in outbox.dead()] == [2]
        assert outbox.count(1) == 2
