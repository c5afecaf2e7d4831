"""Events on their way to the service: as lines of JSON, or as CloudEvents if they have an id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from tamis.client import strict_json
from tamis.client.answers import PublishReceipt
from tamis.client.call import ServiceCall
from tamis.errors import EventError

BYTES = 8 << 20  # of a request, about
_PATH = "/v1/events"
_NDJSON = "application/x-ndjson"
_BATCH = "application/cloudevents-batch+json"


class SourcedEvent(NamedTuple):
    """An event with its origin, by which the service knows it when it is published again.

    Args:
        data: the attributes.
        source: who publishes, such as `/shop/7`.
        id: the id of the event, unique for its source.
        type: the event type, where the schema has several.
        time: when it happened.
    """

    data: Mapping[str, Any]
    source: str
    id: str
    type: str = "event"
    time: datetime | None = None


AnyEvent = Mapping[str, Any] | SourcedEvent


class EventBatcher:
    """Collects events until a request is full."""

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._rows: list[bytes] = []
        self._size = 0
        self._known = False  # whether events have sources and ids

    def add(self, event: AnyEvent) -> ServiceCall[PublishReceipt] | None:
        """Add an event; the request, if it is full now."""
        known = isinstance(event, SourcedEvent)
        if self._rows and known != self._known:
            raise EventError(
                "events with a source and an id are published apart from those without"
            )
        self._known = known
        row = encode_event(event)
        self._rows.append(row)
        self._size += len(row)
        return self.rest() if len(self._rows) >= self._most or self._size >= BYTES else None

    def rest(self) -> ServiceCall[PublishReceipt] | None:
        """The request with what was collected; None if there is nothing."""
        rows, self._rows, self._size = self._rows, [], 0
        return _publish(rows, self._known) if rows else None


def encode_event(event: AnyEvent) -> bytes:
    """An event as JSON: a plain one as it is, a `SourcedEvent` as a CloudEvent."""
    if not isinstance(event, SourcedEvent):
        return _encode(event)
    envelope: dict[str, Any] = {
        "specversion": "1.0",
        "source": event.source,
        "id": event.id,
        "type": event.type,
        "datacontenttype": "application/json",
        "data": event.data,
    }
    if event.time is not None:
        if event.time.tzinfo is None:
            raise EventError("the time of an event needs a time zone")
        envelope["time"] = event.time.isoformat()
    return _encode(envelope)


def publish(events: AnyEvent | Sequence[AnyEvent]) -> ServiceCall[PublishReceipt]:
    """Publish one event or a list of events, all or none; they are on disk when this returns.

    A `SourcedEvent` has a source and an id. The service publishes it once, so the client tries
    again if an answer is lost. A plain dict is sent once. If its answer is lost,
    `UnreachableError.sent` is true: whether it was published is unknown.
    """
    given: Iterable[AnyEvent] = [events] if isinstance(events, Mapping | SourcedEvent) else events
    batcher = EventBatcher(most=2**62)
    for each in given:
        full = batcher.add(each)
        if full is not None:
            raise EventError(f"one publish has at most {BYTES >> 20} MB; use publish_all for more")
    return batcher.rest() or _publish([], known=False)


def _publish(rows: list[bytes], known: bool) -> ServiceCall[PublishReceipt]:
    return ServiceCall(
        "POST",
        _PATH,
        msgspec.json.Decoder(PublishReceipt).decode,
        headers={"Content-Type": _BATCH if known else _NDJSON},
        content=b"[" + b",".join(rows) + b"]" if known else b"\n".join(rows),
        repeatable=known,
    )


def _encode(value: Mapping[str, Any]) -> bytes:
    try:
        return strict_json.encode(value)
    except (TypeError, ValueError, RecursionError) as why:
        raise EventError(f"the event cannot be written as JSON: {why}") from None
