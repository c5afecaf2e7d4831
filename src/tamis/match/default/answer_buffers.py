"""Buffers for answers, reused once no caller holds a reference.

The system has to clear new memory first, which takes longer than filling it: half of the time of a
batch with many matches.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

_KEPT = 1 << 24  # slots: a longer buffer is released once answers are short


class AnswerBuffers:
    """The arrays of the last two answers.

    Answers are views of these arrays; an array with a live view is not reused. There are two,
    because a caller in a loop still holds one answer while the next is computed.
    """

    def __init__(self, kind: Any = np.int32) -> None:
        self._kind = kind
        self._last = np.empty(0, kind)
        self._other = np.empty(0, kind)
        self._used = 0

    def take(self, size: int = 0) -> NDArray[Any]:
        """An unreferenced array, at least as large as `size` and as the last answer."""
        if sys.getrefcount(self._last) > 2:  # the attribute and the argument of the call
            self._last, self._other = self._other, self._last
        least = max(size, self._used)  # the next answer is probably as large as the last
        if sys.getrefcount(self._last) > 2 or len(self._last) < least:
            self._last = np.empty(max(size, least + least // 4), self._kind)
        return self._last

    def keep(self, array: NDArray[Any], used: int) -> None:
        """Remember the array of the last answer, and how much of the array it used."""
        most = max(_KEPT, 8 * used)
        self._last = array if len(array) < most else np.empty(0, self._kind)
        if len(self._other) >= most:
            self._other = np.empty(0, self._kind)
        self._used = used
