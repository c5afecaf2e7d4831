"""A typed schema proposed from a sample of events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tamis.errors import EventError, SchemaError
from tamis.model.domain import INT_HIGH, INT_LOW, TEXT_LIMIT, check_name, parse_timestamp, show
from tamis.model.elements.structs import NESTING
from tamis.model.frame_values import UNNAMED_INDEX, without_missing
from tamis.model.schema import EVENT_TYPE, IGNORE, Schema, Use

_LISTS = (list, tuple, set, frozenset)
_EVENT = "event"
_DEPTH = 32  # levels of objects within objects that are looked at
_OPAQUE = "opaque"


class _Inferred(NamedTuple):
    """The domain of an attribute, as in a schema document."""

    domain: Any
    several: bool


class _Seen:
    """What a sample has under one name."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.several = False  # it is in a list
        self.inexact = False  # an integer without an exact double
        self.timed = True  # all texts are timestamps
        self.lists = False  # a list is in a list
        self.elements = False  # an object is in a list
        self.objects: list[Mapping[str, Any]] = []

    def add(self, value: Any) -> None:
        kind = _kind(value)
        if kind is None:
            return
        self.kinds.add(kind)
        if kind == "integer":
            self.inexact |= int(float(value)) != value
        elif kind == "text":
            self.timed = self.timed and not isinstance(parse_timestamp(value), str)

    def inferred(self, depth: int) -> _Inferred | None:
        """The domain that has all values; None if there is no value but objects of the event."""
        if self.lists or _OPAQUE in self.kinds:
            return _Inferred(_OPAQUE, self.several)
        if self.kinds:
            return _Inferred("dynamic" if self.objects else self._scalar(), self.several)
        if not self.elements:
            return None
        attributes = _attributes(self.objects, depth + 1)
        if not attributes or depth == NESTING:
            return _Inferred(_OPAQUE, True)
        several = [name for name, each in attributes.items() if each.several]
        return _Inferred(
            {
                "kind": "structs",
                "attributes": {name: each.domain for name, each in attributes.items()},
                "multiple": several,
            },
            True,
        )

    def _scalar(self) -> str:
        if self.kinds <= {"text", "timestamp"}:
            return "timestamp" if self.timed else "text" if self.kinds == {"text"} else "dynamic"
        if self.kinds == {"integer", "decimal"} and not self.inexact:
            return "decimal"
        return next(iter(self.kinds)) if len(self.kinds) == 1 else "dynamic"


def infer_schema(events: Any, name: str = _EVENT) -> Schema:
    """A schema that accepts every event of a sample; `name` names the event type.

    Names with dots are paths into nested objects. A list of objects becomes a list of structs, and
    an attribute with another list is multiple. An attribute with values of several kinds is
    dynamic, and one with lists in lists is opaque. An attribute without any value is left out; null
    and missing values such as NaN do not count as values. If events bind `event_type`, its
    values are the event types, and `name` is the type of events that do not.
    """
    sample = [without_missing(event) for event in _events(events)]
    for row, event in enumerate(sample):
        if not isinstance(event, Mapping):
            raise EventError(
                f"an event is an object of attributes, got {type(event).__name__}"
            ).at_row(row)
    types = _event_types(sample, name)
    attributes = _attributes(sample, 0)
    attributes.pop(EVENT_TYPE, None)
    # What no domain takes is found by trying: a number too large, an attribute bound twice.
    settled = False
    while not settled:
        settled, schema = True, _schema(attributes, types, name)
        for event in sample:
            while wrong := _refused(schema, event):
                settled = False
                if attributes[wrong].domain == _OPAQUE:
                    del attributes[wrong]
                else:
                    attributes[wrong] = _Inferred(_OPAQUE, attributes[wrong].several)
                schema = _schema(attributes, types, name)
    return schema


