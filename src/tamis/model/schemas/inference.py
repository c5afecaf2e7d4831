"""A typed schema proposed from a sample of events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tamis.errors import EventError, SchemaError
from tamis.model.domain import INT_HIGH, INT_LOW, TEXT_LIMIT, check_name, parse_timestamp
from tamis.model.schema import EVENT_TYPE, IGNORE, Schema, Use

_LISTS = (list, tuple, set, frozenset)
_EVENT = "event"


class _Seen:
    """What a sample has under one name."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.several = False  # it is in a list
        self.inexact = False  # an integer without an exact double
        self.timed = True  # all texts are timestamps

    def add(self, value: Any) -> None:
        kind = _kind(value)
        self.kinds.add(kind)
        if kind == "integer":
            self.inexact |= int(float(value)) != value
        elif kind == "text":
            self.timed = self.timed and not isinstance(parse_timestamp(value), str)

    @property
    def domain(self) -> str | None:
        """The domain that has all values; None if no value was seen."""
        kinds = self.kinds - {"null"}
        if kinds == {"text"}:
            return "timestamp" if self.timed else "text"
        if kinds == {"integer", "decimal"} and not self.inexact:
            return "decimal"
        if len(kinds) == 1:
            return next(iter(kinds))
        return "dynamic" if kinds else None


def infer_schema(events: Any, name: str = _EVENT) -> Schema:
    """A schema that a sample of events fits; `name` names the event type.

    Names with dots are paths into nested objects. Attributes with several values are multiple, and
    a path through a list of objects has those of all elements. Without a value, or only with null,
    an attribute is left out. If events bind `event_type`, its values are the event types.
    """
    seen: dict[str, _Seen] = {}
    types: dict[str, None] = {}
    for row, event in enumerate(_events(events)):
        if not isinstance(event, Mapping):
            raise EventError(f"an event is an object of attributes, got {type(event).__name__}")
        _look(event, seen, types, row)
    domains = {path: found.domain for path, found in seen.items() if found.domain is not None}
    stems = {path: [path[:at] for at, mark in enumerate(path) if mark == "."] for path in domains}
    objects = {stem for each in stems.values() for stem in each}
    # A nested object could bind either of two: the object alone is an attribute then.
    attributes = {
        path: "dynamic" if path in objects else domain
        for path, domain in domains.items()
        if not domains.keys() & stems[path]
    }
    uses = {path: str(Use(False, seen[path].several)) for path in attributes}
    return Schema.from_dict(
        {
            "attributes": attributes,
            "event_types": dict.fromkeys(types or [name], uses),
            "unknown": IGNORE,
        }
    )


def _look(
    event: Mapping[str, Any], seen: dict[str, _Seen], types: dict[str, None], row: int
) -> None:
    """Note the values of one event."""
    stack = [(key, value, False) for key, value in reversed([*event.items()])]
    while stack:
        path, value, listed = stack.pop()
        if not _is_name(path):
            continue
        if isinstance(value, _LISTS):
            stack.extend((path, item, True) for item in reversed([*value]))
        elif path == EVENT_TYPE and value is not None:
            if not isinstance(value, str):
                raise SchemaError(
                    f"event {row}: {EVENT_TYPE!r} is not text; it names the types of an event"
                )
            types[value] = None
        elif isinstance(value, Mapping) and value:
            inner = ((f"{path}.{key}", below, listed) for key, below in value.items())
            stack.extend(reversed([*inner]))
        else:
            found = seen.setdefault(path, _Seen())
            found.add(value)
            found.several |= listed


def _is_name(path: object) -> bool:
    try:
        check_name("", path)
    except SchemaError:
        return False
    return True


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if INT_LOW <= value <= INT_HIGH else "opaque"
    if isinstance(value, float):
        return "decimal"
    if isinstance(value, str):
        return "text" if len(value) <= TEXT_LIMIT // 4 else "opaque"
    return "timestamp" if hasattr(value, "isoformat") else "opaque"


def _events(given: Any) -> Iterator[Any]:
    """Events from dicts, lines of JSON, an Arrow table or a DataFrame."""
    if hasattr(given, "__arrow_c_stream__"):
        import pyarrow as pa

        try:
            yield from pa.table(given).to_pylist()
        except (pa.ArrowException, TypeError, ValueError) as why:
            raise EventError(f"the table cannot be read ({why}); give its rows as dicts") from None
        return
    if isinstance(given, (str, bytes)):
        given = given.splitlines()
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise EventError(
            "expected a list of events, lines of JSON, an Arrow table or a DataFrame, got "
            f"{type(given).__name__}"
        )
    for row, each in enumerate(given):
        if not isinstance(each, (str, bytes)):
            yield each
        elif each.strip():
            try:
                yield json.loads(each)
            except ValueError as why:
                raise EventError(f"line {row}: not JSON: {why}") from None
