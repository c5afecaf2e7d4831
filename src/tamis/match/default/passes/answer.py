"""The answer to a batch, put together from what the passes found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import kernel
from tamis.match.default.passes.vector import PACKED, WORDS, pack, popcount, trailing

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
Words = NDArray[np.uint64]
_TILE = 8  # blocks: their slots stay in the first-level cache while all events pass
_CROWDED = 5  # bits of a word from which on packing all at once beats taking one by one


@kernel
def count_pairs(event: Int32s, counts: Int64s) -> None:
    """Add pairs to the counts of their events. Pairs of one event mostly stand together."""
    i = 0
    while i < len(event):
        e, first = event[i], i
        while i < len(event) and event[i] == e:
            i += 1
        counts[e] += i - first


@kernel
def place_runs(slots: Int32s, counts: Int64s, cursor: Int64s, out: Int32s) -> None:
    """Copy the slots of events, which lie together, event by event."""
    at = 0
    for e in range(len(counts)):
        to = cursor[e]
        for i in range(counts[e]):
            out[to + i] = slots[at + i]
        cursor[e] += counts[e]
        at += counts[e]


@kernel
def place_pairs(event: Int32s, slot: Int32s, cursor: Int64s, out: Int32s) -> None:
    """Write pairs to where the next slot of their event goes."""
    i = 0
    while i < len(event):
        e = event[i]
        to = cursor[e]
        while i < len(event) and event[i] == e:
            out[to] = slot[i]
            to += 1
            i += 1
        cursor[e] = to


@kernel
def place_bits(
    words: Words, width: int, slot_of: Int32s, cursor: Int64s, ends: Int64s, out: Int32s
) -> None:
    """Write the slots of all bits, `width` words to an event.

    Event e's slots end before `ends[e]`. Sixteen are packed at once where that does not reach into
    the next event's place.
    """
    for tile in range(0, width, _TILE * WORDS):
        stop = min(tile + _TILE * WORDS, width)
        for e in range(len(cursor)):
            to, end = cursor[e], ends[e]
            for w in range(tile, stop):
                word = words[e * width + w]
                if word == 0:
                    continue
                many = popcount(word)
                if many >= _CROWDED and to + many + PACKED <= end:
                    for part in range(0, 64, PACKED):
                        some = (word >> np.uint64(part)) & np.uint64(0xFFFF)
                        pack(slot_of, 64 * w + part, some, out, to)
                        to += popcount(some)
                else:
                    while word != 0:
                        out[to] = slot_of[64 * w + trailing(word)]
                        to += 1
                        word &= word - np.uint64(1)
            cursor[e] = to
