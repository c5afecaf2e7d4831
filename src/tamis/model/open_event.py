"""Events under an open schema: only what conditions mention is looked at.

A name with dots is a path into nested objects; a key of an object may itself have dots. A path goes
through arrays: it collects the values of all elements. A list has several values.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import lru_cache
from typing import Any

from tamis.errors import EventError
from tamis.model.domain import RefusalError, refused_element
from tamis.model.dynamic import Dynamic, distinct
from tamis.model.object_paths import Paths, object_paths
from tamis.model.schema import Schema

_LISTS = (list, tuple, set, frozenset)
_DYNAMIC = Dynamic()
LIST = "[]"  # after the name of a list of structs: the name itself may be a value, too


def open_values(schema: Schema, given: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The values of the attributes of an open schema; an `EventError` for an invalid number."""
    return {
        name: bound
        for name, found in collect(schema.paths, schema.attributes, given).items()
        if (bound := _values(name, found))
    }


def open_elements(schema: Schema, given: Mapping[str, Any]) -> dict[str, list[Any]]:
    """What the lists of structs of an open schema hold, by the name of the list."""
    lists = {name.removesuffix(LIST): name for name in schema.lists}
    found = collect(_paths(frozenset(lists)), lists, given)
    return {lists[name]: values for name, values in found.items()}


@lru_cache(maxsize=64)
def _paths(names: frozenset[str]) -> Paths:
    return object_paths(names)


def collect(
    paths: Paths, attributes: Container[str], given: Any, at: str = ""
) -> dict[str, list[Any]]:
    """The values of attributes within an object or a list of objects, which has the path `at`."""
    found: dict[str, list[Any]] = {}
    stack: list[tuple[str, Any]] = [(at, given)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, _LISTS):
            stack.extend((path, item) for item in reversed([*node]))
        elif isinstance(node, Mapping):
            keys = paths[path]
            for key in keys.keys() & node.keys():
                name, raw = keys[key], node[key]
                if name in attributes:
                    found.setdefault(name, []).extend(_items(raw))
                if name in paths:
                    stack.append((name, raw))
    return found


def _items(raw: Any) -> list[Any]:
    """The items of lists, also of lists within lists; anything else as it is."""
    if not isinstance(raw, _LISTS):
        return [raw]
    items: list[Any] = []
    stack = [raw]
    while stack:
        item = stack.pop()
        if isinstance(item, _LISTS):
            stack.extend(reversed([*item]))
        else:
            items.append(item)
    return items


def _values(name: str, found: list[Any]) -> tuple[Any, ...]:
    try:
        values = [_DYNAMIC.value(raw) for raw in found]
    except RefusalError as alone:
        why = refused_element(_DYNAMIC, found) if len(found) > 1 else alone
        raise EventError(f"{name!r}: {why}", rule="R2", attribute=name) from None
    return (values[0],) if len(values) == 1 else distinct(values)
