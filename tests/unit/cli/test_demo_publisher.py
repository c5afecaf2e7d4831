"""The publisher of the demonstration: its conditions, its lots and its log."""

from __future__ import annotations

import json
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
from tamis.replay.json_lines import reader
from tamis.store import Lives, Log
from tamis.workload.auction_schema import schema

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log.create(tmp_path / "log", schema(), ids="int64")


def _lives(log: Log) -> Lives:
    lives = Lives()
    lives.fold(log.changes(0, log.end), log.end)
    return lives


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
    lives = _lives(log)
    assert list(lives) == list(range(800))
    assert [life.condition for life in lives.values()] == draw_conditions(0, START)[:800]


def test_broken_events_are_all_dead() -> None:
    parsed = reader(json.dumps(schema())).parse(pa.chunked_array([list(BROKEN)]))
    assert parsed.dead.null_count == 0


def test_lots_and_changes(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "_LEASE", (1.0, 2.0))  # all are soon over, and renewed
    load_subscriptions(log, 200, START)
    made = AuctionPublisher(log, _lives(log), rate=1e3, churn=1e3)
    for _ in range(5):
        made._change(40)
        made.publish(7)
    made._publish_broken()
    assert (made.published, made.subscribed, made.broken) == (35, 100, 1)
    assert made.cancelled + made.renewed > 0
    assert log.counts(0) == (36, 200 + made.subscribed + made.cancelled + made.renewed)
    lives = _lives(log)
    assert not lives.ignored, "no subscription is cancelled twice"
    assert len(lives) == 200 + made.subscribed - made.cancelled
    assert max(int(id) for id in lives) == 299
    # Another run gives new ids, and lots that are not those of the first.
    again = AuctionPublisher(log, lives, rate=1e3, churn=1e3)
    again._change(2)
    assert max(int(id) for id in _lives(log)) == 300


def test_it_stops(log: Log) -> None:
    load_subscriptions(log, 50, START)
    made = AuctionPublisher(log, _lives(log), rate=1e3, churn=100)
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

    made = AuctionPublisher(log, _lives(log), rate=1e3, churn=0)
    monkeypatch.setattr(log, "publish", full)
    made.start()
    made._thread.join()
    assert made.trouble == "publishing failed: no space left"


def test_the_warmup_does_the_work_of_a_worker(tmp_path: Path) -> None:
    assert compile_kernels(tmp_path) > len(BROKEN)


def test_the_warmup_can_be_stopped_twice(tmp_path: Path) -> None:
    warmup = KernelWarmup(tmp_path / "logs" / "warmup.log")
    warmup.stop()
    warmup.stop()
