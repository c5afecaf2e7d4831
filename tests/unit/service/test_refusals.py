"""Refused requests are counted, each once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from tamis.broker import metrics
from tamis.broker.broker import Broker
from tamis.service.context import ServiceContext
from tamis.service.listen_address import ListenAddress
from tamis.service.rpc import tamis_pb2 as pb
from tamis.service.rpc.server import GrpcServer
from tamis.service.settings import Settings
from tamis.service.waiting import Waiting


def test_a_refused_call_of_grpc_counts_once(tmp_path: Path) -> None:
    async def run(broker: Broker) -> None:
        context = ServiceContext(broker, Settings(tmp_path), Waiting())
        server = GrpcServer(context, ListenAddress.of("127.0.0.1:0"))
        async with grpc.aio.insecure_channel(await server.start()) as channel:
            show: Any = channel.unary_unary(
                "/tamis.v1.Tamis/Show",
                request_serializer=pb.ShowRequest.SerializeToString,
                response_deserializer=pb.Subscription.FromString,
            )
            with pytest.raises(grpc.aio.AioRpcError, match="no live subscription"):
                await show(pb.ShowRequest(id="7"))
        await server.stop()

    counter = metrics.REFUSED.labels("not-found")
    before = counter._value.get()
    with Broker(tmp_path / "data", {"attributes": {"price": "decimal"}}) as broker:
        asyncio.run(run(broker))
    assert counter._value.get() - before == 1
