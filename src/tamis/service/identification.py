"""Who calls over HTTP, known before anything else of a request is looked at."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from tamis.errors import TamisError
from tamis.service.console.sessions import session_key
from tamis.service.context import CALLER, ServiceContext

_FREE = ("/livez", "/readyz")  # which do not wait for a database


class Identification:
    """Puts the caller of each request into its scope, or the error that says why it is unknown.

    What needs a caller raises that error: a request for another path is answered as usual.
    """

    def __init__(self, app: ASGIApp, server: ServiceContext) -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in _FREE:
            given = next(
                (value for name, value in scope["headers"] if name == b"authorization"), None
            )
            if given is None and len(self._server.sessions):
                key = session_key(self._server.sessions, scope["method"], scope["headers"])
                if key is not None:  # what comes later sees a request with a key
                    given = b"Bearer " + key.encode("latin-1")
                    scope["headers"] = [*scope["headers"], (b"authorization", given)]
            written = None if given is None else given.decode("latin-1")
            try:
                scope[CALLER] = await self._server.identify(written)
            except TamisError as why:
                scope[CALLER] = why
        await self._app(scope, receive, send)
