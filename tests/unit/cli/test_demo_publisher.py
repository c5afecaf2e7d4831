"""The publisher of the demonstration: its conditions, its lots and its log."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.cli.demo import publisher
from tamis.cli.demo.publisher import (
    BLOCK,
    BROKEN,
    AuctionPublisher,
    draw_conditions,
    load_subscriptions,
)
from tamis.cli.demo.warmup import KernelWarmup, compile_kernels
from tamis.encode.encoder import Encoder
from tamis.replay.json_lines import LineReader
from tamis.store import Log, SubscriptionSnapshot
from tamis.workload.auction_schema import schema

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log.create(tmp_path / "log", schema(), ids="int64")


def _snapshot(log: Log) -> SubscriptionSnapshot:
    snapshot = SubscriptionSnapshot()
    snapshot.fold(log.changes(0, log.end), log.end)
    return snapshot


def test_conditions_are_precise() -> None:
    texts = draw_conditions(3, START)
    assert len(texts) == BLOCK
    assert texts == draw_conditions(3, START)
    assert texts != draw_conditions(4, START)
    engine = Engine(Schema.from_dict(schema()))
    engine.subscribe_table(pa.table({"id": list(range(500)), "condition": texts[:500]}))
    assert len(engine) == 500
    assert all(text.count(" and ") >= 3 for text in texts)


def test_loading_continues_after_an_interruption(log: Log) -> None:
    load_subscriptions(log, 300, START)
    load_subscriptions(log, 800, START)
    load_subscriptions(log, 800, START)
    snapshot = _snapshot(log)
    assert list(snapshot) == list(range(800))
    assert [live.condition for live in snapshot.values()] == draw_conditions(0, START)[:800]


def test_broken_events_are_all_dead() -> None:
    reader = LineReader(Encoder(Schema.from_dict(schema())))
    parsed = reader.parse(pa.chunked_array([list(BROKEN)]))
    assert parsed.reasons.null_count == 0


def test_lots_and_changes(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "_LEASE", (1.0, 2.0))  # all are soon over, and renewed
    load_subscriptions(log, 200, START)
    made = AuctionPublisher(log, _snapshot(log), rate=1e3, churn=1e3)
    for _ in range(5):
        made._change(40)
        made.publish(7)
    made._publish_broken()
    assert (made.published, made.subscribed, made.broken) == (35, 100, 1)
    assert made.cancelled + made.renewed > 0
    assert log.counts(0) == (36, 200 + made.subscribed + made.cancelled + made.renewed)
    snapshot = _snapshot(log)
    assert not snapshot.ignored, "no subscription is cancelled twice"
    assert len(snapshot) == 200 + made.subscribed - made.cancelled
    assert max(int(id) for id in snapshot) == 299
    # Another run gives new ids, and lots that are not those of the first.
    again = AuctionPublisher(log, snapshot, rate=1e3, churn=1e3)
    again._change(2)
    assert max(int(id) for id in _snapshot(log)) == 300


def test_it_stops(log: Log) -> None:
    load_subscriptions(log, 50, START)
    made = AuctionPublisher(log, _snapshot(log), rate=1e3, churn=100)
    made.start()
    while not made.published:
        pass
    made.stop()
    end = log.end
    assert made.trouble is None
    assert log.end == end
    assert log.counts(0)[0] == made.published + made.broken


def test_a_failing_log_is_reported(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    made = AuctionPublisher(log, _snapshot(log), rate=1e3, churn=0)
    monkeypatch.setattr(log, "publish", full)
    made.start()
    made._thread.join()
    assert made.trouble == "publishing failed: no space left"


def test_the_warmup_does_the_work_of_a_worker(tmp_path: Path) -> None:
    assert compile_kernels(tmp_path) > len(BROKEN)
    warmup = KernelWarmup(tmp_path / "logs" / "warmup.log")
    warmup.stop()
    warmup.stop()
