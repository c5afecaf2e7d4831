"""A dict that is built on first use, and dense numbers for keys.

An opened engine knows its subscriptions by arrays. To find one by its id it needs a dict of all of
them, which takes longer to build than everything else. A process that only matches never needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LazyDict(MutableMapping[K, V]):
    """A dict that `make` builds on first use; its `size` is known before."""

    def __init__(self, make: Callable[[], dict[K, V]] = dict, size: int = 0) -> None:
        self._make: Callable[[], dict[K, V]] | None = make if size else None
        self._size = size
        self._made: list[dict[K, V]] = [] if size else [{}]

    def _all(self) -> dict[K, V]:
        if not self._made:
            # Two threads may both build it, and both use the first. A lock would stay locked in a
            # process that is forked meanwhile.
            make = self._make
            if make is not None:
                self._made.append(make())
            self._make = None
        return self._made[0]

    def __len__(self) -> int:
        return len(self._made[0]) if self._made else self._size

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
        """Set many items in one step: all or none of them."""
        fresh = dict(items)
        self._all().update(fresh)

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
