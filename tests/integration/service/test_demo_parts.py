"""The parts of the demonstration, at a real service: its traffic, its receiver, its service."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.cli.demo import auction_traffic
from tamis.cli.demo.auction_run import AuctionRun
from tamis.cli.demo.auction_traffic import (
    BLOCK,
    BROKEN,
    LotPublisher,
    Subscribers,
    draw_conditions,
)
from tamis.cli.demo.demo_files import DemoFiles
from tamis.cli.demo.demo_service import HOST, DemoService
from tamis.cli.demo.warmup import KernelWarmup, compile_kernels
from tamis.client import Client
from tamis.errors import SettingError, TamisError
from tamis.store import Log, SubscriptionSnapshot
from tamis.workload.auction_schema import schema

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> DemoFiles:
    files = DemoFiles(tmp_path_factory.mktemp("demo"), schema())
    assert not files.prepare(fresh=True)
    return files


@pytest.fixture(scope="module")
def service(files: DemoFiles) -> Iterator[DemoService]:
    options = ("--schema", str(files.schema), "--allow-sink", HOST)
    service = DemoService(files.data, files.service, None, options)
    service.wait()
    yield service
    service.stop()
    assert not service.is_running


@pytest.fixture
def client(service: DemoService) -> Iterator[Client]:
    with Client(service.url, key=service.new_key()) as client:
        yield client


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


def test_subscriptions_come_and_go(
    files: DemoFiles, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, before = Log.open(files.log), len(_snapshot(Log.open(files.log)))
    made = Subscribers(client, wanted=150, churn=100, permanent=())
    monkeypatch.setattr(auction_traffic, "TOGETHER", 100)
    made.add_some()
    made.add_some()
    assert made.permanent == 150
    monkeypatch.setattr(auction_traffic, "_LEASE", (3.0, 4.0))  # all are soon renewed, or over
    monkeypatch.setattr(auction_traffic, "_RENEWED", 1.0)
    for _ in range(3):
        made.change(40)
    assert made.subscribed == 150 + 3 * 20
    assert made.cancelled > 0
    assert made.renewed > 0
    snapshot = _snapshot(log)
    assert not snapshot.ignored, "no subscription is cancelled twice"
    leased = [each for each in snapshot.values() if each.until is not None]
    assert len(snapshot) - len(leased) == before + made.permanent
    # Somebody else ends one: that is no trouble.
    client.cancel(made._permanent[0])
    made._permanent = made._permanent[:1]
    made.change(100)


def test_lots_are_published_and_broken_ones_refused(files: DemoFiles, client: Client) -> None:
    log = Log.open(files.log)
    before = log.counts(0)[0]
    made = LotPublisher(client, rate=1e3, seed=7)
    made.publish(30)
    reasons = set()
    for _ in BROKEN:
        made.publish_broken()
        reasons.add(made.refusal)
    assert log.counts(0)[0] == before + 30
    assert (made.published, made.broken, len(reasons)) == (30, len(BROKEN), len(BROKEN))
    made.start()
    while made.published < 100:
        assert made.trouble is None
    made.stop()
    assert log.counts(0)[0] == before + made.published


def test_webhooks_are_received(files: DemoFiles, service: DemoService) -> None:
    run = AuctionRun(service, files.data, subscriptions=200, rate=1e3, churn=0)
    assert run.subscribe() >= 200
    run.subscribe()  # those with a webhook are not there twice
    named = [each for each in run._client.subscriptions(q="webhook") if each.sink]
    assert len(named) == 20
    run.lots.start()
    while not run.has_notification() or not run.receiver.received:
        assert run.trouble is None
    rows = {name: (value, more) for name, value, more in run.rows()}
    assert "received; the last: lot" in rows["webhooks"][1]
    assert run.watch.look().events > 0
    while not (found := run.watch.newest()):
        run.watch.look()
    assert all(row["title"] and row["price"] > 0 for row in found)
    run.stop()
    live = run.watch.look() and run.watch.snapshot
    assert len(live) >= 200
    assert not [each for each in live if each in {one.id for one in named}]
    assert run.receiver.refused == 0


def test_a_port_that_is_taken_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = DemoFiles(tmp_path, schema())
    files.prepare(fresh=True)
    options = ("--schema", str(files.schema))
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr("tamis.cli.demo.demo_service._free_port", lambda wanted: port)
        service = DemoService(files.data, files.service, None, options)
        service.wait()
        service.stop()
        wanted = DemoService(files.data, files.service, port, options)
        with pytest.raises(TamisError, match="already in use"):
            wanted.wait()
    assert not service.url.endswith(f":{port}")


def test_a_service_that_cannot_start_says_why(files: DemoFiles, service: DemoService) -> None:
    second = DemoService(files.data, files.folder / "second.log", None, ())
    with pytest.raises(TamisError, match="another process serves this folder"):
        second.wait()
    second.stop()
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match=f"cannot listen on {HOST}:{port}"):
            DemoService(files.data, files.folder / "third.log", port, ())


def test_a_fresh_start_forgets(tmp_path: Path) -> None:
    files = DemoFiles(tmp_path / "demo", schema())
    files.prepare(fresh=False)
    assert json.loads(files.schema.read_text()) == schema()
    Log.create(files.log, schema(), ids="int64")
    assert files.prepare(fresh=False)
    assert not files.prepare(fresh=True)
    assert not files.data.exists()


def test_the_warmup_does_the_work_of_a_worker(tmp_path: Path) -> None:
    assert compile_kernels(tmp_path) > len(BROKEN)
    warmup = KernelWarmup(tmp_path / "logs" / "warmup.log")
    warmup.stop()
    warmup.stop()
