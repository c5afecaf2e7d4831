"""What the sequencer is asked to do: publish events, change subscriptions, extend the schema.

A request is prepared in the thread of its caller: read and validated. The sequencer then judges a
change against what is live, in the order of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa

from tamis.broker.state import KnownRequest, StoredSubscription
from tamis.model.schema import Schema
from tamis.store.subscription_snapshot import Id

Answer = TypeVar("Answer")
Row = dict[str, Any]
"""A row of the table of changes."""


class PublishedEvent(NamedTuple):
    """An event, validated: what the log keeps."""

    text: str  # a JSON object
    source: str | None = None
    id: str | None = None
    time: int | None = None  # microseconds since 1970 UTC
    envelope: str | None = None  # other context attributes, a JSON object
    key: bytes | None = None  # of its source and id


class Receipt(NamedTuple):
    """Where published events are in the sequence."""

    numbers: list[int]  # one for each event; a duplicate has the number of the first
    duplicates: int


@dataclass(eq=False, slots=True)
class Request(Generic[Answer]):
    """Something to do, and the answer to come."""

    answer: Future[Answer] = field(default_factory=Future, init=False)


@dataclass(eq=False, slots=True)
class Publish(Request[Receipt]):
    """Publish events. They were prepared under a schema; `again` does so under another."""

    events: list[PublishedEvent]
    schema: Schema
    again: Callable[[Schema], list[PublishedEvent]]


@dataclass(eq=False, slots=True)
class Subscribe(Request[KnownRequest]):
    """Add a subscription. `again` checks its condition under another schema."""

    row: Row
    schema: Schema
    again: Callable[[Schema], object]
    most: int | None = None  # live subscriptions of the owner


@dataclass(eq=False, slots=True)
class SubscribeMany(Request[list[KnownRequest]]):
    """Add many subscriptions: rows of changes. `again` checks conditions under another schema."""

    table: pa.Table
    schema: Schema
    again: Callable[[Schema], object]
    most: int | None = None  # live subscriptions of an owner
    keyed: bool = False  # whether rows have request keys


@dataclass(eq=False, slots=True)
class Alter(Request[StoredSubscription | None]):
    """Change a live subscription.

    `judge` gets the subscription as it is, and returns the change as a row, or raises; None changes
    nothing.
    """

    id: Id
    judge: Callable[[StoredSubscription | None, Schema], Row | None]


@dataclass(eq=False, slots=True)
class Extend(Request[int]):
    """Extend the schema: `build` makes the next one of the present one."""

    build: Callable[[Schema], Schema]


@dataclass(eq=False, slots=True)
class Expire(Request[int]):
    """End the leases that are due; the answer says how many there were."""


@dataclass(eq=False, slots=True)
class Follow(Request[None]):
    """Take in what other services have appended to the same log."""


@dataclass(eq=False, slots=True)
class Stop(Request[None]):
    """End the sequencer, after everything that was asked before."""
