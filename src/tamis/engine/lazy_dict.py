"""A dict that is built on first use, and dense numbers for keys.

An opened engine knows its subscriptions by arrays. To find one by its id it needs a dict of all of
them, which takes longer to build than everything else. A process that only matches never needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LazyDict(MutableMapping[K, V]):
    """A dict that `make` builds on first use; its `size` is known before."""

    def __init__(self, make: Callable[[], dict[K, V]] = dict, size: int = 0) -> None:
        self._make: Callable[[], dict[K, V]] | None = make
        self._size = size
        self._made: dict[K, V] = {}
        self._lock = Lock()  # two threads must not build it twice and write to both
        if not size:
            self._make = None

    def _all(self) -> dict[K, V]:
        if self._make is not None:
            with self._lock:
                if self._make is not None:
                    self._made = self._make()
                    self._make = None
        return self._made

    def __len__(self) -> int:
        return len(self._made) if self._make is None else self._size

    def __contains__(self, key: object) -> bool:
        return key in self._all()

    def __getitem__(self, key: K) -> V:
        return self._all()[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._all()[key] = value

    def __delitem__(self, key: K) -> None:
        del self._all()[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._all())

    def find(self, key: K) -> V | None:
        """The value of a key, or None."""
        return self._all().get(key)

    def put_all(self, items: Iterable[tuple[K, V]]) -> None:
        """Set many items at once."""
        self._all().update(items)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self._all(),)


def _made(items: dict[K, V]) -> LazyDict[K, V]:
    found: LazyDict[K, V] = LazyDict()
    found.put_all(items.items())
    return found


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
