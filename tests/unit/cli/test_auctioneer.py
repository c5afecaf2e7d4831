"""The publisher of the demonstration: its conditions hold, its lots are events, its log adds up."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.cli import auctioneer
from tamis.cli.auctioneer import BLOCK, BROKEN, Auctioneer, bulk, wishes
from tamis.cli.warming import Warming, warm
from tamis.encode.encoder import Encoder
from tamis.replay.json_lines import LineReader
from tamis.store import Log, Snapshot
from tamis.workload.auction_schema import schema

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log.create(tmp_path / "log", schema(), ids="int64")


def _snapshot(log: Log) -> Snapshot:
    snapshot = Snapshot()
    snapshot.fold(log.changes(0, log.end), log.end)
    return snapshot


def test_wishes_are_conditions_that_ask_precisely() -> None:
    texts = wishes(3, START)
    assert len(texts) == BLOCK
    assert texts == wishes(3, START)
    assert texts != wishes(4, START)
    engine = Engine(Schema.from_dict(schema()))
    engine.subscribe_table(pa.table({"id": list(range(500)), "condition": texts[:500]}))
    assert len(engine) == 500
    assert all(text.count(" and ") >= 3 for text in texts)


def test_subscribing_in_bulk_goes_on_where_it_was_broken_off(log: Log) -> None:
    bulk(log, 300, START)
    bulk(log, 800, START)
    bulk(log, 800, START)
    snapshot = _snapshot(log)
    assert list(snapshot) == list(range(800))
    assert [life.condition for life in snapshot.values()] == wishes(0, START)[:800]


def test_broken_events_are_all_dead() -> None:
    reader = LineReader(Encoder(Schema.from_dict(schema())))
    parsed = reader.parse(pa.chunked_array([list(BROKEN)]))
    assert parsed.reasons.null_count == 0


def test_lots_and_changes(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auctioneer, "_LEASE", (1.0, 2.0))  # all are soon over, and renewed
    bulk(log, 200, START)
    made = Auctioneer(log, _snapshot(log), rate=1e3, churn=1e3)
    for _ in range(5):
        made._change(40)
        made.publish(7)
    made._break()
    assert (made.published, made.came, made.broken) == (35, 100, 1)
    assert made.left + made.renewed > 0
    assert log.counts(0) == (36, 200 + made.came + made.left + made.renewed)
    snapshot = _snapshot(log)
    assert not snapshot.ignored, "nobody leaves twice"
    assert len(snapshot) == 200 + made.came - made.left
    assert max(int(id) for id in snapshot) == 299
    # Another run gives new ids, and lots that are not those of the first.
    again = Auctioneer(log, snapshot, rate=1e3, churn=1e3)
    again._change(2)
    assert max(int(id) for id in _snapshot(log)) == 300


def test_it_stops(log: Log) -> None:
    bulk(log, 50, START)
    made = Auctioneer(log, _snapshot(log), rate=1e3, churn=100)
    made.start()
    while not made.published:
        pass
    made.stop()
    end = log.end
    assert made.trouble is None
    assert log.end == end
    assert log.counts(0)[0] == made.published + made.broken


def test_a_log_that_takes_nothing_is_told(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    made = Auctioneer(log, _snapshot(log), rate=1e3, churn=0)
    monkeypatch.setattr(log, "publish", full)
    made.start()
    made._thread.join()
    assert made.trouble == "no more lots: no space left"


def test_warming_does_what_a_worker_does(tmp_path: Path) -> None:
    assert warm(tmp_path) > len(BROKEN)


def test_the_process_that_warms_leaves_nothing_behind(tmp_path: Path) -> None:
    warming = Warming(tmp_path / "logs" / "warming.log")
    warming.stop()
    warming.stop()
