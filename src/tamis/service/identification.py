"""Who calls over HTTP, known before anything else of a request is looked at."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from tamis.errors import TamisError
from tamis.service.console.sessions import RequestOrigin, session_key
from tamis.service.context import CALLER, ServiceContext
from tamis.service.problems import HttpError

_FREE = ("/livez", "/readyz")  # which do not wait for a database


class Identification:
    """Puts the caller of each request into its scope, or the error that says why it is unknown.

    What needs a caller raises that error: a request for another path is answered as usual.

    A browser lets any page publish to a service of its machine. Such a page is nobody: a caller
    without a key is a program, or a page of this service. By default, the service also goes by a
    name of this machine then: a page may let a name of its own lead here, and be of one origin with
    the service.
    """

    def __init__(self, app: ASGIApp, server: ServiceContext) -> None:
        self._app, self._server = app, server
        self._any_name = server.settings.keys is False  # whoever runs it has opened it

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
                if written is None:
                    self._refuse_pages(RequestOrigin.of(scope["method"], scope["headers"]))
            except TamisError as why:
                scope[CALLER] = why
        await self._app(scope, receive, send)

    def _refuse_pages(self, asked: RequestOrigin) -> None:
        if asked.is_foreign:
            raise HttpError(403, "a page of another site calls without a key; it needs one")
        if not (self._any_name or _is_of_this_machine(asked.host)):
            raise HttpError(
                403,
                f"{asked.host!r} is not a name of this machine: call with a key, or let everybody "
                "call without one: tamis serve --no-keys",
            )


@lru_cache(256)
def _is_of_this_machine(host: str) -> bool:
    """Whether a host is an address, or a name that is nobody's domain."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return "." not in name.rstrip(".") or name.endswith(".localhost")
    return True
