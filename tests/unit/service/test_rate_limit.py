"""Callers who are too fast."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from tamis.broker.limits import Limits
from tamis.broker.setting import Bytes
from tamis.service import rate_limit
from tamis.service.rate_limit import CallerRates, RateLimit


class Caller:
    """Calls an application with a clock that stands still."""

    def __init__(self, limits: Limits) -> None:
        self.now = 0.0
        rates = CallerRates(limits, lambda key: key in "ab", lambda: self.now)
        self.limit = RateLimit(self.answer, rates)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def call(
        self, host: str = "192.0.2.1", key: str = "", size: int = 0, path: str = "/v1/events"
    ) -> tuple[int, str]:
        """The status, and `Retry-After`."""
        headers = [(b"authorization", key.encode())] if key else []
        scope = {"type": "http", "path": path, "client": (host, 1), "headers": headers}
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": bytes(size), "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.limit(scope, receive, send))
        return sent[0]["status"], dict(sent[0]["headers"]).get(b"retry-after", b"").decode()


def test_requests_come_back_with_time() -> None:
    caller = Caller(Limits(requests=2))
    assert [caller.call()[0] for _ in range(20)] == [204] * 20  # ten seconds of them at once
    status, after = caller.call()
    assert (status, after) == (429, "1")
    assert caller.call(host="192.0.2.2")[0] == 204  # another caller
    assert caller.call(key="Bearer a")[0] == 204  # a key, wherever it calls from
    assert caller.call(path="/livez")[0] == 204
    caller.now += 1
    assert [caller.call()[0] for _ in range(3)] == [204, 204, 429]


@pytest.mark.parametrize("written", ["Bearer {}", "Basic {}", "{}"])
def test_invented_keys_are_counted_by_address(written: str) -> None:
    """Else whoever writes another key in each request would have no limit."""
    caller = Caller(Limits(requests=2))
    found = [caller.call(key=written.format(f"invented{at}"))[0] for at in range(21)]
    assert found == [204] * 20 + [429]


def test_a_key_is_the_same_however_it_is_written() -> None:
    caller = Caller(Limits(requests=2))
    found = [caller.call(key=f"{'bB'[at % 2]}earer {' ' * at}a")[0] for at in range(21)]
    assert found == [204] * 20 + [429]
    assert caller.call(key="Bearer b")[0] == 204


def test_bytes_are_paid_back() -> None:
    caller = Caller(Limits(bytes=Bytes(100)))
    assert caller.call(size=3000)[0] == 204  # one body may overdraw
    assert caller.call(size=1) == (429, "20")
    caller.now += 21
    assert caller.call(size=1)[0] == 204


def test_this_machine_is_not_limited_unless_a_limit_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for host, limits, right in (
        ("127.0.0.1", Limits(), 204),
        ("::1", Limits(), 204),
        ("192.0.2.1", Limits(), 429),
        ("127.0.0.1", Limits(requests=10), 429),
    ):
        caller = Caller(limits)
        monkeypatch.setattr(rate_limit, "REQUESTS", 10.0)
        assert {caller.call(host=host)[0] for _ in range(102)} == {204, right}
