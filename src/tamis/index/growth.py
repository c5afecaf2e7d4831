"""Growing arrays, and their memory use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int64s
from tamis.index.kernel import kernel


def grown(array: NDArray[Any], size: int, fill: float = 0) -> NDArray[Any]:
    """The array itself if it has at least this size, else a longer copy, padded with `fill`.

    A copy is at least half as long again, so growing step by step copies each item only a few
    times. Zeros take no memory until they are overwritten.
    """
    have = len(array)
    if size <= have:
        return array
    longer = np.zeros((max(size, have * 3 // 2, 64), *array.shape[1:]), array.dtype)
    longer[:have] = array
    if fill:
        longer[have:] = fill
    return longer


@kernel
def ensure_capacity(array: Int64s, used: int, more: int) -> Int64s:
    """The array itself if `more` values fit after the `used` ones, else a larger copy."""
    if used + more <= len(array):
        return array
    wider = np.empty(max(2 * len(array), used + more), np.int64)
    wider[:used] = array[:used]
    return wider


class HoldsArrays:
    """Base of classes that hold their data in arrays: attributes, or tuples in attributes."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove everything and release the memory."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(map(_bytes, vars(self).values()))


def _bytes(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(map(_bytes, value))
    return int(value.nbytes) if isinstance(value, np.ndarray | HoldsArrays) else 0
