"""Rates: how many requests and bytes a second a caller may send, over HTTP and gRPC."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import ip_address
from typing import NamedTuple

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
        """Take tokens; 0, or the seconds to wait; then no token is taken."""
        self._level = min(self._burst, self._level + self._rate * (now - self._then))
        self._then = now
        if self._level <= 0:
            return max(-self._level, 1.0) / self._rate
        self._level -= tokens
        return 0.0


class CallerBuckets(NamedTuple):
    """What one caller may still send."""

    requests: TokenBucket
    sizes: TokenBucket
    clock: Callable[[], float]

    def admit(self, size: int = 0) -> None:
        """Count a request with so many bytes; raise `QuotaError` if the caller is too fast."""
        now = self.clock()
        wait = max(self.requests.take(1.0, now), self.sizes.take(float(size), now))
        if wait > 0:
            why = f"this caller sends more than is allowed; try again after {wait:.1f} s"
            raise QuotaError(why, after=wait)

    def spend(self, size: int) -> None:
        """Count bytes of a request that was admitted."""
        self.sizes.take(float(size), self.clock())


class CallerRates:
    """The buckets of all callers.

    A caller is the key that calls, however it is written, or the address. `is_key` says whether a
    key is known: whoever invents keys is counted by address. Without settings, callers on this
    machine are not limited.
    """

    def __init__(
        self,
        limits: Limits,
        is_key: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits, self._is_key, self._clock = limits, is_key, clock
        self._buckets: OrderedDict[str, CallerBuckets] = OrderedDict()

    def of(self, host: str, authorization: str | None) -> CallerBuckets | None:
        """The buckets of a caller; None: there is no limit."""
        requests, sizes = self._limits.requests, self._limits.bytes
        if requests is None and sizes is None and _is_local(host):
            return None
        key = (authorization or "").partition(" ")[2].strip()
        caller = key if key and (key in self._buckets or self._is_key(key)) else host
        found = self._buckets.get(caller)
        if found is None:
            rates = (float(requests or REQUESTS), float(sizes or BYTES))
            now = self._clock()
            first, second = (TokenBucket(rate, rate * _BURST, now) for rate in rates)
            found = self._buckets[caller] = CallerBuckets(first, second, self._clock)
            if len(self._buckets) > _CALLERS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(caller)
        return found


class RateLimit:
    """Refuses a caller of HTTP who is too fast, before the body is read."""

    def __init__(self, app: ASGIApp, rates: CallerRates) -> None:
        self._app, self._rates = app, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _FREE:
            await self._app(scope, receive, send)
            return
        host = (scope.get("client") or ("",))[0]
        buckets = self._rates.of(host, Headers(scope=scope).get("authorization"))
        if buckets is None:
            await self._app(scope, receive, send)
            return
        try:
            buckets.admit()
        except QuotaError as why:
            await problem(why)(scope, receive, send)
            return

        async def counted() -> Message:
            message = await receive()
            buckets.spend(len(message.get("body", b"")))
            return message

        await self._app(scope, counted, send)


def _is_local(host: str) -> bool:
    """Whether a caller is on this machine; one without an address came by a Unix socket."""
    if host in ("127.0.0.1", ""):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
