"""Sessions of the console: how long they last, and which requests may use them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from tamis.broker.broker import Broker
from tamis.service.app import make_app
from tamis.service.console import sessions
from tamis.service.console.sessions import IDLE, ConsoleSessions, RequestOrigin, session_key
from tamis.service.settings import Settings
from tamis.service.waiting import Waiting

HOST = (b"host", b"127.0.0.1:8080")
OWN = (b"tamis-console", b"1")
SAME = (b"origin", b"http://127.0.0.1:8080")


def test_a_session_ends_when_nobody_uses_it() -> None:
    now = 0.0
    kept = ConsoleSessions(lambda: now)
    token = kept.begin("tamis_a_b")
    now = IDLE - 1
    assert kept.key(token) == "tamis_a_b"  # which begins the time anew
    now += IDLE - 1
    assert kept.key(token) == "tamis_a_b"
    now += IDLE + 1
    assert kept.key(token) is None
    assert len(kept) == 0


def test_the_session_that_waits_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST", 2)
    kept = ConsoleSessions()
    first, second = kept.begin("one"), kept.begin("two")
    kept.key(first)
    kept.begin("three")
    assert (kept.key(first), kept.key(second)) == ("one", None)


@pytest.mark.parametrize(
    ("method", "headers", "own"),
    [
        ("GET", [HOST, OWN], True),
        ("GET", [HOST, OWN, SAME], True),
        ("POST", [HOST, OWN, SAME, (b"sec-fetch-site", b"same-origin")], True),
        ("POST", [HOST, OWN], False),
        ("GET", [HOST, SAME], False),
        ("GET", [HOST, OWN, (b"origin", b"http://127.0.0.1:9090")], False),
        ("GET", [HOST, OWN, (b"origin", b"null")], False),
        ("GET", [HOST, OWN, (b"sec-fetch-site", b"cross-site")], False),
        ("GET", [HOST, OWN, SAME, (b"sec-fetch-site", b"same-site")], False),
    ],
)
def test_only_own_pages_use_a_session(
    method: str, headers: list[tuple[bytes, bytes]], own: bool
) -> None:
    kept = ConsoleSessions()
    token = kept.begin("tamis_a_b")
    cookie = (b"cookie", f"other=1; tamis_console_8080={token}".encode())
    assert session_key(kept, method, [*headers, cookie]) == ("tamis_a_b" if own else None)


def test_the_cookie_of_another_service_on_the_host_does_not_count() -> None:
    kept = ConsoleSessions()
    token = kept.begin("tamis_a_b")
    cookie = (b"cookie", f"tamis_console_9090={token}".encode())
    assert session_key(kept, "GET", [HOST, OWN, cookie]) is None
    assert RequestOrigin.of("GET", [(b"host", b"tamis.example")]).cookie_name == "tamis_console"
    assert RequestOrigin.of("GET", [(b"host", b"[::1]:8080")]).cookie_name == "tamis_console_8080"
    assert session_key(kept, "GET", [HOST, OWN, (b"cookie", b"\x00;=;=")]) is None


@pytest.mark.parametrize("other", ['a={"x":1}', "a=b c", "a@=1", "a"])
def test_a_cookie_of_an_odd_form_does_not_hide_the_session(other: str) -> None:
    kept = ConsoleSessions()
    token = kept.begin("tamis_a_b")
    cookie = (b"cookie", f"{other}; tamis_console_8080={token}".encode())
    assert session_key(kept, "GET", [HOST, OWN, cookie]) == "tamis_a_b"


def test_a_service_that_asks_for_keys_lets_one_sign_in_with_a_key_and_no_code(
    tmp_path: Path,
) -> None:
    async def ask(client: httpx2.AsyncClient, key: str) -> httpx2.Response:
        headers = {"Tamis-Console": "1", "Origin": "https://tamis.example"}
        return await client.post("/console/api/login", json={"key": key}, headers=headers)

    async def talk(broker: Broker) -> None:
        app = make_app(broker, Settings(tmp_path, keys=True), Waiting())
        assert app.state.server.console_code is None
        key = broker.keys.create("ann", ["subscriber"])
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(
            transport=transport, base_url="https://tamis.example"
        ) as client:
            assert (await client.get("/console/api/me")).status_code == 401
            assert (await ask(client, "tamis_0_0")).status_code == 401
            answer = await ask(client, key)
            assert answer.status_code == 200
            assert "Secure" in answer.headers["set-cookie"]
            me = await client.get("/console/api/me", headers={"Tamis-Console": "1"})
            assert (me.json()["name"], me.json()["roles"]) == ("ann", ["subscriber"])
            broker.keys.revoke(key.split("_")[1])
            me = await client.get("/console/api/me", headers={"Tamis-Console": "1"})
            assert me.status_code == 401

    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        asyncio.run(talk(broker))


def test_who_signs_in_again_leaves_no_session_behind(tmp_path: Path) -> None:
    async def talk(broker: Broker) -> None:
        app = make_app(broker, Settings(tmp_path), Waiting())
        sessions, code = app.state.server.sessions, app.state.server.console_code
        headers = {"Tamis-Console": "1", "Origin": "http://t"}
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://t") as client:
            for _ in range(3):
                answer = await client.post(
                    "/console/api/login", json={"key": code}, headers=headers
                )
                assert answer.status_code == 200
            assert len(sessions) == 1
            await client.post("/console/api/logout", headers=headers)
            assert len(sessions) == 0

    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        asyncio.run(talk(broker))


def test_a_subscription_that_asks_for_some_attributes_has_no_sink(tmp_path: Path) -> None:
    """Even if they are called as the members of a sink are: the page would look for its topic."""

    async def talk(broker: Broker) -> None:
        app = make_app(broker, Settings(tmp_path), Waiting())
        headers = {"Authorization": f"Bearer {app.state.server.console_code}"}
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://t") as client:
            given = {"condition": "url = 1", "sink": {"body": ["url", "kafka"]}}
            made = await client.post("/v1/subscriptions", json=given, headers=headers)
            assert made.status_code == 201, made.text
            found = await client.get("/console/api/delivery", headers=headers)
            assert found.json()["sinks"] == []

    schema = {"attributes": {"url": "decimal", "kafka": "decimal"}}
    with Broker(tmp_path, schema) as broker:
        asyncio.run(talk(broker))
