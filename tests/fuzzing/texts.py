"""Texts that are nearly right: conditions, lines of JSON, documents."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.fuzzing.values import mutated
from tests.fuzzing.world import CONDITIONS, EVENT, NAMES

_TOKENS = [
    *NAMES, "and", "or", "not", "in", "between", "exists", "missing", "contains", "excludes",
    "starts with", "ends with", "like", "(", ")", ",", "<", "<=", ">", ">=", "=", "!=", "<>", "==",
    "+", "-", "*", "/", "?x", "?", "`", '"', "'", "true", "null", "0", "1", "-1", ".5", "1e5",
    "1e400", "1e-400", "9" * 400, "9223372036854775808", "0x1f", "1_000", "nan", "inf",
    "2026-01-01", "2026-13-45", "2026-01-01T25:00:00Z", '"oak"', "'a\\u0000b'", '"\\ud800"',
    '"\\U00110000"', "\\", "\x00", "\x1b[31m", "\u202e", "\ud800", "é", "😀", "\n", "\t", " ", "#",
    "--", ";", "f(", "locIn(", "%", "_", "red", "france", "x" * 300, "{", "}", "[", "]", ":", "&a",
    "*a", "<<", "|", ">", "!!", "- ", "? ", "~", "1:2:3", "\ufeff", "\x85",
]  # fmt: skip
_DEEP = 2_000


def garbled(text: str, draw: random.Random) -> str:
    """A text with some characters or tokens removed, repeated, exchanged or put in."""
    for _ in range(draw.choice((1, 1, 2, 5))):
        at, to = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
        to = min(to, at + draw.choice((1, 3, 20)))
        way = draw.randrange(6)
        if way == 0:
            text = text[:at] + text[to:]
        elif way == 1:
            text = text[:at] + text[at:to] * draw.choice((2, 3, 50)) + text[to:]
        elif way == 2:
            text = text[:at] + draw.choice(_TOKENS) + text[to:]
        elif way == 3:
            text = text[:at] + chr(draw.choice((draw.randrange(128), draw.randrange(0x110000))))
            text += text[to:]
        elif way == 4:
            text = text[:at]
        else:
            text = f"{text[:at]} {draw.choice(_TOKENS)} {text[at:]}"
    return text


def any_condition(draw: random.Random) -> str:
    """A condition, or nearly one."""
    way = draw.randrange(10)
    if way == 0:
        return " ".join(draw.choices(_TOKENS, k=draw.randrange(12)))
    if way == 1 and not draw.randrange(10):
        deep = draw.choice((10, 60, 300, _DEEP))
        word = draw.choice(("(", "not ", "not (", "-"))
        return word * deep + draw.choice(CONDITIONS) + ")" * draw.choice((0, deep))
    if way == 2:
        joined = f" {draw.choice(('and', 'or'))} ".join(draw.choices(CONDITIONS, k=2))
        return garbled(joined, draw)
    if way == 3:
        name, value = draw.choice(NAMES), draw.choice(_TOKENS)
        return f"{name} {draw.choice(('=', '<', 'in', 'between', 'like'))} {value}"
    return garbled(draw.choice(CONDITIONS), draw)


def any_line(draw: random.Random) -> str:
    """A line of JSON that is nearly an event."""
    if draw.random() < 0.5:
        return garbled(json.dumps(EVENT, ensure_ascii=draw.random() < 0.5), draw)
    return dumped(mutated(EVENT, draw))


def dumped(document: Any) -> str:
    """A document of odd values as JSON; objects that JSON does not know are text."""
    try:
        return json.dumps(document, default=str, skipkeys=True)
    except (ValueError, RecursionError):
        return "[" * _DEEP


def as_json(document: Any) -> Any:
    """A document of odd values as it comes out of JSON."""
    try:
        return json.loads(dumped(document))
    except (ValueError, RecursionError):
        return None


def utf8(text: str, draw: random.Random) -> bytes:
    """A text as bytes, which may not be UTF-8."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if data and draw.random() < 0.2:
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)
