"""What an extension of a schema has added, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tamis.model.schema import Schema


def differences(before: Schema, after: Schema) -> list[str]:
    """What the later of two schemas has that the earlier one lacks: a line for each.

    >>> old = Schema.from_dict({"attributes": {"price": "decimal"}})
    >>> differences(old, old.create_attribute("title", "text"))
    ['attribute title']
    """
    return list(_differences(before.to_dict(), after.to_dict()))


def _differences(old: dict[str, Any], grown: dict[str, Any]) -> Iterator[str]:
    for part, word in (("domains", "domain"), ("attributes", "attribute")):
        known = old.get(part) or {}
        for name, spec in (grown.get(part) or {}).items():
            if name not in known:
                yield f"{word} {name}"
            elif known[name] != spec:
                yield f"{word} {name} has new values: {', '.join(_grown(known[name], spec))}"
    known = old.get("event_types") or {}
    for name, uses in (grown.get("event_types") or {}).items():
        if name not in known:
            yield f"event type {name}"
        elif uses != known[name]:
            new = ", ".join(use for use in uses if use not in known[name])
            yield f"event type {name} may have {new}"


def _grown(old: Any, new: Any) -> list[str]:
    before = set(_names(old))
    return [each for each in dict.fromkeys(_names(new)) if each not in before]


def _names(spec: Any) -> Iterator[str]:
    """The values that a domain names, in whatever form its document is."""
    if not isinstance(spec, dict):
        return
    yield from (str(each) for each in spec.get("values") or [])
    yield from (spec.get("parents") or {}).keys()
    trees = [spec.get("tree") or {}]
    while trees:
        for name, below in trees.pop().items():
            yield str(name)
            trees.append(below or {})
