"""Questions that take long hold up those who ask, and nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event
from typing import Any

import grpc.aio
import httpx2
import pytest
from google.protobuf.message import Message

from tamis.broker import subscription_search
from tamis.broker.broker import Broker
from tamis.broker.delivery import webhooks
from tamis.broker.delivery.sink_address import SinkTarget
from tamis.broker.state import State, StoredSubscription
from tamis.service.app import make_app
from tamis.service.listen_address import ListenAddress
from tamis.service.rpc import tamis_pb2 as pb
from tamis.service.rpc.server import GrpcServer
from tamis.service.settings import Settings
from tamis.service.waiting import Waiting

MANY = 60  # more than there are threads for all other requests
SINK = {"url": "http://slow.example/"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/match", {"event": {"price": 1}}),
        ("/v1/explain", {"condition": "price < 5", "event": {"price": 1}}),
        ("/v1/backtest", {"condition": "price < 5"}),
        ("/v1/subscriptions", {"condition": "price < 5", "sink": SINK}),
    ],
)
def test_slow_questions_hold_up_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    go_on = Event()

    def slow(*given: Any, **more: Any) -> Any:
        go_on.wait(60)
        return []

    def resolve(*given: Any) -> SinkTarget:  # a name server that hangs
        go_on.wait(60)
        return SinkTarget(SINK["url"], "http", "slow.example", 80, ("192.0.2.1",))

    async def run(broker: Broker) -> None:
        lease = await asyncio.wrap_future(broker.subscribe("price < 5"))
        app = make_app(broker, Settings(tmp_path), Waiting())
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            asked = [asyncio.ensure_future(client.post(path, json=body)) for _ in range(MANY)]
            await asyncio.sleep(0.1)
            try:
                page = f"/v1/subscriptions/{lease.id}/notifications"
                ticket = {"Tamis-Ticket": lease.ticket}
                async with asyncio.timeout(30):
                    assert (await client.get(page, headers=ticket)).status_code == 200
                    await _others_over_grpc(app.state.server, path, lease.id, lease.ticket)
            finally:
                go_on.set()
                await asyncio.wait(asked)

    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        monkeypatch.setattr(broker, "dry_run", slow)
        monkeypatch.setattr(broker, "explain", slow)
        monkeypatch.setattr(broker.backtests, "_run", slow)
        monkeypatch.setattr(webhooks, "resolve", resolve)
        asyncio.run(run(broker))


async def _others_over_grpc(server: Any, path: str, id: Any, ticket: str) -> None:
    """Many slow calls over gRPC, and one for something else meanwhile."""
    calls: dict[str, tuple[str, Message]] = {
        "/v1/match": ("Match", pb.MatchRequest(event=b'{"price": 1}')),
        "/v1/explain": ("Explain", pb.ExplainRequest(condition="price < 5", event=b"{}")),
        "/v1/backtest": ("StartBacktest", pb.StartBacktestRequest(condition="price < 5")),
        "/v1/subscriptions": (
            "Subscribe",
            pb.SubscribeRequest(
                condition="price < 5", sink=pb.Sink(json=b'{"url": "http://slow.example/"}')
            ),
        ),
    }
    grpc_server = GrpcServer(server, ListenAddress.of("127.0.0.1:0"))
    async with grpc.aio.insecure_channel(await grpc_server.start()) as channel:

        def call(name: str, request: Message, answer: Any) -> Any:
            made: Any = channel.unary_unary(
                f"/tamis.v1.Tamis/{name}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=answer.FromString,
            )
            return made(request)

        name, request = calls[path]
        asked = [call(name, request, pb.CheckResponse) for _ in range(MANY)]
        await asyncio.sleep(0.1)
        shown = await call("Show", pb.ShowRequest(id=str(id), ticket=ticket), pb.Subscription)
        assert shown.condition == "price < 5"
        for each in asked:
            each.cancel()
    await grpc_server.stop()


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson"])
def test_a_search_through_many_is_asked_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    """Others ask the database in between."""
    monkeypatch.setattr(subscription_search, "_ROWS", 3)
    searched: list[int] = []
    search = State.search

    def noted(state: State, *given: Any) -> list[StoredSubscription]:
        searched.append(1)
        return search(state, *given)

    async def run(broker: Broker) -> None:
        app = make_app(broker, Settings(tmp_path), Waiting())
        headers = {"Authorization": f"Bearer {app.state.server.console_code}", "Accept": accept}
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            monkeypatch.setattr(State, "search", noted)
            found = await client.get("/v1/subscriptions?q=price+%3C+7&most=2", headers=headers)
            assert found.text.count("price < 7") == 2
            assert len(searched) > 2

    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        for at in range(20):
            broker.subscribe(f"price < {at % 9}").result()
        asyncio.run(run(broker))
