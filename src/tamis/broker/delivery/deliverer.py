"""Sends notifications to webhooks: one thread with a loop of its own.

Each page of notifications is sent at once, a few at a time to each sink. What fails is stored and
tried again later. A sink that fails again and again is left alone for a while: its messages are
stored without an attempt, so that it does not hold up others.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from threading import Thread
from typing import Any, NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from tamis import __version__
from tamis.broker.delivery import retries
from tamis.broker.delivery.outbox import Outbox, PendingDelivery
from tamis.broker.delivery.signature import sign
from tamis.broker.delivery.sink_address import SinkError, SinkRules, resolve
from tamis.broker.delivery.sinks import Sink, message_body
from tamis.broker.matching.notification_reader import Notification, Page
from tamis.broker.state import KnownSubscription
from tamis.store.subscription_snapshot import Id

PAGE = 500  # notifications that are sent together
AT_ONCE = 64  # requests under way
PER_SINK = 4  # of them to one sink
TIMEOUT = 10.0  # seconds for a request
_LOOK = 1.0  # seconds between two looks at what is due
_GRACE = 2.0  # seconds for the requests under way when it stops
_GONE = 410


class DeliveryAttempt(NamedTuple):
    """How one request went."""

    delivered: bool
    error: str = ""
    asked: float | None = None  # seconds, by Retry-After
    gone: bool = False  # the receiver wants no more


class DeliverySource(NamedTuple):
    """What a deliverer asks the broker for."""

    page: Callable[[int, int], Page]  # notifications of subscriptions with sinks
    subscription: Callable[[Id], KnownSubscription | None]
    event: Callable[[int], str | None]
    secrets: Callable[[KnownSubscription], list[str]]
    identity: str
    clock: Callable[[], int]


class Deliverer:
    """Delivers from the outbox's cursor on, until it is stopped."""

    def __init__(
        self, source: DeliverySource, outbox: Outbox, rules: SinkRules, start: int
    ) -> None:
        self._source, self._outbox, self._rules = source, outbox, rules
        cursor = outbox.cursor()
        self._cursor = self._stored = start if cursor is None else cursor
        if cursor is None:
            outbox.advance(start, [])
        self._failures: dict[str, int] = defaultdict(int)  # in a row, by URL
        self._open_until: dict[str, float] = {}
        self._per_sink: dict[str, asyncio.Semaphore] = {}
        self._loop = asyncio.new_event_loop()
        self._wake = asyncio.Event()
        self._stopping = False
        self.delivered = 0
        self.failure: BaseException | None = None  # of the last round
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._thread = Thread(target=self._run, name="tamis-webhooks", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There are new notifications. Called in any thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._wake.set)

    def stop(self) -> None:
        """End soon; what was not sent is sent after the next start."""
        self._stopping = True
        self.wake()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._deliver())
        finally:
            self._loop.close()

    async def _deliver(self) -> None:
        connector = aiohttp.TCPConnector(
            resolver=_CheckedResolver(self._rules), limit=0, use_dns_cache=False
        )
        headers = {"User-Agent": f"tamis/{__version__}", "Content-Type": "application/json"}
        async with aiohttp.ClientSession(
            connector=connector,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=TIMEOUT),
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session:
            while not self._stopping:
                under_way = asyncio.ensure_future(self._round(session))
                while not under_way.done() and not self._stopping:
                    await asyncio.wait({under_way}, timeout=_LOOK)
                if self._stopping:  # the cursor stays where it is: the next start sends again
                    await asyncio.wait({under_way}, timeout=_GRACE)
                    under_way.cancel()
                (outcome,) = await asyncio.gather(under_way, return_exceptions=True)
                self.failure = outcome if isinstance(outcome, Exception) else None
                if outcome is not True:
                    await self._sleep()

    async def _round(self, session: aiohttp.ClientSession) -> bool:
        """Send a page of notifications, and what is due again; whether there was a page."""
        page = await asyncio.to_thread(self._source.page, self._cursor, PAGE)
        if page.notifications:
            failed = await asyncio.gather(
                *(self._first(session, each) for each in page.notifications)
            )
            self._advance(page.cursor, [each for each in failed if each is not None])
        elif page.cursor > self._stored + PAGE:
            self._advance(page.cursor, [])
        self._cursor = page.cursor
        await self._retry(session)
        return bool(page.notifications)

    def _advance(self, cursor: int, failed: list[PendingDelivery]) -> None:
        self._outbox.advance(cursor, failed)
        self._stored = cursor

    async def _sleep(self) -> None:
        if self._stopping:
            return
        try:
            await asyncio.wait_for(self._wake.wait(), _LOOK)
        except TimeoutError:
            return
        self._wake.clear()

    async def _first(
        self, session: aiohttp.ClientSession, notification: Notification
    ) -> PendingDelivery | None:
        """The first attempt; a row if it failed."""
        pending = PendingDelivery(
            notification.subscription, notification.sequence, 0, self._source.clock(), ""
        )
        return await self._attempt(session, pending, notification.event)

    async def _retry(self, session: aiohttp.ClientSession) -> None:
        due = self._outbox.due(self._source.clock(), PAGE)

        async def one(pending: PendingDelivery) -> None:
            if pending.attempts >= retries.ATTEMPTS:  # the first attempt was the last
                self._outbox.bury(pending, self._source.clock())
                return
            event = await asyncio.to_thread(self._source.event, pending.sequence)
            after = await self._attempt(session, pending, event)
            if after is None:
                self._outbox.done(pending)
            elif after.attempts >= retries.ATTEMPTS:
                self._outbox.bury(after, self._source.clock())
            else:
                self._outbox.again(after)

        await asyncio.gather(*(one(each) for each in due))

    async def _attempt(
        self, session: aiohttp.ClientSession, pending: PendingDelivery, event: str | None
    ) -> PendingDelivery | None:
        """One attempt. What fails here, such as a sink that cannot be read, fails like a sink."""
        (outcome,) = await asyncio.gather(
            self._try(session, pending, event), return_exceptions=True
        )
        if not isinstance(outcome, BaseException):
            return outcome
        if not isinstance(outcome, Exception):
            raise outcome
        return self._failed(pending, DeliveryAttempt(False, str(outcome)[:500]))

    def _failed(self, pending: PendingDelivery, attempt: DeliveryAttempt) -> PendingDelivery:
        attempts = retries.ATTEMPTS if attempt.gone else pending.attempts + 1
        pause = 0.0 if attempt.gone else retries.next_pause(pending.attempts + 1, attempt.asked)
        due = self._source.clock() + int(pause * 1e6)
        return pending._replace(attempts=attempts, due=due, error=attempt.error)

    async def _try(
        self, session: aiohttp.ClientSession, pending: PendingDelivery, event: str | None
    ) -> PendingDelivery | None:
        """One attempt: None if the delivery is done with, else what to try later."""
        live = self._source.subscription(pending.subscription)
        if live is None or live.sink is None:
            return None  # it has no sink any more
        sink = Sink.read(live.sink)
        async with self._per_sink.setdefault(sink.url, asyncio.Semaphore(PER_SINK)):
            # Looked at here: those before this one may have failed while it waited.
            if self._open_until.get(sink.url, 0.0) > time.monotonic():
                later = self._source.clock() + retries.OPEN_FOR * 1_000_000
                return pending._replace(due=later, error="the sink is failing")
            async with self._slots:
                attempt = await self._send(session, sink, live, pending, event)
            self._note(sink.url, attempt)
        if attempt.delivered:
            self.delivered += 1
            return None
        return self._failed(pending, attempt)

    def _note(self, url: str, attempt: DeliveryAttempt) -> None:
        """Count failures in a row; a sink with many is left alone for a while."""
        if attempt.delivered:
            self._failures.pop(url, None)
            self._open_until.pop(url, None)
            return
        self._failures[url] += 1
        if self._failures[url] >= retries.OPEN_AFTER:
            self._open_until[url] = time.monotonic() + retries.OPEN_FOR

    async def _send(
        self,
        session: aiohttp.ClientSession,
        sink: Sink,
        live: KnownSubscription,
        pending: PendingDelivery,
        event: str | None,
    ) -> DeliveryAttempt:
        now = datetime.now(UTC)
        body = message_body(
            sink, pending.subscription, pending.sequence, now.isoformat(timespec="seconds"), event
        )
        # The same at each attempt, so that a receiver knows a message that it has.
        name = f"{self._source.identity[:12]}.{pending.sequence}.{pending.subscription}"
        headers = sign(self._source.secrets(live), name, int(now.timestamp()), body)
        try:
            await asyncio.to_thread(resolve, sink.url, self._rules)  # checked at every attempt
            async with session.post(
                sink.url, data=body, headers=headers, allow_redirects=False
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


class _CheckedResolver(AbstractResolver):
    """Resolves names to checked addresses, to which the connection then goes."""

    def __init__(self, rules: SinkRules) -> None:
        self._rules = rules

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        target = await asyncio.to_thread(resolve, f"http://{host}:{port}/", self._rules)
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
