"""Interned keys: a dense number for each distinct key, recycled when the key goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from tamis.engine.lazy_dict import LazyDict

Key = TypeVar("Key")


class Interner(Generic[Key]):
    """Numbers below `top` are in use or `free`; the last free number is used first."""

    def __init__(
        self, numbers: LazyDict[Key, int] | None = None, free: Sequence[int] = (), top: int = 0
    ) -> None:
        self.numbers: LazyDict[Key, int] = LazyDict() if numbers is None else numbers
        self._free = list(free)
        self.top = top

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[int]:
        """The numbers in use."""
        return iter(self.numbers.values())

    def __getitem__(self, key: Key) -> int:
        return self.numbers[key]

    def intern(self, key: Key) -> int:
        """The number of a key; a new key gets one."""
        number = self.numbers.find(key)
        if number is None:
            number = self._free.pop() if self._free else self.top
            self.top = max(self.top, number + 1)
            self.numbers[key] = number
        return number

    def remove(self, key: Key) -> None:
        """Free the number of a key. Does nothing the second time."""
        number = self.numbers.find(key)
        if number is not None:
            del self.numbers[key]
            self._free.append(number)
