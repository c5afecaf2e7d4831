"""Python values of every kind, and documents in which some stand at the wrong place."""

from __future__ import annotations

import copy
import random
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np


class _Number(int):
    """An integer that is not of the type itself."""


class _Text(str):
    """A text that is not of the type itself."""


def _deep(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def _ring() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


_PLAIN: list[Callable[[], Any]] = [
    lambda value=value: value  # type: ignore[misc]
    for value in (
        None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**400,
        0.0, -0.0, 1.5, 1e308, 5e-324, float("nan"), float("inf"), -float("inf"), 3.0,
        "", "oak", "a chair", "red", "france", "offer", "bid", "nothing", "x" * 70_000, "\ud800",
        "\x00", "\x1b[2J", "2026-01-01T00:00:00Z", "2026-02-30", "0001-01-01",
        b"", b"oak", b"\xff", bytearray(b"x"), memoryview(b"x"), 1j, Ellipsis, NotImplemented,
        int, len, object(), range(3), slice(1), Decimal("1.5"), Decimal("NaN"), Decimal("1e999"),
        Fraction(1, 3), UUID(int=7), date(2026, 1, 1), time(1), timedelta(1),
        datetime.fromisoformat("2026-01-01"),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=14))),
        datetime(2026, 1, 1, tzinfo=UTC), np.int8(3), np.uint64(2**64 - 1), np.float16(2.5),
        np.float32("nan"), np.longdouble(1), np.bool_(True), np.str_("oak"), np.bytes_(b"oak"),
        np.datetime64("2026-01-01"), np.datetime64("NaT"), np.timedelta64(1, "s"),
        _Number(3), _Text("oak"), frozenset({"oak"}),
    )
]  # fmt: skip
_MADE: list[Callable[[], Any]] = [
    *_PLAIN,
    list,
    dict,
    set,
    tuple,
    _ring,
    OrderedDict,
    lambda: _deep(50),
    lambda: _deep(900),
    lambda: {"oak"},
    lambda: iter(["oak"]),
    lambda: (each for each in ("oak", "pine")),
    lambda: np.array([1, 2]),
    lambda: np.array(["oak"], object),
    lambda: np.array(3),
    lambda: np.zeros((2, 2)),
    lambda: {"inner": {"inner": 1}},
    lambda: {1: 2, None: 3},
    lambda: {"a": _deep(100)},
]


def odd(draw: random.Random, depth: int = 0) -> Any:
    """Any value."""
    way = draw.randrange(12)
    if way == 0 and depth < 3:
        return [odd(draw, depth + 1) for _ in range(draw.randrange(4))]
    if way == 1 and depth < 3:
        return {_key(draw): odd(draw, depth + 1) for _ in range(draw.randrange(4))}
    return draw.choice(_MADE)()


def _key(draw: random.Random) -> Any:
    return draw.choice(("price", "deep", "inner", "event_type", "$id", "", "a.b", "x", 1, None, ()))


def mutated(document: Any, draw: random.Random) -> Any:
    """A copy of a document with some values exchanged, removed, renamed or put in."""
    document = copy.deepcopy(document)
    for _ in range(draw.choice((1, 1, 2, 4))):
        place = document
        while isinstance(place, (dict, list)) and place:
            at = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if isinstance(place[at], (dict, list)) and place[at] and draw.random() < 0.8:
                place = place[at]
                continue
            _change(place, at, draw)
            break
    return document


def _change(place: Any, at: Any, draw: random.Random) -> None:
    way = draw.randrange(5)
    if way == 0:
        del place[at]
    elif way == 1 and isinstance(place, dict):
        place[_key(draw)] = place.pop(at)
    elif way == 2 and isinstance(place, dict):
        place[_key(draw)] = odd(draw)
    elif way == 2:
        place.append(odd(draw))
    elif way == 3:
        place[at] = [place[at], place[at]]
    else:
        place[at] = odd(draw)
