"""What the verbs of gRPC have in common."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from google.protobuf.message import Message

from tamis.broker.access.caller import Caller
from tamis.errors import TamisError
from tamis.service.context import ServiceContext
from tamis.service.routes.subscription_routes import subscription_id
from tamis.service.rpc.status import Context
from tamis.store.subscription_snapshot import Id


class VerbGroup:
    """Some verbs, on the broker that the HTTP routes use."""

    def __init__(self, server: ServiceContext) -> None:
        self._server, self._broker = server, server.broker

    async def _caller(self, context: Context) -> Caller:
        """Who calls: the holder of the key in the metadata, or nobody known."""
        return await self._server.identify(authorization(context))

    async def admit(self, request: Message, context: Context) -> None:
        """Refuse a caller who is too fast: requests over HTTP and gRPC count together."""
        key = authorization(context)
        if key is not None:
            with suppress(TamisError):  # the verb refuses an unknown one
                await self._server.identify(key)
        buckets = self._server.rates.of(_host(context.peer()), key)
        if buckets is not None:
            buckets.admit(request.ByteSize())

    def _id(self, written: str) -> Id:
        return subscription_id(self._server, written)


def authorization(context: Context) -> str | None:
    """What a caller gives to be known by."""
    for name, value in context.invocation_metadata() or ():
        if name == "authorization" and isinstance(value, str):
            return value
    return None


def given(request: Any, name: str) -> Any:
    """An optional field of a message; None if it is absent."""
    return getattr(request, name) if request.HasField(name) else None


def _host(peer: str) -> str:
    """The address of a caller; one who came by a Unix socket has none."""
    kind, _, place = unquote(peer).partition(":")
    return place.rpartition(":")[0].strip("[]") if kind in ("ipv4", "ipv6") else ""
