"""Retention: what is old goes, and what is needed stays."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.maintenance.retention import KeepRules, Retention
from tamis.broker.matching.compile_version import compile_version
from tamis.broker.matching.notification_reader import TrimmedError
from tamis.store.log import Log
from tamis.store.verification import verify

SCHEMA = {"attributes": {"price": "decimal"}}
DAY = timedelta(days=1)


class _Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_900_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += int(days * 86_400_000_000)


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.store.segment_files.MOST", 2)  # packs


def _publish(broker: Broker, price: int) -> int:
    number = broker.publish([IncomingEvent(f'{{"price": {price}}}')]).result().numbers[0]
    broker.matching.wait(number, 60)
    return number


def _settle(broker: Broker) -> None:
    """Wait until everything is matched and on disk. No sink is behind: the cursor is moved."""
    end = broker.log.end
    while broker.matching.files.matched < end:
        time.sleep(0.02)
    with broker.state.transaction() as base:
        base.execute("UPDATE facts SET value = ? WHERE name = 'delivered'", (end - 1,))


def test_old_events_go_and_subscriptions_stay(tmp_path: Path) -> None:
    clock = _Clock()
    with Broker(tmp_path / "data", SCHEMA, clock=clock) as broker:
        lease = broker.subscribe("price < 100", lease=None).result()
        old = [_publish(broker, price) for price in range(10)]
        clock.pass_days(8)
        new = [_publish(broker, price) for price in range(10, 14)]
        _settle(broker)
        begin, _ = Retention(broker, KeepRules(events=7 * DAY)).look()
        assert old[7] <= begin <= new[0]  # whole segments
        assert verify(broker.log).good
        with pytest.raises(TrimmedError, match=f"before {begin} are not kept"):
            broker.notifications(-1, None)
    with Broker(tmp_path / "data", clock=clock, rebuild=True) as broker:
        page = broker.notifications(new[0] - 1, [lease.id])
        assert [each.sequence for each in page.notifications] == new
        assert _publish(broker, 50) == new[-1] + 1
        _settle(broker)
        begin, _ = Retention(broker, KeepRules(event_bytes=1)).look()
        assert begin >= new[-1]
        assert broker.state.count() == 1


def test_trimming_holds_for_what_is_needed(tmp_path: Path) -> None:
    clock = _Clock()
    with Broker(tmp_path / "data", SCHEMA, clock=clock) as broker:
        broker.subscribe("price < 100", lease=None).result()
        numbers = [_publish(broker, price) for price in range(10)]
        clock.pass_days(8)
        _publish(broker, 11)
        with broker.state.transaction() as base:  # a webhook waits for its next attempt
            base.execute(
                "INSERT INTO deliveries VALUES (?, ?, 1, ?, 'x')", (0, numbers[3], clock.now * 2)
            )
        _settle(broker)
        retention = Retention(broker, KeepRules(events=7 * DAY, event_bytes=1))
        assert retention.needed() == numbers[3]
        begin, _ = retention.look()
        assert numbers[1] <= begin <= numbers[3]


def test_a_version_older_than_the_log_is_not_used(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", SCHEMA) as broker:
        broker.subscribe("price < 100", lease=None).result()
        _publish(broker, 1)
        compile_version(broker.log, broker.folder.index, 1)
        numbers = [_publish(broker, price) for price in range(10)]
    assert Log.open(tmp_path / "data" / "log").trim(numbers[6]) > 1
    with Broker(tmp_path / "data") as broker:
        number = _publish(broker, 5)
        page = broker.notifications(number - 1, None)
        assert [each.sequence for each in page.notifications] == [number]


def test_old_notifications_go_and_the_last_stay(tmp_path: Path) -> None:
    clock = _Clock()
    for days in (0, 8):
        with Broker(tmp_path / "data", SCHEMA, clock=clock) as broker:
            if not days:
                broker.subscribe("price < 100", lease=None).result()
            last = [_publish(broker, price) for price in range(5)]
    clock.pass_days(100_000)  # manifests have the time of the machine
    with Broker(tmp_path / "data", clock=clock) as broker:
        _settle(broker)
        files = broker.matching.files
        assert files.begin == 0
        _, begin = Retention(broker, KeepRules(notifications=7 * DAY)).look()
        assert 0 < begin < files.matched
        with pytest.raises(TrimmedError):
            broker.notifications(-1, None)
        page = broker.notifications(begin - 1, None)
        assert [each.sequence for each in page.notifications] == [
            number for number in last if number >= begin
        ]
        matched = files.matched
    with Broker(tmp_path / "data", clock=clock) as broker:  # a start matches nothing twice
        assert broker.matching.files.matched == matched
        assert broker.matching.files.begin == begin
