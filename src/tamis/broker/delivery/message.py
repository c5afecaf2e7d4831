"""Messages to sinks, and how an attempt to send one went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tamis.broker.delivery.outbox import PendingDelivery
from tamis.broker.delivery.sinks import Sink, message_body
from tamis.broker.sequence.clock import iso
from tamis.broker.state import KnownSubscription
from tamis.replay.notification_id import notification_id


class DeliveryAttempt(NamedTuple):
    """How one request went."""

    delivered: bool
    error: str = ""
    asked: float | None = None  # seconds, by Retry-After
    gone: bool = False  # the receiver wants no more

    @property
    def outcome(self) -> str:
        """In a word, for metrics."""
        return "delivered" if self.delivered else "gone" if self.gone else "failed"


@dataclass(eq=False, slots=True)
class SentPage:
    """A page of notifications whose messages are under way; the cursor is that after it."""

    cursor: int
    read: float  # when, by the monotonic clock
    open: set[OutgoingMessage]  # that are neither delivered nor stored
    counts: bool  # whether it had any


@dataclass(eq=False, slots=True)
class OutgoingMessage:
    """A message that waits or is under way."""

    pending: PendingDelivery
    subscription: KnownSubscription
    sink: Sink
    secrets: list[str]
    event: str | None  # JSON
    time: int  # when the event was put into the log, in microseconds since 1970
    page: SentPage | None = None  # that waits for it
    stored: bool = False  # whether the outbox has a row of it

    @property
    def url(self) -> str:
        return self.sink.url or ""

    def name(self, identity: str) -> str:
        """The same at each attempt, so that a receiver knows a message that it has."""
        id, number = self.pending.key
        if number >= 0:
            return notification_id(identity, number, id)
        return f"{identity[:12]}.lease{number}.{id}"

    def body(self) -> bytes:
        """The JSON that is sent."""
        return message_body(
            self.sink, self.pending.subscription, self.pending.sequence, iso(self.time), self.event
        )
