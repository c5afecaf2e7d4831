"""What the parts of a saved index check before they trust it.

Checksums show that the bytes are those that were written. They do not show that the numbers make
sense: a bug may have written them, or someone may have rewritten the facts and the checksums.
Kernels follow offsets without a check of their own, so offsets are checked when an index is opened.
Types, lengths and facts are always checked. The values in arrays are checked where the checksums
are, because both read every byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import SavedIndexError
from tamis.files.arrays import Bools, Int64s

MOST = 2**62  # of any count


def require(holds: bool | np.bool_, what: str) -> None:
    """Raise a `SavedIndexError` unless something holds; `what` says what should hold."""
    if not holds:
        raise SavedIndexError(
            f"the saved index is inconsistent: {what}; was it edited? Build and save it again"
        )


def whole(facts: Mapping[str, Any], name: str, least: int = 0, most: int = MOST) -> int:
    """A fact that is a whole number."""
    given = facts[name]
    fits = isinstance(given, int) and not isinstance(given, bool) and least <= given <= most
    require(fits, f"{name!r} is a whole number from {least} to {most}")
    return int(given)


def array_of(arrays: Mapping[str, NDArray[Any]], name: str, kind: Any = np.int64) -> NDArray[Any]:
    """An array of one dimension and a type."""
    array = arrays[name]
    require(array.ndim == 1 and array.dtype == kind, f"{name!r} is 1 × {np.dtype(kind)}")
    return array


def within(what: str, numbers: NDArray[Any], low: int, end: int) -> None:
    """Every number is at least `low` and below `end`."""
    if len(numbers):
        fits = low <= int(numbers.min()) and int(numbers.max()) < end
        require(fits, f"every number of {what!r} is from {low} to {end - 1}")


def rising(what: str, starts: NDArray[Any], runs: int, end: int) -> None:
    """Starts of so many runs in a row: the first is 0, none is below the one before, `end` ends."""
    fits = len(starts) == runs + 1 and starts[0] == 0 and starts[-1] == end
    require(fits and bool((starts[1:] >= starts[:-1]).all()), f"{what!r} rises from 0 to {end}")


def disjoint(what: str, starts: Int64s, sizes: NDArray[Any], end: int) -> Bools:
    """The runs `starts[i] : starts[i] + sizes[i]` are below `end`, and no two overlap.

    Returns which positions below `end` are in a run.
    """
    some = sizes > 0
    first, last = starts[some], starts[some] + sizes[some]
    within(what, first, 0, end)
    within(what, last, 1, end + 1)
    steps = np.bincount(first, minlength=end + 1) - np.bincount(last, minlength=end + 1)
    depth = np.cumsum(steps[:end])
    require(bool((depth <= 1).all()), f"no two runs of {what!r} overlap")
    return depth > 0
