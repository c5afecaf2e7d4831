"""The parts of the demonstration around a service: who publishes, subscribes and is notified."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from tamis.cli.demo.auction_traffic import LotPublisher, Subscribers, draw_conditions
from tamis.cli.demo.demo_service import DemoService
from tamis.cli.demo.matching_watch import MatchingWatch
from tamis.cli.demo.webhook_receiver import WebhookReceiver
from tamis.cli.reports.stream import Row
from tamis.client import Client
from tamis.errors import TamisError

_WEBHOOKS = 20  # subscriptions with a webhook
_BLOCK = 1_000_000  # of conditions, which no other subscription has
_NAME = "webhook"  # of those subscriptions
_WAIT = 2.0  # seconds that a read waits for a notification


class AuctionRun:
    """Subscribers, a publisher and a receiver of webhooks, as clients of one service."""

    def __init__(
        self, service: DemoService, data: Path, subscriptions: int, rate: float, churn: float
    ) -> None:
        self._service = service
        self.watch = MatchingWatch(data)
        self.receiver = WebhookReceiver()
        self._client = Client(service.url, key=service.new_key())
        self._begin = self.watch.begin
        live = self.watch.snapshot.items()
        permanent = [id for id, each in live if each.until is None]
        self.subscribers = Subscribers(self._client, subscriptions, churn, permanent)
        self.lots = LotPublisher(self._client, rate, seed=self.watch.end)
        self._webhooks: list[int | str] = []

    def subscribe(self) -> int:
        """Add the first subscriptions, some with a webhook; how many there are."""
        for left in self._client.subscriptions(q=_NAME):  # by a run that was killed
            if left.name == _NAME:
                self._client.cancel(left.id)
        for condition in draw_conditions(_BLOCK, datetime.now(UTC))[:_WEBHOOKS]:
            sink = self.receiver.url
            made = self._client.subscribe(condition, lease=None, name=_NAME, sink=sink)
            self._webhooks.append(made.id)
            if made.secret is not None:
                self.receiver.expect(made.secret)
        self.subscribers.add_some()
        return self.subscribers.permanent + len(self._webhooks)

    def has_notification(self) -> bool:
        """Wait for the first notification since the start, for a while."""
        if not self._service.is_running:
            raise TamisError(self._service.end_reason)
        if self.trouble is not None:
            raise TamisError(self.trouble)
        page = self._client.poll(after=self._begin - 1, wait=_WAIT, most=1)
        return bool(page.notifications)

    @property
    def trouble(self) -> str | None:
        return self.lots.trouble or self.subscribers.trouble

    def rows(self) -> Sequence[Row]:
        """Figures for the screen."""
        last = self.receiver.last
        told = f"received; the last: lot {last['sequence']}" if last else "received"
        return [
            ("webhooks", f"{self.receiver.received:,}", told),
            ("refused", f"{self.lots.broken:,}", self.lots.refusal.partition("\n")[0]),
        ]

    def stop(self) -> None:
        """Stop the traffic. Webhooks that nobody will receive any more end."""
        self.lots.stop()
        self.subscribers.stop()
        with suppress(TamisError):  # the service may be gone
            while self._webhooks:
                self._client.cancel(self._webhooks.pop())
        self._client.close()
        self.receiver.stop()
