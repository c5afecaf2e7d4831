"""A batch without its repeated events, and the answer with them again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import Pairs
from tamis.match.default.passes.twin_events import copy_twins, find_twins
from tamis.match.default.structure.buckets import seed

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
_FEW = 32  # events: so few are not looked at for this
_SEED = seed()
_WORTH = 0.8  # share of different events below which they alone are matched
_MANY = 1024  # events that tell whether publishers repeat themselves at all
_HARDLY = 0.98  # share of different events above which they do not
_REST = 7  # batches that are taken as they are, when the last had hardly any twins


class Twins:
    """Looks for twins in batches; where there were none, not in each of the next.

    Looking takes 50 ns an event, which is a fifth of all that is done for it where subscriptions
    are few. Publishers that repeat themselves do so all the time, or not at all.
    """

    def __init__(self) -> None:
        self._rest = 0

    def without(self, pairs: Pairs) -> tuple[Pairs, Int32s | None]:
        """What `without_twins` gives, or all, and None."""
        many = len(pairs.starts) - 1
        if many >= _MANY and self._rest:
            self._rest -= 1
            return pairs, None
        fewer, twin, different = _parted(pairs)
        if many >= _MANY:
            self._rest = _REST if different > _HARDLY * many else 0
        return fewer, twin


def without_twins(pairs: Pairs) -> tuple[Pairs, Int32s | None]:
    """The different events, and for each event which of them it is; or all, and None."""
    return _parted(pairs)[:2]


def _parted(pairs: Pairs) -> tuple[Pairs, Int32s | None, int]:
    """The same, and how many different events there are."""
    starts, attribute, code = pairs
    many = len(starts) - 1
    if many < _FEW:
        return pairs, None, many
    twin = np.empty(many, np.int32)
    table = np.empty(1 << (2 * many).bit_length(), np.int32)
    different = find_twins(starts, attribute, code, table, twin, _SEED)
    if different > _WORTH * many:
        return pairs, None, different
    first = np.unique(twin, return_index=True)[1]  # they are numbered as they come
    counts = np.diff(starts)[first]
    fewer = np.zeros(different + 1, np.int64)
    np.cumsum(counts, out=fewer[1:])
    rows = np.repeat(starts[first] - fewer[:-1], counts) + np.arange(fewer[-1])
    return Pairs(fewer, attribute[rows], code[rows]), twin, different


def with_twins(twin: Int32s, starts: Int64s, slots: Int32s, out: Int32s) -> tuple[Int64s, Int32s]:
    """The answer to all events, from that to the different ones: starts, and slots in `out`.

    Or in a longer array, where that is too short.
    """
    all_starts = np.zeros(len(twin) + 1, np.int64)
    np.cumsum(np.diff(starts)[twin], out=all_starts[1:])
    if all_starts[-1] > len(out):
        out = np.empty(int(all_starts[-1]), np.int32)
    copy_twins(twin, starts, slots, all_starts, out)
    return all_starts, out
