"""JSON of what a caller gives: NaN and infinity are refused, where msgspec would write null."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec


def encode(value: Mapping[str, Any]) -> bytes:
    """JSON. A `TypeError` or a `ValueError` says what cannot be written."""
    encoded = msgspec.json.encode(value)
    if b"null" in encoded:  # it may have been a number
        _check(value)
    return encoded


def _check(value: Mapping[str, Any]) -> None:
    waiting: list[Any] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, float) and not math.isfinite(each):
            raise ValueError(f"{each} is not a number of JSON; write None, or leave it out")
        if isinstance(each, Mapping):
            waiting.extend(each.values())
        elif isinstance(each, (list, tuple, set, frozenset)):
            waiting.extend(each)
