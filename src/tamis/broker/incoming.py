"""Events as they come in: JSON objects, alone or with what a CloudEvent says about them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tamis.broker.preparation import checked_text
from tamis.broker.sequence.dedup import dedup_key
from tamis.broker.sequence.requests import PublishedEvent
from tamis.errors import BrokerError, EventError
from tamis.model.schema import Schema

DEPTH = 64
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]')  # strings are skipped whole


class IncomingEvent(NamedTuple):
    """An event before it is checked."""

    text: str | bytes  # a JSON object
    source: str | None = None
    id: str | None = None
    time: int | None = None  # microseconds since 1970 UTC
    envelope: dict[str, str] | None = None  # other context attributes


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
    envelope = json.dumps(event.envelope, ensure_ascii=False) if event.envelope else None
    try:
        for each in (event.source, event.id, envelope):
            checked_text(each, "what is said about the event")
        encoded = event.text if isinstance(event.text, bytes) else event.text.encode()
    except (BrokerError, UnicodeEncodeError) as why:
        raise EventError(str(why)) from None
    if event.time is not None and not -(2**63) <= event.time < 2**63:
        raise EventError(f"the time of the event is out of range: {event.time}")
    size = len(encoded)
    if size > most_bytes:
        raise EventError(f"the event has {size:,} bytes, more than {most_bytes:,}")
    try:
        found = msgspec.json.decode(encoded)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as why:
        raise EventError(f"the event is not JSON: {why}") from None
    if not isinstance(found, dict):
        raise EventError(f"an event is a JSON object, got {type(found).__name__}")
    if len(found) > most_attributes:
        raise EventError(f"the event has more than {most_attributes:,} attributes")
    if _depth(encoded) > DEPTH:
        raise EventError(f"the event is nested deeper than {DEPTH} levels")
    schema.event(found)
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


def _depth(text: bytes) -> int:
    """How deep a JSON text is nested."""
    if text.count(b"{") + text.count(b"[") <= DEPTH:  # nearly always
        return 0
    depth = deepest = 0
    for each in _BRACKETS.findall(text):
        if each in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif each in b"}]":
            depth -= 1
    return deepest
