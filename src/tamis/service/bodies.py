"""Bodies of publishes, turned into events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from tamis.broker.cloud_events.read_cloud_event import (
    read_batch,
    read_cloud_event,
    with_attributes,
)
from tamis.broker.cloud_events.write_cloud_event import CLOUD_EVENT
from tamis.broker.incoming import IncomingEvent
from tamis.errors import EventError
from tamis.service.problems import HttpError

JSON, NDJSON = "application/json", "application/x-ndjson"
BATCH = "application/cloudevents-batch+json"
TYPES = (JSON, NDJSON, CLOUD_EVENT, BATCH)
Headers = Iterable[tuple[bytes, bytes]]
_PREFIX = b"ce-"
_objects = msgspec.json.Decoder(list[msgspec.Raw])


def events_in(body: bytes, headers: Headers) -> list[IncomingEvent]:
    """The events of a request: of its body, and of its headers if they are of a CloudEvent.

    `headers` are as ASGI has them: bytes, with names in lower case.
    """
    content_type, context = None, False
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name[:3] == _PREFIX:
            context = True
        elif name == b"content-encoding" and value.strip().lower() != b"identity":
            raise HttpError(415, "compressed bodies are not read; leave Content-Encoding out")
    if content_type == b"application/json" and not context:  # nearly always
        return _plain_events(body)
    written = JSON if content_type is None else content_type.decode("latin-1")
    kind = written.partition(";")[0].strip().lower()
    if kind == CLOUD_EVENT:
        return [read_cloud_event(body)]
    if kind == BATCH:
        return read_batch(body)
    if context and not kind.startswith("application/cloudevents"):
        return [_binary_event(body, headers, None if content_type is None else written)]
    if kind == NDJSON:
        return [IncomingEvent(line) for line in body.splitlines() if line.strip()]
    if kind != JSON:
        raise HttpError(
            415,
            f"send events as {' or '.join(TYPES)}, not as {written!r}; curl sends JSON with --json",
        )
    return _plain_events(body)


def _plain_events(body: bytes) -> list[IncomingEvent]:
    """One JSON object, or an array of objects."""
    if body.lstrip()[:1] != b"[":
        return [IncomingEvent(body)]
    try:
        return [IncomingEvent(bytes(each)) for each in _objects.decode(body)]
    except (msgspec.DecodeError, RecursionError) as why:
        raise EventError(f"the body is not a JSON array: {why}") from None


def _binary_event(body: bytes, headers: Headers, content_type: str | None) -> IncomingEvent:
    """A CloudEvent in binary mode: the context attributes are headers, the body is the data."""
    attributes: dict[str, Any] = {} if content_type is None else {"datacontenttype": content_type}
    for header, value in headers:
        if header[:3] != _PREFIX:
            continue
        name = header[3:].decode("latin-1")
        if name in attributes:
            raise EventError(f"the header ce-{name} is there twice", attribute=name)
        attributes[name] = _header_text(name, value)
    return with_attributes(attributes, body if body.strip() else None)


def _header_text(name: str, value: bytes) -> str:
    """The text of a header: percent-encoded UTF-8, perhaps in quotes."""
    quoted = value.strip()
    if quoted[:1] == b'"' and quoted[-1:] == b'"' and len(quoted) > 1:
        quoted = quoted[1:-1].replace(b'\\"', b'"').replace(b"\\\\", b"\\")
    try:
        return unquote_to_bytes(quoted).decode()
    except UnicodeDecodeError:
        raise EventError(
            f"the header ce-{name} is not percent-encoded UTF-8", attribute=name
        ) from None
