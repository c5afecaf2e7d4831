"""Results of pure operators, remembered across events by what the function was handed.

Two generations approximate the least recently used: a result that is asked for again moves to the
young one, and when that is full, the old one is dropped. So a hit does not reorder anything.

Large inputs, such as pictures, are remembered by a digest, without the picture. Inputs that cannot
be told apart for sure are not remembered.
"""

from __future__ import annotations

import marshal
from collections.abc import Hashable
from datetime import datetime
from hashlib import blake2b
from typing import Any

from tamis.model.operator import Rows

SIZE = 50_000
_SHORT = 64  # characters of text that are kept as they are
_PLAIN = (int, bool, datetime)
_VERSION = 2  # of marshal: equal values have equal bytes, whoever else refers to them

Call = tuple[Hashable, Hashable]
_Generation = dict[Call, dict[Hashable, Rows]]


class ResultMemory:
    """At most `size` rows, by call and by input; an answer without rows counts as one."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self._half = size // 2
        self._young: _Generation = {}
        self._old: _Generation = {}
        self._in_young = self._in_old = 0

    def __len__(self) -> int:
        return self._in_young + self._in_old

    def recall(self, call: Call, inputs: list[Hashable]) -> list[Rows | None]:
        """The results for these inputs; None for those without a result."""
        young = self._young.get(call, _NOTHING)
        found: list[Rows | None] = [young.get(each) for each in inputs]
        old = self._old.get(call)
        if old:
            for at, rows in enumerate(found):
                again = old.get(inputs[at]) if rows is None else None
                if again is not None:
                    found[at] = again
                    self.keep(call, inputs[at], again)
        return found

    def keep(self, call: Call, given: Hashable, rows: Rows) -> None:
        """Remember a result, unless its input has no key or it is large."""
        weight = len(rows) or 1
        if given is None or weight > self._half:
            return
        if self._in_young + weight > self._half:
            self._old, self._in_old = self._young, self._in_young
            self._young, self._in_young = {}, 0
        mine = self._young.setdefault(call, {})
        if given not in mine:
            mine[given] = rows
            self._in_young += weight

    def keep_all(self, call: Call, given: list[Hashable], found: list[Rows]) -> None:
        """Remember results; no input has None for its key."""
        weight = sum([len(rows) or 1 for rows in found])
        if self._in_young + weight > self._half:  # some have to go, or are too large
            for each, rows in zip(given, found, strict=True):
                self.keep(call, each, rows)
            return
        self._young.setdefault(call, {}).update(zip(given, found, strict=True))
        self._in_young += weight

    def __reduce__(self) -> Any:  # a copy of an engine begins without memories
        return ResultMemory, (self.size,)


_NOTHING: dict[Hashable, Rows] = {}


def input_key(values: tuple[Any, ...]) -> Hashable:
    """A key of what a function reads: equal only if it cannot tell two inputs apart; or None."""
    if len(values) == 1:
        return _value_key(values[0])
    keys = tuple(map(_value_key, values))
    return None if None in keys else keys


def _value_key(value: Any) -> Hashable:
    kind: type = type(value)
    if kind is str and len(value) <= _SHORT:
        return str(value)
    if kind in _PLAIN or (kind is float and value):
        return kind, value  # 1, 1.0 and True are equal in Python
    try:
        known = value if kind is bytes else marshal.dumps(value, _VERSION)
    except ValueError:
        return None
    return (
        (kind, known) if len(known) <= _SHORT else (kind, blake2b(known, digest_size=20).digest())
    )
