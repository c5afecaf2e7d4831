"""Readers that are slow, and many that only wait."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import time
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tamis.broker.broker import Broker
from tamis.service.bodies import NDJSON
from tests.serving import running

IDLE = int(os.environ.get("TAMIS_IDLE", "200"))  # connections; the full size is 10,000


def _memory(pid: int) -> int:
    """Resident bytes of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_a_reader_that_does_not_read_is_cut_off_and_resumes(tmp_path: Path) -> None:
    """It holds no memory, and finds in files what it missed."""
    with (
        running(tmp_path / "data", "--slow-reader", "1s") as server,
        httpx2.Client(base_url=server.address, timeout=60) as client,
    ):
        asked = {"condition": "price < 5"}
        lease = client.post("/v1/subscriptions", json=asked).json()
        path = f"/v1/subscriptions/{lease['id']}/notifications"
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(
                f"GET {path}?after=-1 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
                f"Tamis-Ticket: {lease['ticket']}\r\n\r\n".encode()
            )
            lines = "\n".join(json.dumps({"price": 1, "title": "x" * 50_000}) for _ in range(200))
            headers = {"Content-Type": "application/x-ndjson"}
            for _ in range(2):
                answer = client.post("/v1/events", content=lines, headers=headers)
                assert answer.status_code == 202
            slow.settimeout(60)
            read = slow.recv(4096)
            _wait_for_the_end(slow)  # it reads nothing until it is cut off
            with suppress(ConnectionResetError):
                while part := slow.recv(1 << 16):
                    read += part
        assert len(read) < 400 * 50_000
        whole = read.rpartition(b"\n\n")[0].decode()
        ends = [line for line in whole.splitlines() if line[:4] == "id: "]
        cursor = int(ends[-1][4:]) if ends else -1
        found: list[int] = []
        while len(found) < 400 - len(ends):
            params = {"after": str(cursor), "wait": "30"}
            ticket = {"Tamis-Ticket": lease["ticket"]}
            page = client.get(path, params=params, headers=ticket).json()
            found += [each["sequence"] for each in page["notifications"]]
            cursor = page["cursor"]
        assert found == sorted(set(found))
        assert len(found) + len(ends) == 400


@pytest.mark.parametrize("kind", ["application/json", NDJSON])
def test_an_answer_that_nobody_reads_is_given_up(tmp_path: Path, kind: str) -> None:
    """A page of notifications, and an export: neither is a stream of server-sent events."""
    with Broker(tmp_path / "data", {"attributes": {"price": "decimal"}}) as broker:
        key = broker.keys.create("ann", ["publisher", "subscriber"])
    with (
        running(tmp_path / "data", "--slow-reader", "1s") as server,
        httpx2.Client(base_url=server.address, timeout=60) as client,
    ):
        client.headers["Authorization"] = f"Bearer {key}"
        asked = {"condition": "price < 5", "metadata": {"a": "x" * 16_000}}
        lines = "\n".join([json.dumps(asked)] * 500)
        headers = {"Content-Type": "application/x-ndjson"}
        assert client.post("/v1/subscriptions/bulk", content=lines, headers=headers).is_success
        assert client.post("/v1/events", json={"price": 1}).status_code == 202
        path = "/v1/subscriptions?most=1000"
        host, port = server.address.removeprefix("http://").split(":")
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect((host, int(port)))
            slow.sendall(
                f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {kind}\r\n"
                f"Authorization: Bearer {key}\r\n\r\n".encode()
            )
            assert slow.recv(4096).startswith(b"HTTP/1.1 200 ")
            _wait_for_the_end(slow)


def _wait_for_the_end(slow: socket.socket) -> None:
    """Wait until the server has let go of a connection, of which nothing is read."""
    own, served = (f"{port:04X}" for port in (slow.getsockname()[1], slow.getpeername()[1]))
    until = time.monotonic() + 60
    while True:
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ends = [(row[1][-4:], row[2][-4:], row[3]) for row in rows]
        if (served, own, "01") not in ends:
            return
        assert time.monotonic() < until, "the connection is still there"
        time.sleep(0.05)


def test_connections_that_wait(tmp_path: Path) -> None:
    """Streams that get nothing cost little, and the service answers others meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE + 1000
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    with (
        running(tmp_path / "data") as server,
        httpx2.Client(base_url=server.address, timeout=60) as client,
    ):
        lease = client.post("/v1/subscriptions", json={"condition": "price < 5"}).json()
        before = _memory(server.process.pid)
        host, port = server.address.removeprefix("http://").split(":")
        request = (
            f"GET /v1/subscriptions/{lease['id']}/notifications HTTP/1.1\r\nHost: x\r\n"
            f"Accept: text/event-stream\r\nTamis-Ticket: {lease['ticket']}\r\n\r\n"
        ).encode()

        async def hold() -> tuple[int, int]:
            """Open streams, publish an event, and count those that got it."""
            opened = []
            for at in range(0, IDLE, 100):
                some = range(min(100, IDLE - at))
                opened += await asyncio.gather(
                    *(asyncio.open_connection(host, int(port)) for _ in some)
                )
                for _, writer in opened[at:]:
                    writer.write(request)
                await asyncio.gather(
                    *(reader.readuntil(b": tamis\n\n") for reader, _ in opened[at:])
                )
            used = _memory(server.process.pid) - before
            published = await asyncio.to_thread(client.post, "/v1/events", json={"price": 1})
            assert published.status_code == 202
            mark = b"event: notification\n"
            got = await asyncio.gather(
                *(asyncio.wait_for(reader.readuntil(mark), 120) for reader, _ in opened)
            )
            for _, writer in opened:
                writer.close()
            return used, len(got)

        used, got = asyncio.run(hold())
        print(f"{IDLE:,} streams: {used / IDLE / 1024:.1f} KiB each, {used / 1e6:.0f} MB")
        assert got == IDLE
        assert used / IDLE < 100 * 1024 + 100_000_000 / IDLE
        assert client.get("/readyz").status_code == 200
