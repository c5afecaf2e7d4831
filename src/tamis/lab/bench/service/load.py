"""The load generator: publishes over HTTP and reads streams, in a process of its own.

    python -m tamis.lab.bench.service.load JSON

It writes one JSON object to standard output. It is as light as can be, so that it measures the
server and not itself: requests are bytes made beforehand, and answers are parsed by httptools.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import httptools
import numpy as np
import uvloop

_SEQUENCE = re.compile(rb'"sequence":(\d+)')


class HttpConnection(asyncio.Protocol):
    """A connection that is kept: one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), bytes(self._body)))
        self._body.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the server has hung up"))

    async def request(self, message: bytes) -> tuple[int, bytes]:
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(message)
        return await self._answer


class StreamConnection(asyncio.Protocol):
    """A stream of server-sent events: when each notification arrived."""

    def __init__(self, request: bytes) -> None:
        self._request, self._rest = request, b""
        self.open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.arrived: list[tuple[int, float]] = []  # (sequence, time)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.open.done() and b": tamis" in data:
            self.open.set_result(None)
        now = time.perf_counter()
        text = self._rest + data
        whole = text.rfind(b"\n") + 1
        self._rest = text[whole:]
        self.arrived += [(int(found), now) for found in _SEQUENCE.findall(text, 0, whole)]


class Load:
    """A server to load, and the events that are published."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self._host, self._port = asked["host"], asked["port"]
        self._lines = Path(asked["events"]).read_bytes().splitlines()

    def _message(self, body: bytes, kind: str) -> bytes:
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def messages(self) -> Iterator[bytes]:
        """Requests, over and over: with one event each, or with many lines."""
        many = self.asked.get("lines", 1)
        if many == 1:
            made = [self._message(line, "application/json") for line in self._lines]
        else:
            made = [
                self._message(b"\n".join(self._lines[at : at + many]), "application/x-ndjson")
                for at in range(0, len(self._lines) - many + 1, many)
            ]
        return cycle(made)

    async def connect(self) -> HttpConnection:
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(HttpConnection, self._host, self._port)
        return made

    async def publish(self) -> dict[str, Any]:
        """As fast as the connections allow."""
        messages, many = self.messages(), self.asked.get("lines", 1)
        connections = [await self.connect() for _ in range(self.asked["connections"])]
        times: list[float] = []
        refused = 0
        began = time.perf_counter()
        until = began + self.asked["seconds"]

        async def one(connection: HttpConnection) -> None:
            nonlocal refused
            while (now := time.perf_counter()) < until:
                status, body = await connection.request(next(messages))
                if status == 202:
                    times.append(time.perf_counter() - now)
                elif status == 429:  # the queue is full, as it should be
                    refused += 1
                    await asyncio.sleep(0.05)
                else:
                    raise SystemExit(f"load: answered with {status}: {body[:500]!r}")

        await asyncio.gather(*(one(each) for each in connections))
        took = time.perf_counter() - began
        return {"events": len(times) * many, "seconds": took, "refused": refused, **_ms(times)}

    async def call(self) -> dict[str, Any]:
        """Groups of events over one stream of gRPC, with some of them under way."""
        import grpc

        from tamis.service.rpc import tamis_pb2 as messages

        many = self.asked["lines"]
        groups = cycle(
            messages.PublishRequest(
                events=[messages.Event(json=line) for line in self._lines[at : at + many]]
            )
            for at in range(0, len(self._lines) - many + 1, many)
        )
        answered, began = 0, time.perf_counter()
        until = began + self.asked["seconds"]
        room = asyncio.Semaphore(64)

        async def asked() -> AsyncIterator[messages.PublishRequest]:
            while time.perf_counter() < until:
                await room.acquire()
                yield next(groups)

        async with grpc.aio.insecure_channel(self.asked["grpc"]) as channel:
            publish = channel.stream_stream(
                "/tamis.v1.Tamis/PublishStream",
                request_serializer=messages.PublishRequest.SerializeToString,
                response_deserializer=messages.PublishResponse.FromString,
            )
            async for answer in publish(asked()):
                answered += answer.count
                room.release()
        return {"events": answered, "seconds": time.perf_counter() - began}

    async def follow(self) -> dict[str, Any]:
        """At a steady rate, while streams listen: from the publish to the arrival."""
        loop = asyncio.get_running_loop()
        streams: list[StreamConnection] = []
        for id, ticket in self.asked["streams"]:
            request = (
                f"GET /v1/subscriptions/{id}/notifications HTTP/1.1\r\nHost: {self._host}\r\n"
                f"Accept: text/event-stream\r\nTamis-Ticket: {ticket}\r\n\r\n"
            ).encode()
            _, stream = await loop.create_connection(
                partial(StreamConnection, request),
                self._host,
                self._port,
            )
            await stream.open
            streams.append(stream)
        connections = [await self.connect() for _ in range(8)]
        free: asyncio.Queue[HttpConnection] = asyncio.Queue()
        for each in connections:
            free.put_nowait(each)
        sent: dict[int, float] = {}
        messages, rate = self.messages(), self.asked["rate"]

        async def one(message: bytes) -> None:
            now = time.perf_counter()  # before a connection is free: a busy server is slow
            connection = await free.get()
            status, body = await connection.request(message)
            free.put_nowait(connection)
            if status == 202:
                sent[json.loads(body)["first"]] = now

        began = time.perf_counter()
        tasks: set[asyncio.Task[None]] = set()
        for at in range(int(self.asked["seconds"] * rate)):
            await asyncio.sleep(max(0.0, began + at / rate - time.perf_counter()))
            task = asyncio.create_task(one(next(messages)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        while tasks:
            await asyncio.sleep(0.05)
        took = time.perf_counter() - began
        wanted = len(sent) * len(streams)
        patience = time.perf_counter() + 10
        while sum(len(each.arrived) for each in streams) < wanted:
            if time.perf_counter() > patience:
                break
            await asyncio.sleep(0.05)
        times = [at - sent[n] for each in streams for n, at in each.arrived if n in sent]
        return {"events": len(sent), "messages": len(times), "wanted": wanted, "seconds": took,
                **_ms(times)}  # fmt: skip


def _ms(times: Sequence[float]) -> dict[str, float]:
    if not times:
        return {}
    p50, p99, most = np.percentile(np.array(times) * 1e3, (50, 99, 100), method="inverted_cdf")
    return {"p50": float(p50), "p99": float(p99), "most": float(most)}


async def _run(asked: dict[str, Any]) -> dict[str, Any]:
    load = Load(asked)
    found: dict[str, Any] = await getattr(load, asked["what"])()
    return found


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(json.loads(sys.argv[1])))))
