"""A log in PostgreSQL is trimmed, and moves between a folder and a database."""

from __future__ import annotations

import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from tamis.broker.access.caller import Caller
from tamis.broker.broker import Broker
from tamis.broker.maintenance.retention import KeepRules, Retention
from tamis.cli.main import tamis
from tamis.errors import StoreError
from tests.unit.broker.test_shared import brokers, events, pairs

pytestmark = [pytest.mark.postgresql, pytest.mark.slow]
SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}


@pytest.fixture
def database(postgresql: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("tamis.store.segment_files.MOST", 2)  # packs
    with psycopg.connect(postgresql) as base:
        base.execute("DROP SCHEMA IF EXISTS tamis CASCADE")
    return postgresql


def _count(database: str, table: str) -> int:
    with psycopg.connect(database) as base:
        row = base.execute(f"SELECT count(*) FROM tamis.{table}".encode()).fetchone()
        assert row is not None
        return int(row[0])


def _settle(broker: Broker, database: str) -> None:
    """Wait until everything is matched and stored, and move the cursor of webhooks."""
    end = broker.log.end
    until = time.monotonic() + 60
    while broker.matching.files.matched < end:
        assert time.monotonic() < until
        time.sleep(0.05)
    with psycopg.connect(database) as base:
        base.execute("UPDATE tamis.facts SET value = %s WHERE name = 'delivered'", (end - 1,))


def test_a_log_in_a_database_is_trimmed(database: str, tmp_path: Path) -> None:
    with brokers(database, tmp_path) as (one, two):
        lease = one.subscribe("price < 5", lease=None).result()
        for price in range(9):
            one.publish(events(price)).result()
            pairs(one)
            _settle(one, database)
        two.follow().result()
        packs, ranges = _count(database, "packs"), _count(database, "ranges")
        rules = KeepRules(event_bytes=1, notifications=timedelta(0))
        Retention(one, rules).look()
        assert one.log.begin > 0
        assert _count(database, "packs") < packs
        assert 0 < _count(database, "ranges") < ranges
        number = two.publish(events(1)).result().numbers[0]  # another service goes on
        assert pairs(two)[-1] == (number, lease.id)
        begin = one.log.begin
    folder = tmp_path / "new"
    folder.mkdir()
    shutil.copy(tmp_path / "0" / "server.key", folder)
    with Broker(folder, SCHEMA, database=database) as new:  # copies the rest
        assert new.log.begin == begin
        assert new.subscription(lease.id, ticket=lease.ticket).condition == "price < 5"
        number = new.publish(events(2)).result().numbers[0]
        assert pairs(new)[-1] == (number, lease.id)


def test_a_copy_that_missed_a_trim_says_what_to_do(database: str, tmp_path: Path) -> None:
    with brokers(database, tmp_path) as (one, _):
        one.publish(events(1)).result()
    with brokers(database, tmp_path, many=1) as (one,):
        for price in range(6):
            one.publish(events(price)).result()
            _settle(one, database)
        Retention(one, KeepRules(event_bytes=1)).look()
        assert one.log.begin > 1
    with (
        pytest.raises(StoreError, match=r"trimmed up to .*--rebuild"),
        Broker(tmp_path / "1", SCHEMA, database=database),
    ):
        pass
    with Broker(tmp_path / "1", SCHEMA, database=database, rebuild=True) as two:
        two.publish(events(1)).result()


def _run(*arguments: Any) -> str:
    done = CliRunner().invoke(tamis, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_folder_moves_into_a_database_and_back(database: str, tmp_path: Path) -> None:
    """Numbers, tickets, keys, cursors, dedup and notifications stay what they are."""
    data = tmp_path / "data"
    ann = Caller("ann", frozenset({"subscriber"}))
    with Broker(data, SCHEMA) as broker:
        lease = broker.subscribe("price < 5").result()
        owned = broker.subscribe("price < 3", caller=ann).result()
        key = broker.keys.create("ann", ["subscriber"])
        broker.consumers.set_cursor("ann", "mine", 1)
        broker.publish(events(1, 4, 9, source="shop")).result()
        broker.extend(lambda schema: schema.create_attribute("size", "integer")).result()
        for price in range(6):
            broker.publish(events(price)).result()
        before = pairs(broker)
        _flushed(broker)
    copy = tmp_path / "original"
    shutil.copytree(data, copy)
    assert "rows of the log" in _run("log", "upload", data, database)
    refused = CliRunner().invoke(tamis, ["log", "upload", str(copy), database])
    assert refused.exit_code != 0
    with Broker(data, database=database) as broker:
        assert pairs(broker) == before
        assert broker.subscription(lease.id, ticket=lease.ticket).condition == "price < 5"
        caller = broker.keys.caller(key)
        assert caller is not None
        assert caller.name == "ann"
        assert broker.consumers.cursor("ann", "mine") == 1
        assert broker.publish(events(4, source="shop")).result().duplicates == 1
        number = broker.publish(events(2)).result().numbers[0]
        after = pairs(broker)
        assert after == [*before, (number, lease.id), (number, owned.id)]
        running = CliRunner().invoke(tamis, ["log", "download", database, str(tmp_path / "x")])
        assert running.exit_code != 0
        _flushed(broker)
    back = tmp_path / "back"
    back.mkdir()
    shutil.copy(data / "server.key", back)
    for folder in (back, data):  # a new folder, and the one that held copies
        assert "without --database" in _run("log", "download", database, folder)
        with Broker(folder) as broker:
            assert pairs(broker) == after
            assert broker.keys.caller(key) is not None
            assert broker.consumers.cursor("ann", "mine") == 1
            assert broker.publish(events(4, source="shop")).result().duplicates == 1
            broker.publish(events(1)).result()
            assert len(pairs(broker)) == len(after) + 2
        _run("log", "verify", folder / "log")


def _flushed(broker: Broker) -> None:
    end = broker.log.end
    until = time.monotonic() + 60
    while broker.matching.files.matched < max(each for each, _ in pairs(broker)) + 1:
        assert time.monotonic() < until, end
        time.sleep(0.05)
