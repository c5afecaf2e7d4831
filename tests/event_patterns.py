"""Random event patterns and events.

Left out is what event-ruler does against its own documentation, or what the documentation leaves
open and tamis decides otherwise: see docs/coming-from-eventbridge.md.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

_NAMES = ("a", "b", "c")
_TEXTS = (
    "",
    "a",
    "A",
    "ab",
    "aB",
    "b",
    "é",
    "É",
    "x*y",
    "x\\y",
    "%",
    "_",
    "😀",
    "10.0.0.1",
    "10.1.2.3",
)
_CASED = tuple(text for text in _TEXTS if len(text.encode("utf-16-le")) == 2 * len(text))
_NUMBERS = (0, 1, -1, 2, 2.5, 1e3, 1000, -0.0, 0.1, 300, 1e-7, 4e9)
_VALUES = (*_TEXTS, *_NUMBERS, 123456789012345, True, False, None)
_WILDCARDS = ("*", "a*", "*b", "a*b", "*a*", "x\\*y", "x\\\\y", "", "%", "*_", "*é", "a**", "\\a")
_NETWORKS = (
    "10.0.0.0/8",
    "10.0.0.0/24",
    "10.0.0.7/30",
    "8.0.0.0/5",
    "10.0.0.1/32",
    "10.0.0.1",
    "x",
)
_ORDERS = ("=", "<", "<=", ">", ">=")


def random_event(draw: Random) -> dict[str, Any]:
    """An event: objects, and lists of objects, of lists and of values."""

    def value(depth: int, listed: bool = False) -> Any:
        shape = draw.random()
        if depth and shape < 0.25:
            if listed:
                return [fields(depth - 1) for _ in range(draw.randint(0, 3))]
            return [value(depth - 1, listed=True) for _ in range(draw.randint(0, 3))]
        if depth and shape < 0.6:
            return fields(depth - 1)
        return draw.choice(_VALUES)

    def fields(depth: int) -> dict[str, Any]:
        return {name: value(depth) for name in _NAMES if draw.random() < 0.7}

    return fields(4)


def random_pattern(draw: Random) -> str:
    """A pattern; a few are not valid."""

    def fields(depth: int, most: int = 2) -> dict[str, Any]:
        names = draw.sample(_NAMES, draw.randint(1, most))
        found = {name: field(depth) for name in names}
        if draw.random() < 0.15:
            choices = [fields(depth - 1 if depth else 0) for _ in range(draw.randint(2, 3))]
            items = [*found.items()]
            items.insert(draw.randint(0, len(items)), ("$or", choices))
            found = dict(items)
        return found

    def field(depth: int) -> Any:
        if depth and draw.random() < 0.5:
            return fields(depth - 1)
        found = [one_test() for _ in range(draw.choice((1, 1, 1, 2, 3)))]
        written = json.dumps(found)
        # event-ruler confuses these with other tests of the same field.
        confused = "anything-but" in written or ("wildcard" in written and "equals" in written)
        return found[:1] if confused else found

    def text() -> Any:
        return draw.choice(_TEXTS) if draw.random() < 0.97 else draw.choice(_VALUES)

    def texts() -> Any:
        return text() if draw.random() < 0.5 else [text() for _ in range(draw.randint(1, 2))]

    def numeric() -> Any:
        found = [draw.choice(_ORDERS), draw.choice(_NUMBERS)]
        if draw.random() < 0.5:
            found += [draw.choice(_ORDERS), draw.choice(_NUMBERS)]
        return found

    def one_test() -> Any:
        kind = draw.choice((*_PLAIN, "value", "value", "value", "exists", "exists", "but", "but"))
        if kind == "value":
            return draw.choice(_VALUES)
        if kind == "exists":
            return {"exists": draw.random() < 0.5}
        if kind == "numeric":
            return {"numeric": numeric()}
        if kind in ("prefix", "suffix") and draw.random() < 0.3:
            return {kind: {"equals-ignore-case": draw.choice(_CASED)}}
        if kind == "equals-ignore-case":
            return {kind: draw.choice(_CASED)}
        if kind == "wildcard":
            return {kind: draw.choice(_WILDCARDS)}
        if kind == "cidr":
            return {kind: draw.choice(_NETWORKS)}
        if kind != "but":
            return {kind: text()}
        form = draw.choice(("", "", "prefix", "suffix", "equals-ignore-case", "wildcard"))
        if form == "wildcard":
            return {"anything-but": {form: draw.choice(_WILDCARDS)}}
        if form == "equals-ignore-case":
            return {"anything-but": {form: [draw.choice(_CASED)]}}
        if form:
            return {"anything-but": {form: texts()}}
        if draw.random() < 0.4:
            numbers = [draw.choice(_NUMBERS) for _ in range(draw.randint(1, 2))]
            return {"anything-but": numbers if draw.random() < 0.5 else numbers[0]}
        return {"anything-but": texts()}

    return json.dumps(fields(2), ensure_ascii=draw.random() < 0.5)


_PLAIN = ("prefix", "suffix", "equals-ignore-case", "wildcard", "cidr", "numeric", "exactly")
