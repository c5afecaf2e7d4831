"""Messages of gRPC from what the broker knows, and back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from tamis.broker.access.api_keys import ApiKey
from tamis.broker.bulk_subscribe import BulkAnswer, BulkSubscription
from tamis.broker.delivery.lease_warnings import EndingLease
from tamis.broker.delivery.outbox import DeadDelivery
from tamis.broker.delivery.sinks import Sink
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching.notification_reader import Page
from tamis.broker.sequence.requests import Receipt
from tamis.broker.state import StoredSubscription
from tamis.errors import BrokerError, EventError
from tamis.language.dialects import NATIVE
from tamis.service.problems import ProblemDetails
from tamis.service.routes.backtest_routes import BacktestAnswer
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


_WithSink = pb.SubscribeRequest | pb.UpdateRequest | pb.BulkSubscription


def sink_of(request: _WithSink) -> Sink | None:
    """Where notifications go."""
    return Sink.of(json_object(request.sink.json, "sink")) if request.HasField("sink") else None


def metadata_of(request: _WithSink) -> dict[str, Any] | None:
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


def moment_of(given: Timestamp, what: str) -> datetime:
    """A moment in a message."""
    try:
        return given.ToDatetime(UTC)
    except (ValueError, OverflowError) as why:
        raise BrokerError(f"{what}: {why}") from None


def _timestamp(microseconds: int) -> Timestamp:
    made = Timestamp()
    made.FromMicroseconds(microseconds)
    return made


class ReadBulk(NamedTuple):
    """Many subscriptions by their places, and why others are refused."""

    right: dict[int, BulkSubscription]
    wrong: dict[int, str]


def bulk_of(request: pb.SubscribeManyRequest, now: int) -> ReadBulk:
    """The subscriptions of a request; `now` is in microseconds since 1970."""
    read = ReadBulk({}, {})
    for at, each in enumerate(request.subscriptions):
        try:
            read.right[at] = _bulk_subscription(each, now)
        except BrokerError as why:
            read.wrong[at] = str(why)
    return read


def _bulk_subscription(each: pb.BulkSubscription, now: int) -> BulkSubscription:
    until = None
    if each.HasField("until"):
        until = int(moment_of(each.until, "until").timestamp() * 1e6)
    if each.HasField("lease"):
        seconds = each.lease.seconds + each.lease.nanos / 1e9
        if until is not None or not 0 < seconds < 1e9:
            raise BrokerError(
                "a subscription has until or lease, not both, and a lease is longer than 0 seconds"
            )
        until = now + int(seconds * 1e6)
    return BulkSubscription(
        each.condition,
        each.id if each.HasField("id") else None,
        until,
        each.owner if each.HasField("owner") else None,
        each.name if each.HasField("name") else None,
        each.language if each.HasField("language") else NATIVE,
        sink_of(each),
        metadata_of(each),
    )


def outcomes_of(answer: BulkAnswer, read: ReadBulk) -> pb.SubscribeManyResponse:
    """What became of many subscriptions, in the order in which they were sent."""
    places = list(read.right)
    found = {at: pb.BulkOutcome(error=why) for at, why in read.wrong.items()}
    for row, reason in answer.refused:
        found[places[row]] = pb.BulkOutcome(error=reason)
    for lease in answer.leases:
        made = pb.BulkOutcome(id=str(lease.id), ticket=lease.ticket, secret=lease.secret)
        if lease.until is not None:
            made.until.FromMicroseconds(lease.until)
        found[places[lease.row]] = made
    return pb.SubscribeManyResponse(outcomes=[found[at] for at in sorted(found)])


def ending_of(each: EndingLease) -> pb.EndingLease:
    """A lease that ends soon."""
    return pb.EndingLease(subscription=str(each.id), until=_timestamp(each.until))


def letter_of(each: DeadDelivery) -> pb.DeadLetter:
    """A notification that no attempt could deliver."""
    return pb.DeadLetter(
        id=each.id,
        subscription=str(each.subscription),
        sequence=each.sequence if each.sequence >= 0 else None,
        attempts=each.attempts,
        error=each.error,
        moment=_timestamp(each.moment),
    )


def key_of(each: ApiKey) -> pb.Key:
    """An API key, without its secret."""
    return pb.Key(id=each.id, name=each.name, roles=each.roles, created=_timestamp(each.created))


def backtest_of(answer: BacktestAnswer) -> pb.Backtest:
    """A back-test as over HTTP."""
    shown = pb.Backtest(
        id=answer.id,
        progress=answer.progress,
        events=answer.events,
        matched=answer.matched,
        dead=answer.dead,
        first=answer.first,
        end=answer.end,
    )
    for span in answer.over_time or ():
        made = shown.over_time.add(events=span.events, matched=span.matched)
        made.begin.FromDatetime(span.begin)
        made.end.FromDatetime(span.end)
    for sample in answer.samples or ():
        event = None if sample.event is None else sample.event.encode()
        shown.samples.add(sequence=sample.sequence, event=event)
    return shown


def new_values(text: bytes) -> list[str] | dict[str, str | list[str]]:
    """New values of a domain: names, or names with their parents."""
    try:
        return msgspec.json.decode(text, type=list[str] | dict[str, str | list[str]])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as why:
        raise BrokerError(f"values: {why}") from None
