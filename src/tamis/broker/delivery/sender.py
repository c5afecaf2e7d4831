"""One attempt to send a message: the address is checked, the request signed."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from tamis import __version__
from tamis.broker.cloud_events.write_cloud_event import CLOUD_EVENT
from tamis.broker.delivery import retries
from tamis.broker.delivery.message import DeliveryAttempt, OutgoingMessage
from tamis.broker.delivery.signature import sign
from tamis.broker.delivery.sink_address import (
    SinkError,
    SinkRules,
    SinkTarget,
    is_literal,
    resolve,
)
from tamis.broker.delivery.sinks import CLOUD_EVENTS

TIMEOUT = 10.0  # seconds for a request
_RESOLVING = 64  # names that are resolved at once
_GONE = 410


class Sender:
    """Sends messages in the loop in which it was entered.

    Names are resolved in threads of their own: a name server that hangs holds up no reader of
    files.
    """

    def __init__(self, rules: SinkRules, identity: str) -> None:
        self._rules, self._identity = rules, identity
        self._resolving = ThreadPoolExecutor(_RESOLVING, "tamis-resolver")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        headers = {"User-Agent": f"tamis/{__version__}", "Content-Type": "application/json"}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=_CheckedResolver(self), limit=0, use_dns_cache=False
            ),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=TIMEOUT),
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
        self._resolving.shutdown(wait=False, cancel_futures=True)

    async def send(self, message: OutgoingMessage) -> DeliveryAttempt:
        """One attempt."""
        assert self._session is not None
        now = datetime.now(UTC)
        body = message.body()
        headers = sign(message.secrets, message.name(self._identity), int(now.timestamp()), body)
        if message.sink.format == CLOUD_EVENTS:
            headers["Content-Type"] = CLOUD_EVENT
        try:
            async with asyncio.timeout(TIMEOUT):
                await self.target(message.url)  # checked at every attempt
                async with self._session.post(
                    message.url, data=body, headers=headers, allow_redirects=False
                ) as answer:
                    if 200 <= answer.status < 300:
                        return DeliveryAttempt(True)
                    asked = retries.retry_after(answer.headers.get("Retry-After"), now)
                    gone = answer.status == _GONE
                    return DeliveryAttempt(False, f"answered with {answer.status}", asked, gone)
        except SinkError as why:
            return DeliveryAttempt(False, str(why))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as why:
            return DeliveryAttempt(False, f"{type(why).__name__}: {why}"[:500])

    async def target(self, url: str) -> SinkTarget:
        """Where the connection goes, checked. An address needs no name server."""
        if is_literal(url):
            return resolve(url, self._rules)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._resolving, resolve, url, self._rules)


class _CheckedResolver(AbstractResolver):
    """Resolves names to checked addresses, to which the connection then goes."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        target = await self._sender.target(f"http://{host}:{port}/")
        found: list[Any] = [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
            for address in target.addresses
        ]
        return found

    async def close(self) -> None:
        return None
