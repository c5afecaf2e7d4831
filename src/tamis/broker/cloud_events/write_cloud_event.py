"""Events of the log as CloudEvents: as they came, or with an envelope that is made for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from tamis.broker.cloud_events.context_attributes import (
    DATA,
    EPOCH,
    JSON,
    SPECVERSION,
    written_time,
)
from tamis.broker.matching.notification_reader import TrimmedError, event_text
from tamis.errors import NotFoundError
from tamis.model.schema import EVENT_TYPE
from tamis.store.log import Log
from tamis.store.pack import appended

CLOUD_EVENT = "application/cloudevents+json"
_UNTYPED = "tamis.event"


class StoredEvent(NamedTuple):
    """An event of a log, with all that the log knows about it."""

    number: int
    text: str  # JSON, as conditions see it
    source: str | None
    id: str | None
    time: datetime | None
    envelope: str | None
    appended: datetime
    log: str  # its identity


def stored_event(log: Log, number: int) -> StoredEvent:
    """Read an event; raises if the number is not that of an event, or is not kept any more."""
    if 0 <= number < log.begin:
        raise TrimmedError(log.begin, f"events before {log.begin} are not kept any more")
    if 0 <= number < log.end:
        for first, table in log.events(number, number + 1):
            row = table.slice(number - first, 1)
            return StoredEvent(
                number,
                event_text(row),
                _reserved(row, "$source"),
                _reserved(row, "$id"),
                _reserved(row, "$time"),
                _reserved(row, "$envelope"),
                appended(table),
                str(log.identity),
            )
    raise NotFoundError(f"there is no event {number}")


def _reserved(row: pa.Table, name: str) -> Any:
    return row[name][0].as_py() if name in row.column_names else None


def cloud_event(event: StoredEvent) -> dict[str, Any]:
    """An event as a CloudEvent in the JSON format: members by name.

    An event that came as a CloudEvent has its context attributes as they came. Another one has its
    number as its id, the log as its source, and the time at which it was appended.
    """
    envelope: dict[str, Any] = {} if event.envelope is None else json.loads(event.envelope)
    members: dict[str, msgspec.Raw] = msgspec.json.decode(
        event.text.encode(), type=dict[str, msgspec.Raw]
    )
    added = envelope.pop(DATA, [])
    found: dict[str, Any] = {
        "specversion": SPECVERSION,
        "id": event.id or str(event.number),
        "source": event.source or f"urn:tamis:log:{event.log}",
        "type": envelope.get("type") or _event_type(members),
        "time": written_time((event.time or event.appended) - EPOCH),
    }
    if "type" not in envelope:
        found["datacontenttype"] = JSON
    elif event.time is None:
        del found["time"]  # the publisher gave none
    found |= envelope
    if added is not None:
        data = {name: raw for name, raw in members.items() if name not in added}
        found[DATA] = msgspec.Raw(event.text.encode()) if not added else data
    return found


def cloud_event_text(log: Log, number: int) -> str | None:
    """An event as a CloudEvent, as JSON; None if it is not kept any more."""
    try:
        return msgspec.json.encode(cloud_event(stored_event(log, number))).decode()
    except (TrimmedError, NotFoundError):
        return None


def _event_type(members: Mapping[str, msgspec.Raw]) -> str:
    given = members.get(EVENT_TYPE)
    named = None if given is None else msgspec.json.decode(given)
    first = named[0] if isinstance(named, list) and named else named
    return first if isinstance(first, str) and first else _UNTYPED
