"""Callers without a key: programs of this machine, and no pages of other sites."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from tamis.broker.broker import Broker
from tamis.service.app import make_app
from tamis.service.settings import Settings
from tamis.service.waiting import Waiting

PAGE = {"Origin": "https://other.example"}


def publish(folder: Path, base: str, headers: dict[str, str], *, keys: bool | None = None) -> int:
    """Publish as a browser lets any page do: without a content type. The status of the answer."""

    async def talk(broker: Broker) -> int:
        transport = httpx2.ASGITransport(make_app(broker, Settings(folder, keys=keys), Waiting()))
        async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
            found = await client.post("/v1/events", content=b'{"price": 1}', headers=headers)
            read = await client.get("/v1/notifications", headers=headers)
            free = await client.get("/livez", headers=headers)
            assert (free.status_code, read.status_code) == (200, 403)  # they need a key
            if found.status_code == 403:
                assert "a page" in found.text or "not a name" in found.text
            return found.status_code

    with Broker(folder, {"attributes": {"price": "decimal"}}) as broker:
        return asyncio.run(talk(broker))


@pytest.mark.parametrize(
    ("base", "headers", "status"),
    [
        ("http://127.0.0.1:8080", {}, 202),
        ("http://[::1]:8080", {}, 202),
        ("http://localhost:8080", {"Origin": "http://localhost:8080"}, 202),
        ("http://tamis:8080", {}, 202),  # a container's name
        ("http://127.0.0.1:8080", {"Sec-Fetch-Site": "none"}, 202),  # typed by a person
        ("http://127.0.0.1:8080", PAGE, 403),
        ("http://127.0.0.1:8080", {"Origin": "null"}, 403),
        ("http://127.0.0.1:8080", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("http://localhost:8080", {"Origin": "http://localhost:9090"}, 403),
        # A name of the page's own that leads to this machine: then it has the same origin.
        ("http://other.example:8080", {}, 403),
        ("http://other.example:8080", {"Origin": "http://other.example:8080"}, 403),
    ],
)
def test_no_page_of_another_site_calls_without_a_key(
    tmp_path: Path, base: str, headers: dict[str, str], status: int
) -> None:
    assert publish(tmp_path, base, headers) == status


@pytest.mark.parametrize(("headers", "status"), [({}, 202), (PAGE, 403)])
def test_a_service_that_everybody_may_call_has_any_name(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    assert publish(tmp_path, "http://tamis.example", headers, keys=False) == status


def test_whoever_has_a_key_may_call_from_anywhere(tmp_path: Path) -> None:
    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        key = broker.keys.create("ann", ["publisher"])

        async def talk() -> None:
            transport = httpx2.ASGITransport(make_app(broker, Settings(tmp_path), Waiting()))
            headers = {"Authorization": f"Bearer {key}", **PAGE}
            async with httpx2.AsyncClient(
                transport=transport, base_url="https://tamis.example"
            ) as client:
                found = await client.post("/v1/events", json={"price": 1}, headers=headers)
                assert found.status_code == 202

        asyncio.run(talk())
