"""The client of the service."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

import httpx2

from tamis.client.answers import (
    BacktestReport,
    Id,
    PublishReceipt,
    ReceivedNotification,
    SubscriptionInfo,
)
from tamis.client.call import Driver, ServiceCall
from tamis.client.connection import CONNECTING, TIMEOUT, options_of, request_of
from tamis.client.event_batches import AnyEvent, EventBatcher
from tamis.client.feed import SILENCE, Feed
from tamis.client.retries import Attempts, Pause, Retries
from tamis.client.verbs import Verbs

T = TypeVar("T")


class Client(Verbs, Driver):
    """A client of the service at a URL. Threads may share it.

    Args:
        url: where the service is, such as `http://127.0.0.1:8080`.
        key: an API key.
        timeout: seconds to wait for an answer, beyond those that a poll asks to wait.
        retries: how often and how patiently to try again.
        verify: how certificates are verified; False: not at all.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._http = httpx2.Client(**options_of(url, key, timeout), verify=verify)
        self._retries = retries or Retries()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def perform(self, call: ServiceCall[T]) -> T:
        attempts = Attempts(call, self._retries)
        while True:
            try:
                answer = self._http.send(request_of(self._http, call))
            except httpx2.TransportError as why:
                outcome: T | Pause = attempts.lost(why, sent=not isinstance(why, CONNECTING))
            else:
                outcome = attempts.answered(answer.status_code, answer.headers, answer.content)
            if not isinstance(outcome, Pause):
                return outcome
            time.sleep(outcome.seconds)

    def publish_all(
        self, events: Iterable[AnyEvent], *, most: int = 1000
    ) -> Iterator[PublishReceipt]:
        """Publish events as they come, so many in a request; gives the receipt of each request.

        Each request is published all or none.
        """
        batcher = EventBatcher(most)
        for each in events:
            full = batcher.add(each)
            if full is not None:
                yield self.perform(full)
        rest = batcher.rest()
        if rest is not None:
            yield self.perform(rest)

    def backtest(self, condition: str, **options: Any) -> BacktestReport:
        """Back-test a condition and wait; the options are those of `start_backtest`."""
        report = self.start_backtest(condition, **options)
        while report.matched is None:
            time.sleep(1.0)
            report = self.show_backtest(report.id)
        return report

    def subscriptions(
        self, *, q: str | None = None, owner: str | None = None
    ) -> Iterator[SubscriptionInfo]:
        """All live subscriptions of the caller, page by page."""
        page = self.list(q=q, owner=owner, most=1000)
        while True:
            yield from page.subscriptions
            if page.cursor is None:
                return
            page = self.list(q=q, owner=owner, cursor=page.cursor, most=1000)

    def notifications(
        self,
        subscription: Id | None = None,
        *,
        ticket: str | None = None,
        after: int | None = None,
        body: str | None = None,
        patience: float | None = None,
    ) -> Iterator[ReceivedNotification]:
        """Follow notifications from a cursor on, endlessly.

        The client reconnects after a lost connection, and drops what the service repeats. To resume
        after a restart of your program, store the `cursor` of a notification. Without `after`, only
        new notifications come. `body` is the same as for `poll`. After `patience` seconds without
        the service, the client gives up.
        """
        feed = Feed(subscription, ticket, after, body, self._retries, patience)
        opening = feed.opening()
        if opening is not None:
            feed.opened(self.perform(opening))
        while True:
            request = request_of(self._http, feed.connect(), SILENCE)
            try:
                answer = self._http.send(request, stream=True)
                try:
                    if answer.status_code != httpx2.codes.OK:
                        pause = feed.refused(answer.status_code, answer.headers, answer.read())
                    else:
                        feed.connected()
                        for each in httpx2.EventSource(answer, None):
                            found = feed.received(each.event, each.id, each.data)
                            if found is not None:
                                yield found
                        pause = feed.lost(None)
                finally:
                    answer.close()
            except httpx2.TransportError as why:
                pause = feed.lost(why)
            time.sleep(pause.seconds)

    def __repr__(self) -> str:
        return f"Client({str(self._http.base_url)!r})"

    def __getstate__(self) -> Any:
        raise TypeError("a client has open connections; make one in each process")
