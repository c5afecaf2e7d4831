"""Rates: how many requests and bytes a second a caller may send."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.broker.limits import Limits
from tamis.errors import QuotaError
from tamis.service.problems import problem

REQUESTS, BYTES = 1000.0, 64.0 * (1 << 20)  # a second, for callers from other machines
_BURST = 10.0  # seconds of its rate that a caller may use at once
_CALLERS = 100_000  # that are remembered
_FREE = ("/livez", "/readyz", "/metrics")


class TokenBucket:
    """Tokens that come back at a rate, up to a burst. It may be overdrawn once.

    >>> bucket = TokenBucket(rate=2.0, burst=4.0, now=0.0)
    >>> [bucket.take(3.0, now=0.0), bucket.take(3.0, now=0.0), bucket.take(1.0, now=0.0)]
    [0.0, 0.0, 1.0]
    """

    __slots__ = ("_burst", "_level", "_rate", "_then")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst, self._level, self._then = rate, burst, burst, now

    def take(self, tokens: float, now: float) -> float:
        """Take tokens; 0, or the seconds to wait if there are none, and then none is taken."""
        self._level = min(self._burst, self._level + self._rate * (now - self._then))
        self._then = now
        if self._level <= 0:
            return max(-self._level, 1.0) / self._rate
        self._level -= tokens
        return 0.0


class RateLimit:
    """Refuses a caller who is too fast, before the body is read.

    A caller is the key that calls, or the address without one. Without settings, callers on this
    machine are not limited.
    """

    def __init__(
        self, app: ASGIApp, limits: Limits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._limits, self._clock = app, limits, clock
        self._buckets: OrderedDict[str, tuple[TokenBucket, TokenBucket]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        buckets = self._of(scope)
        if buckets is None:
            await self._app(scope, receive, send)
            return
        requests, sizes = buckets
        wait = max(requests.take(1.0, self._clock()), sizes.take(0.0, self._clock()))
        if wait > 0:
            why = f"this caller sends more than is allowed; try again after {wait:.1f} s"
            await problem(QuotaError(why, after=wait))(scope, receive, send)
            return

        async def counted() -> Message:
            message = await receive()
            sizes.take(float(len(message.get("body", b""))), self._clock())
            return message

        await self._app(scope, counted, send)

    def _of(self, scope: Scope) -> tuple[TokenBucket, TokenBucket] | None:
        """The buckets of a caller; None: there is no limit."""
        if scope["type"] != "http" or scope["path"] in _FREE:
            return None
        host = (scope.get("client") or ("",))[0]
        requests, sizes = self._limits.requests, self._limits.bytes
        if requests is None and sizes is None and _is_local(host):
            return None
        caller = Headers(scope=scope).get("authorization") or host
        found = self._buckets.get(caller)
        if found is None:
            rates = (float(requests or REQUESTS), float(sizes or BYTES))
            now = self._clock()
            first, second = (TokenBucket(rate, rate * _BURST, now) for rate in rates)
            found = self._buckets[caller] = first, second
            if len(self._buckets) > _CALLERS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(caller)
        return found


def _is_local(host: str) -> bool:
    """Whether a caller is on this machine; one without an address came by a Unix socket."""
    if host in ("127.0.0.1", ""):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
