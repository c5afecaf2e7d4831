"""The event loop waits for no database: a slow question would hold up every other caller."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import grpc.aio
import httpx2
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
        if "FROM keys" not in query:  # who calls is asked before anything else
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
