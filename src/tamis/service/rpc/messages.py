"""Messages of gRPC from what the broker knows, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tamis.broker.delivery.sinks import Sink
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching.notification_reader import Page
from tamis.broker.sequence.requests import Receipt
from tamis.broker.state import StoredSubscription
from tamis.errors import BrokerError, EventError
from tamis.language.dialects import NATIVE
from tamis.service.problems import ProblemDetails
from tamis.service.rpc import tamis_pb2 as pb

DAY = timedelta(days=1)
BYTES = 1 << 20  # of events in a message, about; a client takes 4 MB unless it says more
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOO_LONG = timedelta(days=10_000)  # longer than the broker allows: it says what is allowed


def events_of(request: pb.PublishRequest) -> list[IncomingEvent]:
    """The events of a request."""
    found = []
    for row, each in enumerate(request.events):
        time = None
        if each.HasField("time"):
            try:
                time = each.time.ToMicroseconds()
            except ValueError as why:
                raise EventError(f"the time of the event: {why}", row=row) from None
        found.append(
            IncomingEvent(
                each.json,
                each.source if each.HasField("source") else None,
                each.id if each.HasField("id") else None,
                time,
                dict(each.context) or None,
            )
        )
    return found


def receipt_of(receipt: Receipt) -> pb.PublishResponse:
    """Where events are in the sequence."""
    numbers = receipt.numbers
    first = numbers[0] if numbers else None
    return pb.PublishResponse(first=first, count=len(numbers), duplicates=receipt.duplicates)


def refusal_of(found: ProblemDetails) -> pb.PublishResponse:
    """Why a group of a stream was refused."""
    problem = pb.Problem(status=found.status, detail=found.detail, json=found.body)
    return pb.PublishResponse(problem=problem)


def lease_of(request: pb.SubscribeRequest | pb.RenewRequest) -> timedelta | None:
    """How long a subscription lives; None: it does not end."""
    if request.endless:
        if request.HasField("lease"):
            raise BrokerError("a subscription has a lease or is endless, not both")
        return None
    if not request.HasField("lease"):
        return DAY
    seconds = request.lease.seconds + request.lease.nanos / 1e9
    return min(timedelta(seconds=max(-1e9, min(seconds, 1e9))), _TOO_LONG)


def sink_of(request: pb.SubscribeRequest | pb.UpdateRequest) -> Sink | None:
    """Where notifications go."""
    return Sink.of(json_object(request.sink.json, "sink")) if request.HasField("sink") else None


def metadata_of(request: pb.SubscribeRequest | pb.UpdateRequest) -> dict[str, Any] | None:
    """What a subscriber keeps with a subscription."""
    return json_object(request.metadata, "metadata") if request.HasField("metadata") else None


def json_object(text: bytes, what: str) -> dict[str, Any]:
    """A JSON object in a field of bytes."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as why:
        raise BrokerError(f"{what}: is not JSON: {why}") from None
    if not isinstance(found, dict):
        raise BrokerError(f"{what}: is a JSON object, not {type(found).__name__}")
    return found


def subscription_of(found: StoredSubscription) -> pb.Subscription:
    """A live subscription."""
    shown = pb.Subscription(
        id=str(found.id),
        condition=found.condition,
        language=found.language or NATIVE,
        owner=found.owner,
        name=found.name,
        metadata=None if found.metadata is None else found.metadata.encode(),
        sink=None if found.sink is None else pb.Sink(json=found.sink.encode()),
    )
    if found.until is not None:
        shown.until.FromDatetime(_EPOCH + timedelta(microseconds=found.until))
    return shown


def groups_of(page: Page) -> Iterator[pb.NotificationGroup]:
    """A page in messages that are not too long. Each has the cursor after it.

    The cursor is not beyond an event whose notifications go on in the next message.
    """
    rows: list[pb.Notification] = []
    size, cursor = 0, -1
    for at, each in enumerate(page.notifications):
        if rows and size >= BYTES:
            yield pb.NotificationGroup(notifications=rows, cursor=cursor)
            rows, size = [], 0
        event = None if each.event is None else each.event.encode()
        row = pb.Notification(
            sequence=each.sequence, subscription=str(each.subscription), event=event
        )
        if each.time is not None:
            row.time.FromMicroseconds(each.time)
        rows.append(row)
        size += 50 + len(event or b"")
        after = page.notifications[at + 1 : at + 2]
        last = not after or after[0].sequence != each.sequence
        cursor = each.sequence if last else max(cursor, each.sequence - 1)
    if rows:
        yield pb.NotificationGroup(notifications=rows, cursor=page.cursor)


def ids_of(found: Iterable[int | str]) -> pb.MatchResponse:
    """The subscriptions that an event matches."""
    return pb.MatchResponse(subscriptions=[str(each) for each in found])
