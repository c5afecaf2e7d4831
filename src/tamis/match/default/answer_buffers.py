"""Room for answers, used again once nobody holds them.

Memory that is new has to be cleared by the system first, which takes longer than to fill it: half
of the time of a batch where much matches.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

_KEPT = 1 << 24  # slots: more are not kept where the next answers are short


class AnswerBuffers:
    """The arrays of the last two answers.

    Answers are views of them, and so keep them from being reused. Two, because whoever asks in a
    loop still holds one answer while the next is being made.
    """

    def __init__(self, kind: Any = np.int32) -> None:
        self._kind = kind
        self._last = np.empty(0, kind)
        self._other = np.empty(0, kind)
        self._used = 0

    def take(self, size: int = 0) -> NDArray[Any]:
        """An array that nobody else has, of at least that size, and that of the last answer."""
        if sys.getrefcount(self._last) > 2:  # this attribute, and the call's own
            self._last, self._other = self._other, self._last
        least = max(size, self._used)  # about as much will be needed as last time
        if sys.getrefcount(self._last) > 2 or len(self._last) < least:
            self._last = np.empty(max(size, least + least // 4), self._kind)
        return self._last

    def keep(self, array: NDArray[Any], used: int) -> None:
        """Remember what the answer went to."""
        most = max(_KEPT, 8 * used)
        self._last = array if len(array) < most else np.empty(0, self._kind)
        if len(self._other) >= most:
            self._other = np.empty(0, self._kind)
        self._used = used
