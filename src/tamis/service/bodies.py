"""Bodies of requests, turned into events."""

from __future__ import annotations

import msgspec

from tamis.broker.incoming import IncomingEvent
from tamis.errors import EventError
from tamis.service.problems import HttpError

JSON, NDJSON = "application/json", "application/x-ndjson"
TYPES = (JSON, NDJSON)
_objects = msgspec.json.Decoder(list[msgspec.Raw])


def events_in(body: bytes, content_type: str | None) -> list[IncomingEvent]:
    """The events of a body: one JSON object, an array of objects, or a line for each."""
    kind = (content_type or JSON).partition(";")[0].strip().lower()
    if kind == NDJSON:
        return [IncomingEvent(line) for line in body.splitlines() if line.strip()]
    if kind != JSON:
        raise HttpError(
            415,
            f"events are sent as {' or '.join(TYPES)}, not as {content_type!r}; curl does so with "
            "--json",
        )
    if body.lstrip()[:1] != b"[":
        return [IncomingEvent(body)]
    try:
        return [IncomingEvent(bytes(each)) for each in _objects.decode(body)]
    except (msgspec.DecodeError, RecursionError) as why:
        raise EventError(f"the body is not a JSON array: {why}") from None
