"""The context attributes that conditions see, as members of the event in the log.

A condition names them `ce.source`, `ce.subject` and so on. They become members of the JSON object
that the log keeps, when the event gets its place there. So inline matching, the stream of Spark and
back-tests read the same object, and nobody looks at the envelope to match.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

import msgspec

from tamis.broker.cloud_events.context_attributes import DATA, written_time
from tamis.errors import EventError
from tamis.model.schema import EVENT_TYPE, IGNORE, Schema, View

CONTEXT = "ce"
_READ_AS = ("integer", "decimal", "boolean")


class EventContext(Protocol):
    """What is known about an event beside its data."""

    @property
    def source(self) -> str | None: ...
    @property
    def id(self) -> str | None: ...
    @property
    def time(self) -> int | None: ...
    @property
    def envelope(self) -> Mapping[str, Any] | None: ...


def context_members(
    data: Mapping[str, Any], context: EventContext, schema: Schema
) -> dict[str, Any]:
    """The members to add to the data: the event type, and an object of context attributes.

    Those that the schema does not know stay in the envelope. They belong to the transport, so they
    are no reason to refuse an event.
    """
    added: dict[str, Any] = {}
    kind = (context.envelope or {}).get("type")
    if kind is not None and data.get(EVENT_TYPE) is None and _names_type(kind, schema):
        added[EVENT_TYPE] = kind
    if schema.is_open:
        known = _attributes(context)
    elif CONTEXT in schema.stems or CONTEXT in schema.attributes:
        view = _view(schema, data.get(EVENT_TYPE, added.get(EVENT_TYPE)))
        known = {
            name: _as_domain(value, schema, f"{CONTEXT}.{name}")
            for name, value in _attributes(context).items()
            if CONTEXT in view or f"{CONTEXT}.{name}" in view
        }
    else:
        return added
    if known:
        if CONTEXT in data:
            raise EventError(
                f"the data has a member {CONTEXT!r}, where the schema has the context attributes "
                "of a CloudEvent; give that member another name",
                attribute=CONTEXT,
            )
        added[CONTEXT] = known
    return added


def _attributes(context: EventContext) -> dict[str, Any]:
    """All context attributes that conditions may see."""
    found: dict[str, Any] = {"source": context.source, "id": context.id, **(context.envelope or {})}
    if context.time is not None:
        found["time"] = written_time(
            timedelta(microseconds=context.time)
        )  # one spelling, however it was written
    hidden = ("specversion", DATA)
    return {
        name: value for name, value in found.items() if value is not None and name not in hidden
    }


def spliced(added: Mapping[str, Any], data: bytes) -> bytes:
    """The JSON object `data` with more members before its own, which stay as they are written."""
    own = data.strip()[1:].lstrip()
    head = msgspec.json.encode(added)[:-1]
    return head + (b"" if own == b"}" else b",") + own


def _names_type(kind: str, schema: Schema) -> bool:
    """Whether `type` is the event type. What no schema knows is ignored, if there is a default."""
    known = schema.is_open or kind in schema.event_types
    return known or schema.unknown != IGNORE or schema.default_event_type is None


def _view(schema: Schema, given: Any) -> View:
    """The view of the event's types; what is wrong with them shows when the event is validated."""
    listed = given if isinstance(given, list) else [given]
    types = [name for name in listed if isinstance(name, str)]
    if not types and schema.default_event_type is not None:
        types = [schema.default_event_type]
    return schema.view(types)


def _as_domain(value: Any, schema: Schema, name: str) -> Any:
    """A number or boolean that a header could only write as text."""
    domain = schema.attributes.get(name)
    if not isinstance(value, str) or domain is None or domain.kind not in _READ_AS:
        return value
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return value
    return found if isinstance(found, int | float) else value
