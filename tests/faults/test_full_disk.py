"""A full disk: writes are refused at once, reads go on, and service resumes without a restart."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tamis.store.log import Log
from tests.faults.oracle import expected, published, written
from tests.soak_report import record
from tests.warm_servers import WarmServers

CYCLES = int(os.environ.get("TAMIS_FULL_DISKS", "1"))
SIZE = 24 << 20  # bytes of the disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, check=False).returncode:
        pytest.skip("a small disk needs the right to mount one")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_refuses_and_recovers(disk: Path, servers: WarmServers, schema: str) -> None:
    began = time.monotonic()
    data, ballast = disk / "data", disk / "ballast"
    server = servers.start(data, "--schema", schema).wait_ready()
    acknowledged: dict[int, int] = {}
    with httpx2.Client(base_url=server.url, timeout=30) as client:
        lease = client.post("/v1/subscriptions", json={"condition": "price < 5"}).json()
        where = f"/v1/subscriptions/{lease['id']}/notifications"
        ticket = {"Tamis-Ticket": lease["ticket"]}
        for cycle in range(CYCLES):
            _publish(client, acknowledged, cycle)
            _fill(ballast)
            refused = _publish_until_refused(client, acknowledged)
            assert refused.status_code in (503, 507)
            assert refused.headers["content-type"] == "application/problem+json"
            answer = client.get(where, params={"after": -1}, headers=ticket)
            assert answer.status_code == 200
            assert answer.json()["notifications"]
            assert client.get("/livez").status_code == 200
            ballast.unlink()
            _recovers(client, acknowledged)
        assert server.alive
        _wait_for(data)
    server.end()
    log = Log.open(data / "log")
    events = {n: json.loads(each["json"])["price"] for n, each in published(log).items()}
    assert events == acknowledged, "what was refused stayed, or what was acknowledged is lost"
    found = written(data / "notifications")
    assert found.keys() == expected(log)
    assert max(found.values()) == 1
    record("full-disks", CYCLES, 0, time.monotonic() - began)


def _fill(ballast: Path) -> None:
    """Take all space that is left."""
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def _publish(client: httpx2.Client, acknowledged: dict[int, int], price: int) -> httpx2.Response:
    answer = client.post("/v1/events", json={"price": price, "title": "x" * 1000})
    if answer.status_code == 202:
        acknowledged[answer.json()["first"]] = price
    return answer


def _publish_until_refused(client: httpx2.Client, acknowledged: dict[int, int]) -> httpx2.Response:
    for _ in range(1000):  # a page that was begun may have room
        answer = _publish(client, acknowledged, 4)
        if answer.status_code != 202:
            return answer
    raise AssertionError("a full disk was not noticed")


def _recovers(client: httpx2.Client, acknowledged: dict[int, int]) -> None:
    until = time.monotonic() + 30
    while _publish(client, acknowledged, 3).status_code != 202:
        assert time.monotonic() < until, "there is space, and publishes are refused"
        time.sleep(0.1)


def _wait_for(data: Path) -> None:
    right, until = len(expected(Log.open(data / "log"))), time.monotonic() + 30
    while len(written(data / "notifications")) < right and time.monotonic() < until:
        time.sleep(0.1)
