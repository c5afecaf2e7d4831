"""Deduplicate the events of a batch, and expand the answer to all events."""

from __future__ import annotations

import numpy as np

from tamis.encode.batch import Pairs
from tamis.files.arrays import Int32s, Int64s
from tamis.match.default.passes.twin_events import copy_twins, find_twins
from tamis.match.default.structure.buckets import seed

_FEW = 32  # smaller batches are not searched for twins
_SEED = seed()
_WORTH = 0.8  # deduplicate if at most this share of the events is distinct
_MANY = 1024  # events that suffice to tell whether publishers repeat themselves
_HARDLY = 0.98  # above this share of distinct events, publishers do not repeat themselves
_REST = 7  # batches that skip the search after one with hardly any twins


class Twins:
    """Searches batches for twins (equal events). Skips some batches after one without twins.

    The search takes 50 ns per event, a fifth of the total time per event if subscriptions are few.
    Publishers repeat themselves either all the time or not at all.
    """

    def __init__(self) -> None:
        self._rest = 0

    def without(self, pairs: Pairs) -> tuple[Pairs, Int32s | None]:
        """The result of `without_twins`, or all events and None if the search is skipped."""
        many = len(pairs.starts) - 1
        if many >= _MANY and self._rest:
            self._rest -= 1
            return pairs, None
        fewer, twin, different = _parted(pairs)
        if many >= _MANY:
            self._rest = _REST if different > _HARDLY * many else 0
        return fewer, twin


def without_twins(pairs: Pairs) -> tuple[Pairs, Int32s | None]:
    """The distinct events, and which of them each event equals. Or all events and None."""
    return _parted(pairs)[:2]


def _parted(pairs: Pairs) -> tuple[Pairs, Int32s | None, int]:
    """The result of `without_twins`, and the number of distinct events."""
    starts, attribute, code = pairs
    many = len(starts) - 1
    if many < _FEW:
        return pairs, None, many
    twin = np.empty(many, np.int32)
    table = np.empty(1 << (2 * many).bit_length(), np.int32)
    different = find_twins(starts, attribute, code, table, twin, _SEED)
    if different > _WORTH * many:
        return pairs, None, different
    first = np.unique(twin, return_index=True)[1]  # numbered in order of appearance
    counts = np.diff(starts)[first]
    fewer = np.zeros(different + 1, np.int64)
    np.cumsum(counts, out=fewer[1:])
    rows = np.repeat(starts[first] - fewer[:-1], counts) + np.arange(fewer[-1])
    return Pairs(fewer, attribute[rows], code[rows]), twin, different


def with_twins(twin: Int32s, starts: Int64s, slots: Int32s, out: Int32s) -> tuple[Int64s, Int32s]:
    """Expand the answer for the distinct events to all events: starts and slots.

    The slots are written to `out`, or to a longer array if `out` is too short.
    """
    all_starts = np.zeros(len(twin) + 1, np.int64)
    np.cumsum(np.diff(starts)[twin], out=all_starts[1:])
    if all_starts[-1] > len(out):
        out = np.empty(int(all_starts[-1]), np.int32)
    copy_twins(twin, starts, slots, all_starts, out)
    return all_starts, out
