"""What everything that answers requests has in common."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from starlette.requests import Request
from starlette.types import Scope

from tamis.broker.access.caller import ADMIN, ANONYMOUS, Caller
from tamis.broker.broker import Broker
from tamis.errors import TamisError
from tamis.service.console.latency_meter import LatencyMeter
from tamis.service.console.sessions import ConsoleSessions
from tamis.service.problems import HttpError
from tamis.service.rate_limit import CallerRates
from tamis.service.settings import Settings
from tamis.service.shared_reading import SharedReadings
from tamis.service.waiting import Waiting

CALLER = "tamis.caller"  # in the scope of a request: who calls, or why that is not known
_SLOW = 8  # threads for questions that may take seconds
LARGE = 64 << 10  # bytes of a request that is not read in the event loop
P = ParamSpec("P")
T = TypeVar("T")
_OPERATOR = Caller(None, frozenset({ADMIN}))  # whoever runs a service that asks for no keys


class ServiceContext:
    """What the routes share: the broker, the settings, and the readers that wait."""

    def __init__(self, broker: Broker, settings: Settings, waiting: Waiting) -> None:
        self.broker, self.settings, self.waiting = broker, settings, waiting
        self.readings = SharedReadings(broker, waiting)
        self.rates = CallerRates(settings.limits, broker.keys.remembers)
        self.sessions = ConsoleSessions()
        self.latencies = LatencyMeter(broker.log)
        waiting.listener = self.latencies.found
        self._anonymous = settings.anonymous  # each request asks
        # Where nobody has a key, who can read what the service logs may see all in the console.
        self.console_code = f"console_{secrets.token_urlsafe(24)}" if self._anonymous else None
        # Threads of their own: those of the routes may all be taken.
        self._asking = ThreadPoolExecutor(1, "tamis-callers")  # the database has one connection
        self._reading = ThreadPoolExecutor(2, "tamis-bodies")
        self._slow = ThreadPoolExecutor(_SLOW, "tamis-questions")

    def close(self) -> None:
        """Let the threads end."""
        self._asking.shutdown(wait=False, cancel_futures=True)
        self._reading.shutdown(wait=False, cancel_futures=True)
        self._slow.shutdown(wait=False, cancel_futures=True)

    async def aside(self, work: Callable[P, T], *given: P.args, **more: P.kwargs) -> T:
        """Read a large request in a thread: others are answered meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading, lambda: work(*given, **more))

    async def ask(self, work: Callable[P, T], *given: P.args, **more: P.kwargs) -> T:
        """Do what may take seconds: wait for matching, call operators, resolve a name.

        Few threads do so. Callers who ask much wait for each other, and for nobody else.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._slow, lambda: work(*given, **more))

    def caller(self, request: Request) -> Caller:
        """Who calls over HTTP, as it was known when the request came."""
        return self.caller_in(request.scope)

    def caller_in(self, scope: Scope) -> Caller:
        """Who calls, by the scope of a request."""
        found = scope[CALLER]
        if isinstance(found, TamisError):
            raise found
        assert isinstance(found, Caller)
        return found

    def present_caller(self, request: Request) -> Caller:
        """Who calls, asked again: a key may be revoked while a stream is read. In a thread."""
        self.caller(request)  # raises for a page of another site
        return self.holder(request.headers.get("authorization"))

    async def identify(self, given: str | None) -> Caller:
        """Who calls. A database elsewhere is asked in a thread."""
        keys = self.broker.keys
        if given is None or keys.is_near:
            return self.holder(given)
        known = keys.caller_at_hand(_key(given))
        if known is not None:
            return known
        return await asyncio.get_running_loop().run_in_executor(self._asking, self.holder, given)

    def holder(self, given: str | None) -> Caller:
        """Who calls: the holder of the key in `Authorization: Bearer`, or nobody known."""
        if given is None:
            if not self._anonymous:
                raise HttpError(401, "this service needs a key: Authorization: Bearer KEY")
            return ANONYMOUS
        key = _key(given)
        if self.console_code and hmac.compare_digest(key.encode(), self.console_code.encode()):
            return _OPERATOR
        caller = self.broker.keys.caller(key) if key else None
        if caller is None:
            raise HttpError(401, "this key is unknown; it may have been revoked")
        return caller


def _key(given: str) -> str:
    """The key in `Authorization: Bearer KEY`; nothing if it has another form."""
    kind, _, key = given.partition(" ")
    return key.strip() if kind.lower() == "bearer" else ""
