"""The event loop waits for no database: a slow question would hold up every other caller."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import grpc.aio
import httpx2
import psycopg
import pytest
from google.protobuf.message_factory import GetMessageClass

from tamis.broker.broker import Broker
from tamis.broker.state import State
from tamis.service.app import make_app
from tamis.service.listen_address import ListenAddress
from tamis.service.rpc import tamis_pb2 as pb
from tamis.service.rpc.server import GrpcServer
from tamis.service.settings import Settings
from tamis.service.waiting import Waiting

_METHODS = pb.DESCRIPTOR.services_by_name["Tamis"].methods_by_name


def test_questions_to_the_state_are_asked_in_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, bool]] = []
    verb = ""
    rows = State._rows

    def noted(state: State, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        in_loop = threading.current_thread() is threading.main_thread()
        if "FROM keys" not in query:  # which are in this process, and take microseconds
            asked.append((verb, in_loop))
        return rows(state, query, values)

    async def run(broker: Broker) -> None:
        nonlocal verb
        lease = await asyncio.wrap_future(broker.subscribe("price < 5"))
        admin = {"Authorization": f"Bearer {broker.keys.create('ann', ['admin'])}"}
        app = make_app(broker, Settings(tmp_path), Waiting())
        place = f"http://x/v1/subscriptions/{lease.id}"
        monkeypatch.setattr(State, "_rows", noted)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
            ticket = {"Tamis-Ticket": lease.ticket}
            for verb in (place, f"{place}/notifications?after=-1"):
                assert (await client.get(verb, headers=ticket)).status_code == 200
            verb = "http://x/v1/subscriptions"
            assert (await client.get(verb, headers=admin)).status_code == 200
        server = GrpcServer(app.state.server, ListenAddress.of("127.0.0.1:0"))
        async with grpc.aio.insecure_channel(await server.start()) as channel:
            show = pb.ShowRequest(id=str(lease.id), ticket=lease.ticket)
            for verb, request in (("Show", show), ("List", pb.ListRequest())):
                call: Any = channel.unary_unary(
                    f"/tamis.v1.Tamis/{verb}",
                    request_serializer=type(request).SerializeToString,
                    response_deserializer=GetMessageClass(_METHODS[verb].output_type).FromString,
                )
                await call(request, metadata=(("authorization", admin["Authorization"]),))
        await server.stop()

    with Broker(tmp_path / "data", {"attributes": {"price": "decimal"}}) as broker:
        asyncio.run(run(broker))
    assert len({verb for verb, _ in asked}) == 5
    assert [verb for verb, in_loop in asked if in_loop] == []


def test_others_are_answered_while_the_state_is_written(tmp_path: Path) -> None:
    """As when many subscriptions are applied: whoever calls with a key waits, and nobody else."""

    async def run(broker: Broker) -> None:
        key = {"Authorization": f"Bearer {broker.keys.create('ann', ['admin'])}"}
        app = make_app(broker, Settings(tmp_path), Waiting())
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with broker.state._lock:
                held.set()
                let_go.wait(30)

        writer = threading.Thread(target=hold)
        writer.start()
        assert held.wait(60)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), timeout=60) as client:
            waits = asyncio.ensure_future(client.get("http://x/v1/schema", headers=key))
            await asyncio.sleep(0.1)
            assert (await client.get("http://x/v1/schema")).status_code == 200
            assert not waits.done()
            let_go.set()
            assert (await waits).status_code == 200
        writer.join()

    with Broker(tmp_path / "data", {"attributes": {"price": "decimal"}}) as broker:
        asyncio.run(run(broker))


class _CountedBroker(Broker):
    """Notes how often the event loop has run before and after it has read the events."""

    ticks = 0

    def publish(self, *given: Any, **more: Any) -> Any:
        before = self.ticks
        asked = super().publish(*given, **more)
        self.turns = self.ticks - before
        return asked


@pytest.mark.slow
def test_others_are_answered_while_a_large_body_is_read(tmp_path: Path) -> None:
    lines = b'{"price": 4}\n' * 100_000

    async def tick(broker: _CountedBroker) -> None:
        while True:
            broker.ticks += 1
            await asyncio.sleep(0)

    async def run(broker: _CountedBroker) -> None:
        app = make_app(broker, Settings(tmp_path), Waiting())
        ticking = asyncio.ensure_future(tick(broker))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), timeout=60) as client:
            kind = {"Content-Type": "application/x-ndjson"}
            answer = await client.post("http://x/v1/events", content=lines, headers=kind)
            assert answer.json()["count"] == 100_000
        assert broker.turns > 0
        server = GrpcServer(app.state.server, ListenAddress.of("127.0.0.1:0"))
        async with grpc.aio.insecure_channel(await server.start()) as channel:
            broker.turns = 0
            events = [pb.Event(json=b'{"price": 4}')] * 100_000
            call: Any = channel.unary_unary(
                "/tamis.v1.Tamis/Publish",
                request_serializer=pb.PublishRequest.SerializeToString,
                response_deserializer=pb.PublishResponse.FromString,
            )
            assert (await call(pb.PublishRequest(events=events))).count == 100_000
        assert broker.turns > 0
        ticking.cancel()
        await server.stop()

    with _CountedBroker(tmp_path / "data", {"attributes": {"price": "decimal"}}) as broker:
        asyncio.run(run(broker))


@pytest.mark.slow
@pytest.mark.postgresql
def test_others_are_answered_while_a_key_is_looked_up(tmp_path: Path, postgresql: str) -> None:
    """The table of keys is locked: whoever calls with a key waits, and nobody else."""
    with psycopg.connect(postgresql) as base:
        base.execute("DROP SCHEMA IF EXISTS tamis CASCADE")

    async def run(broker: Broker) -> None:
        key = {"Authorization": f"Bearer {broker.keys.create('ann', ['admin'])}"}
        app = make_app(broker, Settings(tmp_path), Waiting())
        transport = httpx2.ASGITransport(app)
        with psycopg.connect(postgresql) as other:
            other.execute("LOCK TABLE tamis.keys IN ACCESS EXCLUSIVE MODE")
            async with httpx2.AsyncClient(transport=transport, timeout=60) as client:
                waits = asyncio.ensure_future(
                    client.post("http://x/v1/events", json={"price": 4}, headers=key)
                )
                await asyncio.sleep(0.1)
                for _ in range(3):
                    answer = await client.post("http://x/v1/events", json={"price": 4})
                    assert answer.status_code == 202
                assert not waits.done()
                other.rollback()
                assert (await waits).status_code == 202

    document = {"attributes": {"price": "decimal"}}
    with Broker(tmp_path / "data", document, database=postgresql) as broker:
        asyncio.run(run(broker))


def test_pages_of_documentation_load_nothing_from_other_hosts(tmp_path: Path) -> None:
    async def run(broker: Broker) -> None:
        transport = httpx2.ASGITransport(make_app(broker, Settings(tmp_path), Waiting()))
        async with httpx2.AsyncClient(transport=transport) as client:
            for path in ("docs", "redoc", "docs/oauth2-redirect"):
                assert (await client.get(f"http://x/{path}")).status_code == 404
            document = (await client.get("http://x/openapi.json")).json()
            assert "/v1/events" in document["paths"]

    with Broker(tmp_path / "data", {"attributes": {"price": "decimal"}}) as broker:
        asyncio.run(run(broker))
