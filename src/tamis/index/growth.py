"""Answers that grow while a kernel finds them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import kernel


@kernel
def ensure_capacity(array: NDArray[np.int64], used: int, more: int) -> NDArray[np.int64]:
    """The array itself where `more` values fit behind the `used` ones, else a larger copy."""
    if used + more <= len(array):
        return array
    wider = np.empty(max(2 * len(array), used + more), np.int64)
    wider[:used] = array[:used]
    return wider
