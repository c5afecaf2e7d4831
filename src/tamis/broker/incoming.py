"""Events as they come in: JSON objects, alone or with the context attributes of a CloudEvent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from tamis.broker.cloud_events.bound_context import context_members, spliced
from tamis.broker.cloud_events.context_attributes import DATA, check_envelope
from tamis.broker.preparation import DEPTH, checked_text, json_depth
from tamis.broker.sequence.dedup import dedup_key
from tamis.broker.sequence.requests import PublishedEvent
from tamis.encode.json_events import wrong_value
from tamis.errors import BrokerError, EventError
from tamis.model.schema import Schema

_NO_CONTEXT = (None,) * 4


class IncomingEvent(NamedTuple):
    """An event before it is checked."""

    text: str | bytes  # a JSON object
    source: str | None = None
    id: str | None = None
    time: int | None = None  # microseconds since 1970 UTC
    envelope: dict[str, Any] | None = None  # other context attributes, by name

    @property
    def has_context(self) -> bool:
        return self[1:] != _NO_CONTEXT


def prepare_events(
    events: Iterable[IncomingEvent], schema: Schema, most_bytes: int, most_attributes: int
) -> list[PublishedEvent]:
    """Check events under a schema; raise `EventError` with the place of the first bad one."""
    prepared = []
    for row, event in enumerate(events):
        try:
            prepared.append(_prepare(event, schema, most_bytes, most_attributes))
        except EventError as why:
            raise why.at_row(row) from None
    return prepared


def _prepare(
    event: IncomingEvent, schema: Schema, most_bytes: int, most_attributes: int
) -> PublishedEvent:
    try:
        for each in (event.source, event.id):
            checked_text(each, "the source or id of the event")
        encoded = event.text if isinstance(event.text, bytes) else event.text.encode()
    except (BrokerError, UnicodeEncodeError) as why:
        raise EventError(str(why)) from None
    if event.time is not None and not -(2**63) <= event.time < 2**63:
        raise EventError(f"the time of the event is out of range: {event.time}")
    found = _decoded(encoded, most_bytes)
    envelope = None
    if event.has_context:
        added = context_members(found, event, schema)
        if added:
            found = {**added, **found}
            encoded = spliced(added, encoded)
        envelope = _envelope(event.envelope, list(added))
        if (
            sum(map(len, (encoded, envelope or "", event.source or "", event.id or "")))
            > most_bytes
        ):
            raise EventError(f"the event has more than {most_bytes:,} bytes with its context")
    if len(found) > most_attributes:
        raise EventError(f"the event has more than {most_attributes:,} attributes")
    if json_depth(encoded) > DEPTH:
        raise EventError(f"the event is nested deeper than {DEPTH} levels")
    schema.event(found)
    if schema.is_open and (wrong := wrong_value(found)):  # matching would refuse it, unseen
        raise EventError(wrong)
    text = encoded.decode()
    both = event.source is not None and event.id is not None
    return PublishedEvent(
        text,
        event.source,
        event.id,
        event.time,
        envelope,
        dedup_key(str(event.source), str(event.id)) if both else None,
    )


def _decoded(encoded: bytes, most_bytes: int) -> dict[str, Any]:
    size = len(encoded)
    if size > most_bytes:
        raise EventError(f"the event has {size:,} bytes, more than {most_bytes:,}")
    try:
        found = msgspec.json.decode(encoded)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as why:
        raise EventError(f"the event is not JSON: {why}") from None
    if not isinstance(found, dict):
        raise EventError(f"an event is a JSON object, got {type(found).__name__}")
    return found


def _envelope(given: dict[str, Any] | None, added: list[str]) -> str | None:
    """The envelope as the log keeps it, with what was added to the data."""
    known = {} if given is None else dict(given)
    has_data = known.pop(DATA, added) is not None
    check_envelope(known)
    if added or not has_data:
        known[DATA] = added if has_data else None
    if not known:
        return None
    try:
        return msgspec.json.encode(known).decode()
    except UnicodeEncodeError as why:
        raise EventError(f"the envelope of the event is not text: {why}") from None
