"""`POST /v1/events`, ahead of the framework.

Publishes are most of what a service is asked. Routing, request objects and handlers of exceptions
cost more than everything that a publish has to do, so it passes them by.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.broker.access.caller import Caller
from tamis.broker.sequence.requests import Receipt
from tamis.errors import TamisError
from tamis.service.bodies import Headers, events_in
from tamis.service.context import LARGE, ServiceContext
from tamis.service.problems import HttpError, problem, too_long, unicode_problem

PATH = "/v1/events"
_ANSWER = (b"content-type", b"application/json")


class Publishing:
    """The endpoint of publishes."""

    def __init__(self, server: ServiceContext, most: int) -> None:
        self._server, self._most = server, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._publish(scope, receive)
        except TamisError as why:
            await problem(why)(scope, receive, send)
        except UnicodeEncodeError:
            await unicode_problem()(scope, receive, send)
        else:
            headers = [_ANSWER, (b"content-length", str(len(answer)).encode())]
            await send({"type": "http.response.start", "status": 202, "headers": headers})
            await send({"type": "http.response.body", "body": answer})

    async def _publish(self, scope: Scope, receive: Receive) -> bytes:
        """Publish what a request has. The caller is known before the body is read."""
        caller, headers = self._server.caller_in(scope), scope["headers"]
        for name, value in headers:
            if name == b"content-length" and value.isdigit() and int(value[:18]) > self._most:
                raise too_long(self._most)
        body = await self._body(receive)
        if len(body) < LARGE:
            asked = self._submit(body, headers, caller)
        else:
            asked = await self._server.aside(self._submit, body, headers, caller)
        receipt = await asyncio.wrap_future(asked)
        found = {
            "first": receipt.numbers[0] if receipt.numbers else None,
            "count": len(receipt.numbers),
            "duplicates": receipt.duplicates,
        }
        return msgspec.json.encode(found)

    def _submit(self, body: bytes, headers: Headers, caller: Caller) -> Future[Receipt]:
        return self._server.broker.publish(events_in(body, headers), caller)

    async def _body(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message: Message = await receive()
            if message["type"] == "http.disconnect":
                raise HttpError(400, "the body arrived incomplete")
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
            if size > self._most:
                raise too_long(self._most)
        return b"".join(parts)


class PublishDoor:
    """Takes publishes to their endpoint, and hands everything else on."""

    def __init__(self, app: ASGIApp, publishing: Publishing) -> None:
        self._app, self._publishing = app, publishing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH and scope["method"] == "POST":
            scope["endpoint"] = self._publishing
            await self._publishing(scope, receive, send)
        else:
            await self._app(scope, receive, send)
