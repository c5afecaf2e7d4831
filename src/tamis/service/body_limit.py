"""A limit on the bodies of all requests, and callers who are known before a body is read."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.service.console.session_routes import LOGIN
from tamis.service.problems import HttpError, problem, too_long


class BodyLimit:
    """Refuses a request with an unknown key, or with a body that is too long.

    Routes read bodies before they know the caller, so this comes before them.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._most:
                raise too_long(self._most)
            return message

        async def unless_too_long(message: Message) -> None:
            if size <= self._most:  # else a route has made another error of it
                await send(message)

        try:
            request = Request(scope)
            if scope["path"] != LOGIN:
                scope["app"].state.server.caller(request)
            declared = request.headers.get("content-length", "")
            if declared.isdecimal() and int(declared[:18]) > self._most:
                raise too_long(self._most)
            await self._app(scope, limited, unless_too_long)
            if size > self._most:
                raise too_long(self._most)
        except HttpError as why:
            await problem(why)(scope, receive, send)
