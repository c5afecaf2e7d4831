"""Two real services on one real PostgreSQL: one is killed, one is paused, the database restarts."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from pyarrow import parquet

from tests import postgres

pytestmark = [pytest.mark.postgresql, pytest.mark.slow]
SCHEMA = "attributes:\n  price: decimal\n"
_PAUSED = 5.0  # seconds, longer than a silent session lives
_MATCHER = """
    SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND classid = 1952542057 AND objid = 1 AND granted"""


class Service:
    """`tamis serve` in a process of its own."""

    def __init__(self, folder: Path, database: str) -> None:
        folder.mkdir(exist_ok=True)
        schema = folder.parent / "schema.yaml"
        schema.write_text(SCHEMA)
        command = [sys.executable, "-m", "tamis.cli.main", "serve", str(folder)]
        options = ["--listen", "127.0.0.1:0", "--schema", str(schema)]
        self.process = subprocess.Popen(
            [*command, *options],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TAMIS_DATABASE": database},
        )
        assert self.process.stderr is not None
        said = ""
        for line in self.process.stderr:
            said += line
            if found := re.search(r"serving on (http://[\w.:]+)", line):
                break
        else:
            raise AssertionError(f"the service did not start: {said}")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.client = httpx2.Client(base_url=found[1], timeout=20)

    def publish(self, number: int) -> bool:
        """Publish an event, whose price is its id; whether it was acknowledged."""
        headers = {"ce-specversion": "1.0", "ce-source": "test", "ce-id": str(number)}
        headers |= {"ce-type": "offer", "content-type": "application/json"}
        try:
            answer = self.client.post("/v1/events", json={"price": number}, headers=headers)
        except httpx2.HTTPError:
            return False
        assert answer.status_code in (202, 503), answer.text
        return answer.status_code == 202

    def notifications(self, lease: dict[str, Any], after: int = -1) -> list[tuple[int, int]]:
        """The numbers and prices of all notifications after a cursor, until one page is empty."""
        found: list[tuple[int, int]] = []
        while True:
            page = self.client.get(
                f"/v1/subscriptions/{lease['id']}/notifications",
                params={"after": after, "wait": 0},
                headers={"Tamis-Ticket": lease["ticket"]},
            ).json()
            found += [(each["sequence"], each["event"]["price"]) for each in page["notifications"]]
            if not page["notifications"]:
                return found
            after = page["cursor"]

    def notified(self, lease: dict[str, Any], price: int) -> bool:
        return any(each == price for _, each in self.notifications(lease))


@pytest.fixture
def database() -> Iterator[str]:
    """A server of this test's own: it is restarted."""
    bin = postgres.programs()
    if bin is None:
        pytest.skip("there is no PostgreSQL server here")
    with postgres.server(bin) as dsn:
        yield dsn


@pytest.fixture
def services(database: str, tmp_path: Path) -> Iterator[list[Service]]:
    started = [Service(tmp_path / "0", database)]
    (tmp_path / "1").mkdir()
    shutil.copy(tmp_path / "0" / "server.key", tmp_path / "1")
    started.append(Service(tmp_path / "1", database))
    try:
        yield started
    finally:
        for each in started:
            each.process.kill()
            each.process.wait()


def until(check: Any, seconds: float = 30.0) -> float:
    """Wait for something; how long it took."""
    start = time.monotonic()
    while not check():
        assert time.monotonic() - start < seconds, "it did not happen"
        time.sleep(0.02)
    return time.monotonic() - start


def matcher(database: str, services: list[Service]) -> int | None:
    """Which service matches."""
    with psycopg.connect(database) as base:
        names = [name for (name,) in base.execute(_MATCHER).fetchall()]
    pids = [f"tamis {each.process.pid}" for each in services]
    return next((pids.index(name) for name in names if name in pids), None)


def publish(services: list[Service], number: int) -> None:
    """Publish an event until it is acknowledged, by the services in turn."""
    until(lambda: services[number % len(services)].publish(number) or services[0].publish(number))


def stored_pairs(database: str) -> Counter[tuple[int, int]]:
    """The notifications in the database. Their ranges are one after another."""
    with psycopg.connect(database) as base:
        ranges = base.execute('SELECT start, "end" FROM tamis.ranges ORDER BY start').fetchall()
        assert [end for _, end in ranges[:-1]] == [start for start, _ in ranges[1:]]
        found: Counter[tuple[int, int]] = Counter()
        for (content,) in base.execute("SELECT content FROM tamis.parts").fetchall():
            table = parquet.read_table(io.BytesIO(content))
            found.update(
                zip(table["sequence"].to_pylist(), table["subscription"].to_pylist(), strict=True)
            )
    return found


def test_a_killed_and_a_paused_matcher(
    database: str, services: list[Service], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is lost and nothing is matched twice. The times to take over are printed."""
    answer = services[0].client.post("/v1/subscriptions", json={"condition": "price >= 0"})
    lease = answer.json()
    until(lambda: matcher(database, services) is not None)
    for number in range(20):
        publish(services, number)
    for each in services:
        until(lambda each=each: each.notified(lease, 19))

    # Killed: the other one goes on.
    dead = matcher(database, services)
    assert dead is not None
    alive = services[1 - dead]
    services[dead].process.kill()
    start = time.monotonic()
    publish([alive], 20)
    until(lambda: alive.notified(lease, 20))
    killed = time.monotonic() - start
    services[dead].process.wait()
    services[dead] = Service(tmp_path / str(dead), database)

    # Paused: the other one goes on, and the one that wakes up stores nothing of its own.
    paused = matcher(database, services)
    assert paused == 1 - dead
    for number in range(21, 31):  # it may have some in memory when it is paused
        publish(services, number)
    services[paused].process.send_signal(signal.SIGSTOP)
    start = time.monotonic()
    alive = services[dead]
    until(lambda: alive.publish(31))
    until(lambda: alive.notified(lease, 31))
    stopped = time.monotonic() - start
    time.sleep(max(0.0, _PAUSED - stopped))
    publish([alive], 32)
    services[paused].process.send_signal(signal.SIGCONT)
    for number in range(33, 50):
        publish(services, number)
    assert matcher(database, services) == dead

    # The database itself is away: writes are refused, reads go on, and service resumes.
    for each in services:
        until(lambda each=each: each.notified(lease, 49))
    with postgres.stopped(database):
        for each in services:
            refused = each.client.post("/v1/events", json={"price": -1})
            assert (refused.status_code, refused.json()["title"]) == (503, "Service Unavailable")
            assert each.notified(lease, 49)
            assert each.client.get("/livez").status_code == 200
            until(lambda each=each: each.client.get("/readyz").status_code == 503)
    for number in range(50, 60):
        publish(services, number)
    for each in services:
        until(lambda each=each: each.notified(lease, 59))
    seen = [each.notifications(lease) for each in services]
    assert seen[0] == seen[1]
    assert sorted(price for _, price in seen[0]) == list(range(60))
    until(lambda: len(stored_pairs(database)) == 60)
    assert stored_pairs(database) == Counter((number, lease["id"]) for number, _ in seen[0])
    with capsys.disabled():
        print(f"\nto take over: {killed:.2f} s after a kill, {stopped:.2f} s after a pause")
