"""Equal events of a batch ("twins"): one is matched, and the answer is copied to the others.

Publishers repeat themselves: a sensor reports the same reading, a price is quoted again, a message
is retried. Detecting this takes some 0.1 µs per event. Copying an answer takes a fraction of the
time to compute it.
"""

from __future__ import annotations

import numpy as np

from tamis.encode.batch import Pairs
from tamis.files.arrays import Int32s, Int64s, offsets, runs
from tamis.index.kernel import kernel
from tamis.match.default.structure.buckets import first_hash, last_hash, next_hash, seed

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
        """As `without_twins`, but all events and None if the search is skipped."""
        many = len(pairs.starts) - 1
        if many >= _MANY and self._rest:
            self._rest -= 1
            return pairs, None
        fewer, twin, different = without_twins(pairs)
        if many >= _MANY:
            self._rest = _REST if different > _HARDLY * many else 0
        return fewer, twin


def without_twins(pairs: Pairs) -> tuple[Pairs, Int32s | None, int]:
    """The distinct events, which of them each event equals, and their number.

    If too few events are equal, all events and None.
    """
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
    fewer, rows = runs(starts[first], np.diff(starts)[first])
    return Pairs(fewer, attribute[rows], code[rows]), twin, different


def with_twins(twin: Int32s, starts: Int64s, slots: Int32s, out: Int32s) -> tuple[Int64s, Int32s]:
    """Expand the answer for the distinct events to all events: starts and slots.

    The slots are written to `out`, or to a longer array if `out` is too short.
    """
    all_starts = offsets(np.diff(starts)[twin])
    if all_starts[-1] > len(out):
        out = np.empty(int(all_starts[-1]), np.int32)
    copy_twins(twin, starts, slots, all_starts, out)
    return all_starts, out


@kernel
def find_twins(
    starts: Int64s, attribute: Int32s, code: Int64s, table: Int32s, twin: Int32s, seed: int
) -> int:
    """Number the distinct events, and write the number of each event to `twin`.

    `table` is scratch space. Its length is a power of two, at least twice the number of events.
    Returns the number of distinct events.
    """
    table[:] = -1
    mask = len(table) - 1
    different = 0
    first = np.empty(len(starts), np.int32)  # the position of each distinct event
    for e in range(len(starts) - 1):
        hash = first_hash(starts[e + 1] - starts[e], seed)
        for pair in range(starts[e], starts[e + 1]):
            hash = next_hash(hash, code[pair] ^ (np.int64(attribute[pair]) << 40))
        at = last_hash(hash) & mask
        while table[at] >= 0 and not _same(starts, attribute, code, e, first[table[at]]):
            at = (at + 1) & mask
        if table[at] < 0:
            table[at] = different
            first[different] = e
            different += 1
        twin[e] = table[at]
    return different


@kernel
def _same(starts: Int64s, attribute: Int32s, code: Int64s, one: int, other: int) -> bool:
    size = starts[one + 1] - starts[one]
    if starts[other + 1] - starts[other] != size:
        return False
    for i in range(size):
        if attribute[starts[one] + i] != attribute[starts[other] + i]:
            return False
        if code[starts[one] + i] != code[starts[other] + i]:
            return False
    return True


@kernel
def copy_twins(
    twin: Int32s, starts: Int64s, slots: Int32s, out_starts: Int64s, out: Int32s
) -> None:
    """Copy to each event the slots of its twin. `starts` is for the distinct events."""
    for e in range(len(twin)):
        begin, to = starts[twin[e]], out_starts[e]
        for i in range(out_starts[e + 1] - to):
            out[to + i] = slots[begin + i]
