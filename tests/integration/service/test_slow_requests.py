"""Requests that do not arrive: half of the headers, half of a body, or nothing."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import grpc
import httpx2
import pytest
from google.protobuf.message import Message

from tamis.service.rpc import tamis_pb2 as pb
from tests.grpc_stub import Stub
from tests.service_process import ServiceProcess, service

_HEADERS = (
    "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n\r\n"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    options = ("--slow-request", "1s", "--grpc", "127.0.0.1:0")
    with service(tmp_path_factory.mktemp("slow") / "data", *options) as served:
        yield served


def _connected(served: ServiceProcess) -> socket.socket:
    host, port = served.address.removeprefix("http://").split(":")
    opened = socket.create_connection((host, int(port)), timeout=60)
    opened.settimeout(60)
    return opened


def _all(opened: socket.socket) -> bytes:
    """What comes until the service closes the connection."""
    parts = []
    try:
        while part := opened.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def _drip(opened: socket.socket, text: bytes) -> None:
    """Send a byte now and then, until the connection is closed."""

    def send() -> None:
        for byte in text:
            try:
                opened.sendall(bytes((byte,)))
            except OSError:
                return
            time.sleep(0.05)

    Thread(target=send, daemon=True).start()


def _refused(answer: bytes, status: int) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == status


@pytest.mark.parametrize("dripping", [False, True])
def test_headers_that_do_not_end(served: ServiceProcess, dripping: bool) -> None:
    with _connected(served) as opened:
        opened.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: ")
        if dripping:
            _drip(opened, b"x" * 5000)
        _refused(_all(opened), 408)


@pytest.mark.parametrize("path", ["/v1/events", "/v1/subscriptions", "/v1/subscriptions/bulk"])
@pytest.mark.parametrize("dripping", [False, True])
def test_a_body_that_does_not_end(served: ServiceProcess, path: str, dripping: bool) -> None:
    kind = "application/x-ndjson" if path.endswith("bulk") else "application/json"
    with _connected(served) as opened:
        opened.sendall(_HEADERS.format(path=path, kind=kind, size=10_000).encode() + b'{"price": ')
        if dripping:
            _drip(opened, b" " * 5000)
        _refused(_all(opened), 408)
    assert not [line for line in served.said if "error" in line.lower()]


def test_connections_on_which_nothing_comes_are_closed(served: ServiceProcess) -> None:
    with _connected(served) as opened:
        _refused(_all(opened), 408)
    with _connected(served) as opened:  # after an answer
        opened.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while not answer.endswith(b"alive\n"):
            answer += opened.recv(1 << 16)
        opened.sendall(b"\r\n")  # which is not the beginning of a request
        _refused(_all(opened), 408)


def test_a_complete_request_may_take_long(served: ServiceProcess) -> None:
    with httpx2.Client(base_url=served.address, timeout=60) as client:
        lease = client.post("/v1/subscriptions", json={"condition": "price < 0"}).json()
        answer = client.get(
            f"/v1/subscriptions/{lease['id']}/notifications",
            params={"wait": "3"},
            headers={"Tamis-Ticket": lease["ticket"]},
        )
        assert answer.status_code == 200


def test_a_long_body_that_keeps_coming_is_taken(served: ServiceProcess) -> None:
    """It takes longer than the limit for the headers, because each part earns time."""
    part = b"\n" * 40_000
    kind = "application/x-ndjson"
    with _connected(served) as opened:
        size = 6 * len(part) + len(b'{"price": 4}')
        opened.sendall(_HEADERS.format(path="/v1/events", kind=kind, size=size).encode())
        for _ in range(6):
            opened.sendall(part)
            time.sleep(0.3)
        opened.sendall(b'{"price": 4}')
        assert opened.recv(1 << 16).startswith(b"HTTP/1.1 202 ")


def test_endless_headers_are_refused(served: ServiceProcess) -> None:
    with _connected(served) as opened:
        opened.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
        for _ in range(40):
            try:
                opened.sendall(b"X-Long: " + b"x" * 8000 + b"\r\n")
            except OSError:  # it was refused, and the rest is not read
                break
            time.sleep(0.01)
        answer = _all(opened)
    assert not answer or answer.startswith(b"HTTP/1.1 431 ")  # a reset may overtake the answer
    with _connected(served) as opened:
        opened.sendall(b"this is not HTTP\r\n\r\n")
        _refused(_all(opened), 400)


@pytest.mark.parametrize("name", ["Publish", "Notifications"])
def test_a_call_whose_request_does_not_come(served: ServiceProcess, name: str) -> None:
    """As when half of a message is sent: gRPC hands over whole ones only."""
    enough = Event()

    def nothing() -> Iterator[Message]:
        enough.wait()
        yield from ()

    (place,) = [line.split()[-1] for line in served.said if "serving gRPC on" in line]
    with grpc.insecure_channel(place) as channel:
        call: Any = channel.stream_stream(f"/tamis.v1.Tamis/{name}", bytes, bytes)
        with pytest.raises(grpc.RpcError) as failed:
            next(call(nothing(), timeout=60))
        enough.set()
    error: Any = failed.value
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert "did not arrive in time" in error.details()


def test_a_stream_of_groups_may_pause(served: ServiceProcess) -> None:
    (place,) = [line.split()[-1] for line in served.said if "serving gRPC on" in line]
    with grpc.insecure_channel(place) as channel:

        def groups() -> Iterator[Message]:
            for price in range(2):
                yield pb.PublishRequest(events=[pb.Event(json=b'{"price": %d}' % price)])
                time.sleep(1.5)

        assert [each.count for each in Stub(channel).PublishStream(groups(), timeout=60)] == [1, 1]
