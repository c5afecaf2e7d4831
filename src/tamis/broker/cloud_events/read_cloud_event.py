"""CloudEvents as they come in: in the JSON format, or as attributes with data beside them."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any

import msgspec

from tamis.broker.cloud_events.context_attributes import (
    DATA,
    check_attributes,
    check_content_type,
    microseconds_of,
)
from tamis.broker.incoming import IncomingEvent
from tamis.errors import EventError

_BASE64 = "data_base64"
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_batch = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_value = msgspec.json.Decoder()


def read_cloud_event(body: bytes) -> IncomingEvent:
    """One CloudEvent in the JSON format."""
    try:
        members = _object.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as why:
        raise EventError(f"the body is not a CloudEvent in JSON: {why}") from None
    return _from_members(members)


def read_batch(body: bytes) -> list[IncomingEvent]:
    """A JSON array of CloudEvents; an error has the place of the bad one."""
    try:
        batch = _batch.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as why:
        raise EventError(f"the body is not a JSON array of CloudEvents: {why}") from None
    found = []
    for row, members in enumerate(batch):
        try:
            found.append(_from_members(members))
        except EventError as why:
            why.row = row
            raise
    return found


def with_attributes(attributes: dict[str, Any], data: bytes | None) -> IncomingEvent:
    """A CloudEvent of its context attributes and its data, which is JSON."""
    check_attributes(attributes)
    check_content_type(attributes.get("datacontenttype"))
    envelope = dict(attributes)
    source, id = envelope.pop("source"), envelope.pop("id")
    time = None if "time" not in envelope else microseconds_of(envelope["time"])
    if data is None:
        envelope[DATA] = None
    elif data.lstrip()[:1] != b"{":
        raise EventError(
            "the data of a CloudEvent is a JSON object here: its members are the attributes of the "
            "event",
            attribute=DATA,
        )
    return IncomingEvent(b"{}" if data is None else data, source, id, time, envelope)


def _from_members(members: dict[str, msgspec.Raw]) -> IncomingEvent:
    data = members.pop(DATA, None)
    encoded = members.pop(_BASE64, None)
    attributes: dict[str, Any] = {}
    for name, raw in members.items():
        try:
            value = _value.decode(raw)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as why:
            raise EventError(f"the context attribute {name!r}: {why}", attribute=name) from None
        if value is not None:  # null is the same as absent
            attributes[name] = value
    content = None if data is None or bytes(data) == b"null" else bytes(data)
    if encoded is not None and bytes(encoded) != b"null":
        if content is not None:
            raise EventError(f"a CloudEvent has data or {_BASE64}, not both", attribute=_BASE64)
        content = _decoded(encoded)
    return with_attributes(attributes, content)


def _decoded(encoded: msgspec.Raw) -> bytes:
    try:
        return b64decode(msgspec.json.decode(encoded, type=str), validate=True)
    except (msgspec.DecodeError, Base64Error, ValueError) as why:
        raise EventError(f"{_BASE64} is not base64: {why}", attribute=_BASE64) from None
