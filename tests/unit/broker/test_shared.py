"""Several brokers on one PostgreSQL, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from click.testing import CliRunner

from tamis.broker.access.caller import ANONYMOUS
from tamis.broker.broker import Broker
from tamis.broker.delivery.sink_address import SinkRules
from tamis.broker.delivery.sinks import Sink
from tamis.broker.incoming import IncomingEvent
from tamis.broker.maintenance.backup import back_up
from tamis.broker.maintenance.erasure import erase_event
from tamis.broker.matching.notification_files import NotificationPairs
from tamis.broker.shared.shared_notifications import SharedNotifications
from tamis.cli.main import tamis
from tamis.errors import BrokerError, StoreError, UnavailableError
from tamis.replay.matching_shifts import SupersededError
from tamis.store.log import Log
from tamis.store.postgresql.session import Session
from tamis.store.postgresql.shared_log import shared_document

pytestmark = [pytest.mark.postgresql, pytest.mark.slow]
SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}


@pytest.fixture
def database(postgresql: str) -> str:
    with psycopg.connect(postgresql) as base:
        base.execute("DROP SCHEMA IF EXISTS tamis CASCADE")
    return postgresql


@contextmanager
def brokers(
    database: str, place: Path, many: int = 2, sinks: SinkRules | None = None
) -> Iterator[list[Broker]]:
    """Some brokers on one database, with the same server key."""
    with ExitStack() as opened:
        found: list[Broker] = []
        for at in range(many):
            folder = place / str(at)
            folder.mkdir(exist_ok=True)
            if at and not (folder / "server.key").exists():
                shutil.copy(place / "0" / "server.key", folder)
            broker = Broker(folder, SCHEMA, database=database, sinks=sinks)
            found.append(opened.enter_context(broker))
        yield found


class Receiver:
    """A real server for webhooks. It keeps the ids of what it got, in order."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        ids = self.ids

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                ids.append(self.headers["webhook-id"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def until(check: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def events(*prices: int, source: str | None = None) -> list[IncomingEvent]:
    return [
        IncomingEvent(json.dumps({"price": price}), source, None if source is None else str(price))
        for price in prices
    ]


def pairs(broker: Broker) -> list[tuple[int, Any]]:
    """All notifications that a broker has, once it knows what the others did."""
    broker.follow().result()
    end = broker.log.end
    assert broker.matching.wait(end - 1, 30) == end, broker.matching.failure
    return [
        pair
        for each in broker.matching.notifications(-1)
        for pair in zip(each.numbers.tolist(), each.ids.to_pylist(), strict=True)
    ]


def test_what_one_does_the_others_know(database: str, tmp_path: Path) -> None:
    with brokers(database, tmp_path) as (one, two):
        lease = one.subscribe("price < 5").result()
        first = two.publish(events(4, 9, source="shop")).result()
        again = one.publish(events(4, source="shop")).result()
        assert (again.numbers, again.duplicates) == (first.numbers[:1], 1)
        two.renew(lease.id, ticket=lease.ticket).result()
        two.cancel(lease.id, ticket=lease.ticket).result()
        one.publish(events(3)).result()
        assert pairs(one) == pairs(two) == [(1, lease.id)]
        key = one.keys.create("ann", ["subscriber"])
        assert two.keys.caller(key) is not None
        one.consumers.set_cursor("ann", "mine", 7)
        assert two.consumers.cursor("ann", "mine") == 7
        (known,) = one.keys.list()
        one.keys.revoke(known.id)
        assert one.keys.caller(key) is None
    copies = [tmp_path / str(at) / "log" / "segments" for at in range(2)]
    assert [each.name for each in sorted(copies[0].iterdir())] == [
        each.name for each in sorted(copies[1].iterdir())
    ]
    for each in copies[0].iterdir():
        assert each.read_bytes() == (copies[1] / each.name).read_bytes()


def test_the_same_requests_give_the_same_on_files(database: str, tmp_path: Path) -> None:
    """Files and PostgreSQL: the same numbers, answers, notifications and bytes of changes."""

    def use(broker: Broker) -> list[Any]:
        first = broker.subscribe("price < 5", request_key="k", caller=ANONYMOUS).result()
        said: list[Any] = [first.id, broker.publish(events(1, 7, source="s")).result()]
        broker.extend(
            lambda schema: type(schema).from_dict(
                {**schema.to_dict(), "attributes": {**SCHEMA["attributes"], "size": "integer"}}
            )
        ).result()
        second = broker.subscribe("price > 5 or size = 1").result()
        said += [second.id, broker.publish(events(1, 8, 2, source="s")).result()]
        broker.update(second.id, ticket=second.ticket, condition="size = 1").result()
        said.append(broker.publish([IncomingEvent('{"size": 1}'), *events(9)]).result())
        broker.cancel(first.id, ticket=first.ticket).result()
        said.append(broker.publish(events(3)).result())
        return [*said, pairs(broker)]

    with Broker(tmp_path / "files", SCHEMA) as broker:
        wanted = use(broker)
    with brokers(database, tmp_path) as (one, two):
        assert use(one) == wanted
        assert pairs(two) == wanted[-1]


def test_a_range_is_stored_once(database: str, tmp_path: Path) -> None:
    """A service that was paused believes that it still matches: it stores nothing."""
    with brokers(database, tmp_path, 1) as (one,):
        lease = one.subscribe("price < 5").result()
        one.publish(events(1, 2)).result()
        assert pairs(one) == [(1, lease.id), (2, lease.id)]
        until(lambda: one.matching.files.matched == 3)
    session = Session(database)
    late = SharedNotifications(tmp_path / "late", pa.int64(), session, 3)
    found = NotificationPairs(1, 3, np.array([1, 2]), pa.array([lease.id, lease.id]))
    for start, end in ((0, 3), (1, 3), (0, 1)):
        with pytest.raises(SupersededError):
            late.write_shared(start, end, [found], [])
    assert [each.numbers.tolist() for each in late.read(-1, 3)] == [[1, 2]]
    names = [each.name for each in (tmp_path / "late" / "notifications").iterdir()]
    with session.transaction() as base:
        assert base.execute("SELECT name FROM parts").fetchall() == [(each,) for each in names]
        assert base.execute('SELECT sum("end" - start) FROM ranges').fetchone() == (3,)
    session.close()


def test_webhooks_outlive_the_service_that_sends_them(
    database: str, tmp_path: Path, receiver: Receiver
) -> None:
    """One service sends. When it ends, the other goes on from its cursor."""
    rules = SinkRules.of(["127.0.0.1"])
    with brokers(database, tmp_path, 2, sinks=rules) as found:
        lease = found[0].subscribe("price < 5", sink=Sink(receiver.url)).result()
        numbers = found[1].publish(events(1, 2)).result().numbers
        until(lambda: len(receiver.ids) == 2)
        first = next(at for at, each in enumerate(found) if each.webhooks.delivered)
        assert found[1 - first].webhooks.delivered == 0
        until(lambda: found[0].webhooks.outbox.cursor() == numbers[-1])
        found[first].close()
        other = found[1 - first]
        numbers += other.publish(events(3)).result().numbers
        until(lambda: len(receiver.ids) == 3)
        identity = str(other.log.identity)[:12]
        assert sorted(receiver.ids) == [f"{identity}.{number}.{lease.id}" for number in numbers]


def test_a_service_is_built_again_from_the_database(database: str, tmp_path: Path) -> None:
    with brokers(database, tmp_path) as (one, two):
        lease = one.subscribe("price < 5").result()
        two.publish(events(*range(10))).result()
        wanted = pairs(one)
    for name in ("log", "state.db", "notifications", "index"):
        gone = tmp_path / "1" / name
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink(missing_ok=True)
    with brokers(database, tmp_path) as (_, two):
        assert pairs(two) == wanted
        assert two.subscription(lease.id, ticket=lease.ticket).condition == "price < 5"


def test_a_folder_of_copies_is_not_taken_for_the_data(database: str, tmp_path: Path) -> None:
    with brokers(database, tmp_path, 1) as (one,):
        one.publish(events(1)).result()
    folder = tmp_path / "0"
    for use in (
        lambda: Broker(folder),
        lambda: erase_event(folder, 0),
        lambda: back_up(folder, tmp_path / "backup"),
    ):
        with pytest.raises(BrokerError, match="its log is a copy of one in a database"):
            use()


def test_another_key_log_or_schema_is_refused(database: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no log yet; a new one needs a schema"):
        Broker(tmp_path / "0", database=database)
    with brokers(database, tmp_path, 1):
        (tmp_path / "1").mkdir()
        with pytest.raises(BrokerError, match=r"server\.key: is missing; .* copy the file"):
            Broker(tmp_path / "1", database=database)
        with Broker(tmp_path / "2", SCHEMA) as files:
            files.publish(events(1)).result()
        with pytest.raises(StoreError, match="has another log than postgresql://"):
            Broker(tmp_path / "2", database=database, rebuild=True)
        assert Log.open(tmp_path / "2" / "log").end == 1  # nothing was deleted
        shutil.copy(tmp_path / "2" / "server.key", tmp_path / "1")
        with pytest.raises(BrokerError, match="is not the server key of the other services"):
            Broker(tmp_path / "1", database=database)


def test_a_database_that_lost_rows_is_refused(database: str, tmp_path: Path) -> None:
    """A database that was put back from a backup; `rebuild` goes on with what it has."""
    with brokers(database, tmp_path, 1) as (one,):
        one.publish(events(1)).result()
        with psycopg.connect(database) as base:
            (kept,) = base.execute('SELECT "end", chain FROM tamis.log').fetchall()
        one.publish(events(2)).result()
    with psycopg.connect(database) as base:
        base.execute("DELETE FROM tamis.packs WHERE first = 1")
        base.execute('UPDATE tamis.log SET "end" = %s, chain = %s', kept)
        base.execute("DELETE FROM tamis.parts; DELETE FROM tamis.ranges")
        base.execute("UPDATE tamis.matching SET matched = 0")
    with pytest.raises(StoreError, match="rebuild"):
        Broker(tmp_path / "0", database=database)
    with Broker(tmp_path / "0", database=database, rebuild=True) as broker:
        assert broker.publish(events(3)).result().numbers == [1]


def test_wrong_addresses_and_rights(database: str, tmp_path: Path) -> None:
    for url, why in (
        ("host=/nowhere", "the database cannot be used"),
        ("postgresql://127.0.0.1:1/x", "the database cannot be used"),
        ("nonsense", "is not the address of a database"),
    ):
        with pytest.raises(StoreError, match=why):
            Broker(tmp_path / "a", SCHEMA, database=url)
    name = f"tamis_{os.getpid()}"
    with psycopg.connect(database) as base:
        base.execute(f"CREATE ROLE {name} LOGIN")
    try:
        url = psycopg.conninfo.make_conninfo(database, user=name)
        with pytest.raises(StoreError, match="the account lacks a right"):
            Broker(tmp_path / "b", SCHEMA, database=url)
    finally:
        with psycopg.connect(database) as base:
            base.execute(f"DROP ROLE {name}")
    with brokers(database, tmp_path, 1), psycopg.connect(database) as base:
        base.execute("UPDATE tamis.log SET format = 99")
    with pytest.raises(StoreError, match="made by another version of tamis"):
        shared_document(Session(database))


def test_a_session_that_is_ended_is_opened_again(database: str, tmp_path: Path) -> None:
    """Requests under way are refused as unavailable; the next ones are served."""
    with brokers(database, tmp_path, 1) as (one,):
        one.publish(events(1)).result()
        refused = 0
        for price in range(20):
            with psycopg.connect(database, autocommit=True) as base:
                base.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name LIKE 'tamis %'"
                )
            try:
                one.publish(events(price, source="s")).result()
            except UnavailableError:
                refused += 1
                one.publish(events(price, source="s")).result()
        assert one.log.counts(0)[0] == 21, refused


def test_a_mirror_is_the_log(database: str, tmp_path: Path) -> None:
    folder, run = tmp_path / "mirror", CliRunner()
    with brokers(database, tmp_path, 1) as (one,):
        one.subscribe("price < 5").result()
        one.publish(events(*range(50))).result()
        for more in range(2):  # the second time it goes on
            done = run.invoke(tamis, ["log", "mirror", database, str(folder)])
            assert done.exit_code == 0, done.output
            assert Log.open(folder).end == one.log.end == 51 + more
            one.publish(events(1)).result()
    assert run.invoke(tamis, ["log", "verify", str(folder)]).exit_code == 0
    with pytest.raises(StoreError, match="is a copy of a log in a database"):
        Log.open(folder).publish(pa.table({"json": ["{}"]}))
    assert Log.open(folder).changes(0).num_rows == 1
    done = run.invoke(tamis, ["log", "mirror", "host=/nowhere", str(folder)])
    assert isinstance(done.exception, UnavailableError)


def test_streams_of_each_service_hear_that_a_lease_ends(database: str, tmp_path: Path) -> None:
    with brokers(database, tmp_path) as both:
        lease = both[0].subscribe("price < 5", lease=timedelta(seconds=6)).result()
        for each in both:
            warnings = each.webhooks.warnings
            until(lambda warnings=warnings: warnings.since(0)[0] > 0)  # type: ignore[misc]
            count, (warned,) = warnings.since(0)
            assert (count, warned.id) == (1, lease.id)