def _schema(attributes: Mapping[str, _Inferred], types: Sequence[str], name: str) -> Schema:
    uses = {path: str(Use(False, each.several)) for path, each in attributes.items()}
    return Schema.from_dict(
        {
            "attributes": {path: each.domain for path, each in attributes.items()},
            "event_types": dict.fromkeys(types, uses),
            "default_event_type": name if name in types else None,
            "unknown": IGNORE,
        }
    )


def _refused(schema: Schema, event: Mapping[str, Any]) -> str | None:
    """The attribute that makes the schema refuse the event."""
    try:
        schema.event(event)
    except EventError as why:
        if why.attribute not in schema.attributes or why.attribute == EVENT_TYPE:
            raise
        return why.attribute
    return None


def _event_types(sample: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """The event types that events name, and `name` if one event names none."""
    types: dict[str, None] = {}
    for row, event in enumerate(sample):
        given = event.get(EVENT_TYPE)
        named = [
            each for each in (given if isinstance(given, _LISTS) else [given]) if each is not None
        ]
        for each in named or [name]:
            if not _is_name(each):
                raise SchemaError(
                    f"event {row}: {EVENT_TYPE!r} is {show(each)}; in a declared schema it is the "
                    "name of an event type, and the open schema takes it as it is"
                )
            types[each] = None
    return list(types or [name])


def _attributes(objects: Iterable[Mapping[str, Any]], depth: int) -> dict[str, _Inferred]:
    """The attributes of events, or of elements that are in so many lists."""
    seen: dict[str, _Seen] = {}
    for each in objects:
        _look(each, seen)
    found = {path: each.inferred(depth) for path, each in seen.items()}
    known = {path: each for path, each in found.items() if each is not None}
    return {  # a nested object could bind either of two: the outer one is the attribute then
        path: each
        for path, each in known.items()
        if path != EVENT_TYPE
        and not any(path[:at] in known for at, mark in enumerate(path) if mark == ".")
    }


def _look(event: Mapping[str, Any], seen: dict[str, _Seen]) -> None:
    """Note the values of one event or element."""
    stack: list[tuple[str, Any, int]] = [(k, v, 1) for k, v in reversed([*event.items()])]
    while stack:
        path, value, depth = stack.pop()
        if not _is_name(path):
            continue
        found = seen.setdefault(path, _Seen())
        if isinstance(value, _LISTS):
            found.several = True
            for item in value:
                if isinstance(item, Mapping):
                    found.objects.append(item)
                    found.elements = True
                elif isinstance(item, _LISTS):
                    found.lists = True
                else:
                    found.add(item)
        elif isinstance(value, Mapping):
            found.objects.append(value)
            if depth < _DEPTH:
                inner = [(f"{path}.{key}", below, depth + 1) for key, below in value.items()]
                stack.extend(reversed(inner))
        else:
            found.add(value)


def _is_name(path: object) -> bool:
    try:
        check_name("", path)
    except SchemaError:
        return False
    return True


def _kind(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if INT_LOW <= value <= INT_HIGH else _OPAQUE
    if isinstance(value, float) or hasattr(value, "is_finite"):
        return "decimal"
    if isinstance(value, str):
        return "text" if len(value) <= TEXT_LIMIT // 4 else _OPAQUE
    return "timestamp" if hasattr(value, "isoformat") else _OPAQUE


def _events(given: Any) -> Iterator[Any]:
    """Events from dicts, lines of JSON, an Arrow table or a DataFrame."""
    if hasattr(given, "__arrow_c_stream__"):
        yield from _rows(given)
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


def _rows(table: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow table or a DataFrame."""
    import pyarrow as pa

    try:
        found = pa.table(table)
        kept = [name for name in found.column_names if not UNNAMED_INDEX.fullmatch(name)]
        rows: list[dict[str, Any]] = found.select(kept).to_pylist()
    except (pa.ArrowException, TypeError, ValueError) as why:  # a column of mixed types
        if not hasattr(table, "to_dict"):
            raise EventError(f"the table cannot be read ({why}); give its rows as dicts") from None
        rows = table.to_dict("records")
    return rows
