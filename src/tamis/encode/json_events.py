"""Events of JSON for schemas with dynamic attributes, which no Arrow column can hold.

They are kept as they came. Engines that read them may know different attributes of an open schema;
so what is invalid in an event does not depend on the attributes that conditions mention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tamis.encode.batch import EventBatch
from tamis.encode.encoder import Encoder
from tamis.errors import EventError
from tamis.files.arrays import Int64s
from tamis.model.domain import INT_HIGH, INT_LOW, TEXT_LIMIT, RefusalError, Text, show
from tamis.model.dynamic import Dynamic
from tamis.model.elements.structs import Structs
from tamis.model.event import Event
from tamis.model.frame_values import without_nulls
from tamis.model.schema import Schema

_TEXT = Text()


def has_dynamic(schema: Schema) -> bool:
    """Whether events of the schema have values that no Arrow column can hold."""
    return any(
        isinstance(each, Dynamic) or (isinstance(each, Structs) and has_dynamic(each.element))
        for each in schema.attributes.values()
    )


def known_values(schema: Schema, event: Mapping[str, Any], within: str = "") -> Mapping[str, Any]:
    """An event without what its schema ignores: a later schema may have attributes of that name."""
    found: dict[str, Any] = {}
    for name, value in event.items():
        path = f"{within}{name}"
        if path in schema.attributes:
            found[name] = value
        elif isinstance(value, Mapping):
            found[name] = known_values(schema, value, f"{path}.")
    return found


def encode_events(
    encoder: Encoder, events: Sequence[Mapping[str, Any]], moments: Int64s | int | None = None
) -> EventBatch:
    """A batch of events; an error names the first row that is invalid."""
    found = []
    for row, each in enumerate(events):
        try:
            found.append(Event.of(encoder.schema, each))
        except EventError as why:
            raise why.at_row(row) from None
    return encoder.events(found, moments)


def refusal(schema: Schema, event: Any) -> str | None:
    """Why an event is invalid; None if it is valid."""
    try:
        Event.of(schema, event)
    except EventError as why:
        return str(why)
    return wrong_value(event) if schema.is_open else None


def wrong_value(event: Mapping[str, Any]) -> str | None:
    """A number or a text that no attribute takes, anywhere in an event."""
    stack: list[Any] = [event]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if not value.isascii() or len(value) > TEXT_LIMIT:
                try:
                    _TEXT.value(value)
                except RefusalError as why:
                    return str(why)
        elif isinstance(value, Mapping):
            stack.extend(value.values())
        elif isinstance(value, (list, tuple)):
            stack.extend(value)
        elif isinstance(value, float) and not math.isfinite(value):
            return f"{value} is not a finite number"
        elif isinstance(value, int) and not INT_LOW <= value <= INT_HIGH:
            return f"{show(value)} is outside the 64-bit integers (-2^63 to 2^63 - 1)"
    return None


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as events. A table has a place for every attribute: null is absent."""
    return [without_nulls(row) for row in table.to_pylist()]
