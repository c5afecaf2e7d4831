"""Operations on single bits of 64-bit words, for kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import kernel

Words = NDArray[np.uint64]

# A de Bruijn sequence: its 64 windows of 6 bits are all different. Multiplying by a lone bit shifts
# one window to the top, and the window identifies the bit.
_SEQUENCE = 0x03F79D71B4CB0A89
_PLACE = np.zeros(64, np.uint8)
for _bit in range(64):
    _PLACE[((_SEQUENCE << _bit) & (2**64 - 1)) >> 58] = _bit


@kernel
def lowest(word: np.uint64) -> int:
    """The position of the lowest set bit. The word must not be 0."""
    lone = word & (~word + np.uint64(1))
    return int(_PLACE[(lone * np.uint64(_SEQUENCE)) >> np.uint64(58)])


@kernel
def set_bit(words: Words, place: int) -> None:
    """Set one bit of an array of words."""
    words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@kernel
def clear_bit(words: Words, place: int) -> None:
    """Clear one bit of an array of words."""
    words[place >> 6] &= ~(np.uint64(1) << np.uint64(place & 63))


@kernel
def mask(start: int, end: int) -> np.uint64:
    """A word with the bits `start` to `end - 1` set, where 0 <= start < end <= 64."""
    upper = ~np.uint64(0) >> np.uint64(64 - end)
    return upper & (~np.uint64(0) << np.uint64(start))
