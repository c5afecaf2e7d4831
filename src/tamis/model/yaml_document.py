"""YAML as documents need it: read in one pass, with limits that apply before anything is built.

Aliases and merge keys can make 500 bytes stand for billions of values. So the values that they
stand for are counted while the events of the parser arrive, and a document with too many is
refused. Plain text is resolved as in YAML 1.1, except that `12:30` is text: nobody means 750.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml
from yaml import events as parsed
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH = 100  # levels of nesting
_REPEATED = 100_000  # values that aliases and merge keys may stand for in all
_MERGE = "tag:yaml.org,2002:merge"
_TEXT = "tag:yaml.org,2002:str"
_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_PLAIN = (None, "!", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")
# Plain text that begins like this may be a number, a truth value, null, a date or a merge key.
_SPECIAL = frozenset("0123456789+-.~<=yYnNtTfFoO")


class _Built(NamedTuple):
    """A value, and how many values it is made of."""

    value: Any
    size: int


def read_yaml(text: str) -> Any:
    """Parse a document; a `yaml.YAMLError` or a `ValueError` says what is wrong."""
    loader = _LOADER(text)
    try:
        return _Builder(_events(loader)).document()
    finally:
        loader.dispose()


def _events(loader: Any) -> Iterator[Any]:
    while loader.check_event():
        yield loader.get_event()


class _Builder:
    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._anchors: dict[str, _Built] = {}
        self._repeated = 0
        self._resolver, self._constructor = Resolver(), SafeConstructor()

    def document(self) -> Any:
        built: _Built | None = None
        for event in self._events:
            if isinstance(event, (parsed.StreamStartEvent, parsed.StreamEndEvent)):
                continue
            if isinstance(event, parsed.DocumentStartEvent):
                if built is not None:
                    raise _error("there are several documents; expected one", event)
                continue
            if not isinstance(event, parsed.DocumentEndEvent):
                built = self._value(event, 0)
        return None if built is None else built.value

    def _value(self, event: Any, depth: int) -> _Built:
        if depth > _DEPTH:
            raise _error(f"values are nested more than {_DEPTH} levels deep", event)
        if isinstance(event, parsed.AliasEvent):
            return self._alias(event)
        if isinstance(event, parsed.ScalarEvent):
            built = _Built(self._scalar(event), 1)
        elif event.tag not in _PLAIN:
            raise _error(f"the tag {event.tag[:80]} is not known", event)
        elif isinstance(event, parsed.SequenceStartEvent):
            built = self._sequence(depth)
        else:
            built = self._mapping(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = built
        return built

    def _alias(self, event: Any) -> _Built:
        known = self._anchors.get(event.anchor)
        if known is None:
            raise _error(f"the alias *{event.anchor} has no anchor before it", event)
        self._repeated += known.size
        if self._repeated > _REPEATED:
            raise _error(
                f"its aliases stand for more than {_REPEATED:,} values; write them out", event
            )
        return known

    def _sequence(self, depth: int) -> _Built:
        values: list[Any] = []
        size = 1
        for event in self._events:
            if isinstance(event, parsed.SequenceEndEvent):
                break
            value, more = self._value(event, depth + 1)
            values.append(value)
            size += more
        return _Built(values, size)

    def _mapping(self, depth: int) -> _Built:
        found: dict[Any, Any] = {}
        merged: list[dict[Any, Any]] = []
        size = 1
        for event in self._events:
            if isinstance(event, parsed.MappingEndEvent):
                break
            key, key_size = self._value(event, depth + 1)
            value, value_size = self._value(next(self._events), depth + 1)
            size += key_size + value_size
            if key is _merge_key:
                merged.extend(_mappings(value, event))
                continue
            try:
                twice = key in found
            except TypeError:
                raise _error("a key is a list or a mapping; expected text", event) from None
            if twice:
                raise _error(f"the key {str(key)[:80]!r} is written twice", event)
            found[key] = value
        for each in merged:  # earlier mappings win, and keys of this mapping win over all
            for key, value in each.items():
                found.setdefault(key, value)
        return _Built(found, size)

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.tag is None and event.implicit[0]:
            if text and text[0] not in _SPECIAL:
                return text
            resolve: Callable[..., str] = self._resolver.resolve
            tag = resolve(yaml.ScalarNode, text, (True, False))
        else:
            tag = event.tag or _TEXT
        if tag == _MERGE:
            return _merge_key
        if tag == _TEXT or (tag in (_INTEGER, _FLOAT) and ":" in text):
            return text
        if tag not in SafeConstructor.yaml_constructors:
            raise _error(f"the tag {tag[:80]} is not known", event)
        node = yaml.ScalarNode(tag, text, event.start_mark, event.end_mark)
        return SafeConstructor.yaml_constructors[tag](self._constructor, node)


class _MergeKey:
    """The key `<<`."""


_merge_key = _MergeKey()


def _mappings(value: Any, event: Any) -> list[dict[Any, Any]]:
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in several):
        raise _error("the value of << is a mapping, or a list of mappings", event)
    return several


def _error(what: str, event: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, what, event.start_mark)
