"""Events: what a publisher sends, validated against the schema (rules R1, R2 and R3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tamis.errors import EventError, suggestion
from tamis.model.domain import (
    DEPTH_LIMIT,
    Domain,
    Opaque,
    RefusalError,
    refused_element,
    show,
)
from tamis.model.dynamic import Dynamic, distinct
from tamis.model.open_event import LIST, collect, open_elements, open_values
from tamis.model.schema import EVENT_TYPE, IGNORE, Schema

_NO_ELEMENTS: Mapping[str, tuple[Event, ...]] = {}


class Event:
    """A consistent event: the set of values of each bound attribute, as a tuple.

    `values` binds `event_type`, except in an open schema. Values are in the normal form of their
    domain. `ignored` are the names that the schema does not know, if it ignores them. `elements`
    are the validated elements of each list of structs, which `values` has as published.
    """

    __slots__ = ("elements", "ignored", "schema", "values")

    def __init__(
        self,
        values: dict[str, tuple[Any, ...]],
        schema: Schema,
        ignored: tuple[str, ...] = (),
        elements: Mapping[str, tuple[Event, ...]] = _NO_ELEMENTS,
    ) -> None:
        self.values = values
        self.schema = schema
        self.ignored = ignored
        self.elements = elements

    @property
    def types(self) -> tuple[str, ...]:
        """The event types of the event: those it names, or the default."""
        return self.values[EVENT_TYPE]

    @classmethod
    def of(cls, schema: Schema, given: Mapping[str, Any]) -> Event:
        """Validate `given`; an `EventError` names the event type, the attribute and the rule.

        An attribute with several values is a list; null means absent. Nested objects bind dotted
        attributes: `{"seller": {"rating": 4}}` binds `seller.rating`.
        """
        if isinstance(given, Event):
            if given.schema is schema or given.schema == schema:
                return given
            raise EventError(
                f"the event was validated against version {given.schema.version} of a schema, not "
                f"against version {schema.version}; pass the event as published"
            )
        if not isinstance(given, Mapping):
            hint = "; a table goes to match_batch" if hasattr(given, "__arrow_c_stream__") else ""
            if type(given).__name__ == "Series":  # a row of pandas
                hint = "; pass its to_dict()"
            raise EventError(
                f"an event is an object of attributes, got {type(given).__name__}{hint}", rule="R1"
            )
        if schema.is_open:
            values = open_values(schema, given)
            if not schema.lists:
                return cls(values, schema)
            listed = open_elements(schema, given)
            return cls(values, schema, (), _open_elements(schema, listed))
        attributes = schema.attributes
        ignored: list[str] = []
        if not attributes.keys() >= given.keys():
            given = _flatten(schema, given, ignored)
        types = _types(schema, given.get(EVENT_TYPE))
        view = schema.view(types)
        values = {EVENT_TYPE: types}
        for name, raw in given.items():
            if name == EVENT_TYPE or (
                raw is None and not (name in view and isinstance(attributes[name], Dynamic))
            ):
                continue
            use = view.get(name)
            several = isinstance(raw, (list, tuple, set, frozenset))
            if several and not raw:
                continue  # no value: absent
            if use is None:
                if several and all(item is None for item in raw):
                    continue
                if schema.unknown == IGNORE:
                    ignored.append(name)
                    continue
                raise _wrong(types, f"has no attribute {name!r}", "R3", name)
            domain = attributes[name]
            if several and (use.multiple or not isinstance(domain, Opaque)):
                bound = _distinct(domain, raw, name, types)
                if len(bound) > 1 and not use.multiple:
                    wrong = f"{name!r} is unique but has {len(bound)} values"
                    raise _wrong(types, wrong, "R2", name)
                if bound:
                    values[name] = bound
            else:
                try:
                    values[name] = (domain.value(raw),)
                except RefusalError as why:
                    raise _wrong(types, f"{name!r}: {why}", "R2", name) from None
        for name, use in view.items():
            if use.mandatory and name not in values:
                wrong = f"{name!r} is mandatory but the event does not bind it"
                raise _wrong(types, wrong, "R2", name)
        if not schema.lists:
            return cls(values, schema, tuple(ignored))
        elements: dict[str, tuple[Event, ...]] = {}
        for name in schema.lists & values.keys():
            elements[name] = values[name]
            raw = given[name]
            values[name] = (
                (raw,)
                if isinstance(raw, Mapping)
                else tuple(each for each in raw if each is not None)
            )
            ignored += [f"{name}.{each}" for every in elements[name] for each in every.ignored]
        return cls(values, schema, tuple(ignored), elements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self.values == other.values

    def __hash__(self) -> int:
        return hash(tuple(self.values))

    def __repr__(self) -> str:
        return f"Event({self.values!r})"


def _open_elements(schema: Schema, listed: dict[str, list[Any]]) -> dict[str, tuple[Event, ...]]:
    """The elements of lists of structs in an open schema; other values are left out."""
    found: dict[str, tuple[Event, ...]] = {}
    for name, given in listed.items():
        domain = schema.attributes[name]
        objects = [each if isinstance(each, Mapping) else None for each in given]
        try:
            bound = distinct_values(domain, objects)
        except RefusalError as why:
            shown = name.removesuffix(LIST)
            raise EventError(f"{shown!r}: {why}", rule="R2", attribute=shown) from None
        if bound:
            found[name] = bound
    return found


def _types(schema: Schema, given: object) -> tuple[str, ...]:
    listed: Iterable[Any] = given if isinstance(given, (list, tuple, set, frozenset)) else (given,)
    named = [name for name in listed if name is not None]
    if not named:
        if schema.default_event_type is not None:
            return (schema.default_event_type,)
        raise EventError(
            f"the event names no event type; bind {EVENT_TYPE!r} to one or more of: "
            + ", ".join(list(schema.event_types)[:12]),
            rule="R1",
            attribute=EVENT_TYPE,
        )
    for name in named:
        if not isinstance(name, str):
            raise EventError(
                f"{show(name)} is not an event type, expected text", rule="R1", attribute=EVENT_TYPE
            )
    return tuple(dict.fromkeys(named))


def _distinct(domain: Domain, raw: Any, name: str, types: tuple[str, ...]) -> tuple[Any, ...]:
    try:
        return distinct_values(domain, raw)
    except RefusalError as why:
        raise _wrong(types, f"{name!r}: {why}", "R2", name) from None


def distinct_values(domain: Domain, raw: Collection[Any]) -> tuple[Any, ...]:
    """The distinct values of a list, in the order given, without nulls; null may be dynamic."""
    dynamic = isinstance(domain, Dynamic)
    try:
        bound = [domain.value(item) for item in raw if item is not None or dynamic]
    except RefusalError:
        raise refused_element(domain, raw) from None
    if dynamic:
        return distinct(bound)
    if not domain.hashable:  # for example a JSON value
        return tuple(bound)
    return tuple(dict.fromkeys(bound))


def _flatten(schema: Schema, given: Mapping[str, Any], ignored: list[str]) -> dict[str, Any]:
    """Bind dotted attributes from nested objects; refuse or ignore unknown names."""
    flat: dict[str, Any] = {}
    ignores = schema.unknown == IGNORE
    stack: list[tuple[str, Any, int]] = [(name, raw, 1) for name, raw in given.items()]
    while stack:
        name, raw, depth = stack.pop()
        if name in schema.attributes:
            _bind(schema, name, raw, flat)
        elif raw is None or (isinstance(raw, (list, tuple)) and all(v is None for v in raw)):
            continue
        elif ignores and name not in schema.stems:
            ignored.append(name if isinstance(name, str) else show(name))
        elif isinstance(raw, Mapping) and isinstance(name, str):
            if depth > DEPTH_LIMIT:
                raise EventError(
                    f"the event is nested more than {DEPTH_LIMIT} levels deep", rule="R3"
                )
            stack.extend((f"{name}.{inner}", below, depth + 1) for inner, below in raw.items())
        elif ignores and not _gather(schema, name, raw, flat):
            ignored.append(name)  # a value where the schema has an object
        elif ignores:
            continue
        else:
            inner = [each for each in schema.attributes if each.startswith(f"{name}.")]
            hint = f"; it is an object, with {inner[0]}" if inner else None
            raise EventError(
                f"unknown attribute {show(name)}{hint or suggestion(name, schema.attributes)}",
                rule="R3",
                attribute=name if isinstance(name, str) else None,
            )
    return flat


def _gather(schema: Schema, name: str, raw: Any, flat: dict[str, Any]) -> bool:
    """Bind multiple attributes to the values of all elements of a list of objects."""
    if not isinstance(raw, (list, tuple)):
        return False
    uses = schema.event_types.values()
    found = {
        each: values
        for each, values in collect(schema.paths, schema.attributes, raw, name).items()
        if any(each in view and view[each].multiple for view in uses)
    }
    for each, values in found.items():
        _bind(schema, each, values, flat)
    return bool(found)


def _bind(schema: Schema, name: str, raw: Any, flat: dict[str, Any]) -> None:
    """Bind an attribute, which may have several spellings; null is absent, or a dynamic value."""
    if name not in flat:
        flat[name] = raw
        return
    dynamic = isinstance(schema.attributes[name], Dynamic)
    if dynamic or not (raw is None or flat[name] is None):
        raise EventError(f"{name!r} is bound twice", rule="R2", attribute=name)
    flat[name] = flat[name] if raw is None else raw


def _wrong(types: tuple[str, ...], why: str, rule: str, name: str) -> EventError:
    return EventError(f"event type {' + '.join(types)}: {why}", rule=rule, attribute=name)
