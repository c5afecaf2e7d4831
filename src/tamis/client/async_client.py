"""The client of the service, for asyncio."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, Self, TypeVar

import httpx2

from tamis.client.answers import (
    BacktestReport,
    Id,
    PublishReceipt,
    ReceivedNotification,
    SubscriptionInfo,
)
from tamis.client.call import AsyncDriver, ServiceCall
from tamis.client.connection import CONNECTING, TIMEOUT, options_of, request_of
from tamis.client.event_batches import AnyEvent, EventBatcher
from tamis.client.feed import SILENCE, Feed
from tamis.client.retries import Attempts, Pause, Retries
from tamis.client.verbs import Verbs

T = TypeVar("T")


class AsyncClient(Verbs, AsyncDriver):
    """A client of the service at a URL, for asyncio; the arguments are those of `Client`."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._http = httpx2.AsyncClient(**options_of(url, key, timeout), verify=verify)
        self._retries = retries or Retries()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def perform(self, call: ServiceCall[T]) -> T:
        attempts = Attempts(call, self._retries)
        while True:
            try:
                answer = await self._http.send(request_of(self._http, call))
            except httpx2.TransportError as why:
                outcome: T | Pause = attempts.lost(why, sent=not isinstance(why, CONNECTING))
            else:
                outcome = attempts.answered(answer.status_code, answer.headers, answer.content)
            if not isinstance(outcome, Pause):
                return outcome
            await asyncio.sleep(outcome.seconds)

    async def publish_all(
        self, events: Iterable[AnyEvent] | AsyncIterable[AnyEvent], *, most: int = 1000
    ) -> AsyncIterator[PublishReceipt]:
        """Publish events as they come, so many in a request; gives the receipt of each request.

        Each request is published all or none.
        """
        batcher = EventBatcher(most)
        async for each in _each(events):
            full = batcher.add(each)
            if full is not None:
                yield await self.perform(full)
        rest = batcher.rest()
        if rest is not None:
            yield await self.perform(rest)

    async def backtest(self, condition: str, **options: Any) -> BacktestReport:
        """Back-test a condition and wait; the options are those of `start_backtest`."""
        report = await self.start_backtest(condition, **options)
        while report.matched is None:
            await asyncio.sleep(1.0)
            report = await self.show_backtest(report.id)
        return report

    async def subscriptions(
        self, *, q: str | None = None, owner: str | None = None
    ) -> AsyncIterator[SubscriptionInfo]:
        """All live subscriptions of the caller, page by page."""
        page = await self.list(q=q, owner=owner, most=1000)
        while True:
            for each in page.subscriptions:
                yield each
            if page.cursor is None:
                return
            page = await self.list(q=q, owner=owner, cursor=page.cursor, most=1000)

    async def notifications(
        self,
        subscription: Id | None = None,
        *,
        ticket: str | None = None,
        after: int | None = None,
        body: str | None = None,
        patience: float | None = None,
    ) -> AsyncIterator[ReceivedNotification]:
        """Follow notifications from a cursor on, endlessly.

        The client reconnects after a lost connection, and drops what the service repeats. To resume
        after a restart of your program, store the `cursor` of a notification. Without `after`, only
        new notifications come. `body` is the same as for `poll`. After `patience` seconds without
        the service, the client gives up.
        """
        feed = Feed(subscription, ticket, after, body, self._retries, patience)
        opening = feed.opening()
        if opening is not None:
            feed.opened(await self.perform(opening))
        while True:
            request = request_of(self._http, feed.connect(), SILENCE)
            try:
                answer = await self._http.send(request, stream=True)
                try:
                    if answer.status_code != httpx2.codes.OK:
                        pause = feed.refused(
                            answer.status_code, answer.headers, await answer.aread()
                        )
                    else:
                        feed.connected()
                        async for each in httpx2.EventSource(answer, None):
                            found = feed.received(each.event, each.id, each.data)
                            if found is not None:
                                yield found
                        pause = feed.lost(None)
                finally:
                    await answer.aclose()
            except httpx2.TransportError as why:
                pause = feed.lost(why)
            await asyncio.sleep(pause.seconds)

    def __repr__(self) -> str:
        return f"AsyncClient({str(self._http.base_url)!r})"

    def __getstate__(self) -> Any:
        raise TypeError("a client has open connections; make one in each process")


async def _each(events: Iterable[AnyEvent] | AsyncIterable[AnyEvent]) -> AsyncIterator[AnyEvent]:
    if isinstance(events, AsyncIterable):
        async for each in events:
            yield each
    else:
        for each in events:
            yield each
