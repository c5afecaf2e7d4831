"""Which events were published lately: a repeated publish is known by its source and id."""

from __future__ import annotations

from collections import OrderedDict, deque
from hashlib import blake2b

MOST = 1_000_000  # keys that are remembered
WINDOW = 600_000_000  # microseconds for which a key is remembered


def dedup_key(source: str, id: str) -> bytes:
    """128 bits that stand for a source and an id."""
    # The length keeps the two apart.
    return blake2b(f"{len(source)}:{source}{id}".encode(), digest_size=16).digest()


class DedupKeys:
    """The numbers of events by key: for ten minutes, or until a million newer keys came.

    >>> keys = DedupKeys(most=2)
    >>> keys.remember([(b"a", 5), (b"b", 6), (b"c", 7)], moment=0)
    >>> keys.find(b"a", moment=1), keys.find(b"c", moment=1), keys.find(b"c", moment=WINDOW)
    (None, 7, None)
    """

    def __init__(self, most: int = MOST, window: int = WINDOW) -> None:
        self._most, self._window = most, window
        self._numbers: OrderedDict[bytes, int] = OrderedDict()
        self._moments: deque[tuple[int, int]] = deque()  # (moment, the number after its events)

    def __len__(self) -> int:
        return len(self._numbers)

    def find(self, key: bytes, moment: int) -> int | None:
        """The number of the event with this key; None if it is not remembered."""
        self._forget(moment)
        return self._numbers.get(key)

    def remember(self, keys: list[tuple[bytes, int]], moment: int) -> None:
        """Add keys with the numbers of their events, which ascend."""
        if not keys:
            return
        for key, number in keys:
            self._numbers[key] = number
            self._numbers.move_to_end(key)
        self._moments.append((moment, keys[-1][1] + 1))
        while len(self._numbers) > self._most:
            self._numbers.popitem(last=False)

    def _forget(self, moment: int) -> None:
        before = -1
        while self._moments and self._moments[0][0] <= moment - self._window:
            before = self._moments.popleft()[1]
        while self._numbers and next(iter(self._numbers.values())) < before:
            self._numbers.popitem(last=False)
