"""What the service answers with."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

Id = int | str


class PublishReceipt(msgspec.Struct, frozen=True):
    """Where published events are in the sequence. They are on disk."""

    first: int | None  # the number of the first event; None: there was no event
    count: int
    duplicates: int  # events that were published before, by their source and id


class LeaseReceipt(msgspec.Struct, frozen=True):
    """A new subscription. The ticket proves who subscribed, and is not shown again."""

    id: Id
    ticket: str
    until: datetime | None  # None: it does not end
    secret: str | None = None  # that signs its webhooks


class SubscriptionInfo(msgspec.Struct, frozen=True):
    """A live subscription."""

    id: Id
    condition: str
    language: str
    owner: str | None
    name: str | None
    until: datetime | None
    sink: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class SubscriptionList(msgspec.Struct, frozen=True):
    """Some live subscriptions, and where to read on."""

    subscriptions: list[SubscriptionInfo]
    cursor: Id | None  # None: these are the last


class ReceivedNotification(msgspec.Struct, frozen=True):
    """An event that matches a subscription."""

    sequence: int
    subscription: Id
    event: Any  # a dict; None if it is not sent, or not kept any more
    cursor: int = -1  # to read on from, once this notification is dealt with
    time: datetime | None = None  # when the event was put into the log


class NotificationPage(msgspec.Struct, frozen=True):
    """Some notifications, and where to read on."""

    notifications: list[ReceivedNotification]
    cursor: int


class ExplainedEvent(msgspec.Struct, frozen=True):
    """Whether an event satisfies a condition, and why."""

    matches: bool
    explanation: str


class KeyInfo(msgspec.Struct, frozen=True):
    """An API key, without its secret."""

    id: str
    name: str
    roles: list[str]
    created: datetime


class ExtensionReceipt(msgspec.Struct, frozen=True):
    """Where an extension of the schema is in the sequence. It holds for what comes after it."""

    sequence: int
    version: int


class BulkLine(msgspec.Struct, frozen=True):
    """The answer to one of many subscriptions: what `LeaseReceipt` has, or an error."""

    line: int  # from 1
    id: Id | None = None
    ticket: str | None = None
    until: datetime | None = None
    secret: str | None = None
    error: str | None = None


class DeadLetterInfo(msgspec.Struct, frozen=True):
    """A webhook that was given up."""

    id: int
    subscription: Id
    sequence: int | None  # of the event; None: a warning that a lease ends
    attempts: int
    error: str
    moment: datetime


class DeadLetterList(msgspec.Struct, frozen=True):
    """Some dead letters, and where to read on."""

    dead_letters: list[DeadLetterInfo]
    cursor: int | None  # None: these are the last


class BacktestSpan(msgspec.Struct, frozen=True):
    """The events of a back-test in a span of time."""

    begin: datetime
    end: datetime
    events: int
    matched: int


class BacktestSample(msgspec.Struct, frozen=True):
    """An event that a back-test has found."""

    sequence: int
    event: str | None  # JSON; None: it is not kept any more


class BacktestReport(msgspec.Struct, frozen=True):
    """A back-test. Without `matched` it is still running."""

    id: str
    progress: float  # from 0 to 1
    events: int
    matched: int | None = None
    dead: int | None = None  # events that are not valid
    first: int | None = None
    end: int | None = None
    over_time: list[BacktestSpan] | None = None
    samples: list[BacktestSample] | None = None
