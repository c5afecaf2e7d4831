"""Assemble the answer to a batch from the results of the passes."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.bits import Words
from tamis.index.kernel import kernel
from tamis.match.default.passes.vector import PACKED, WORDS, pack, popcount, trailing

_TILE = 8  # blocks whose slots stay in the L1 cache while all events pass
_CROWDED = 5  # with at least this many bits set in a word, packing beats extracting one by one


@kernel
def count_pairs(event: Int32s, counts: Int64s) -> None:
    """Add pairs to the counts of their events. Pairs of one event are mostly adjacent."""
    i = 0
    while i < len(event):
        e, first = event[i], i
        while i < len(event) and event[i] == e:
            i += 1
        counts[e] += i - first


@kernel
def place_runs(slots: Int32s, counts: Int64s, cursor: Int64s, out: Int32s) -> None:
    """Copy the slots of events. In `slots` they are contiguous, event by event."""
    at = 0
    for e in range(len(counts)):
        to = cursor[e]
        for i in range(counts[e]):
            out[to + i] = slots[at + i]
        cursor[e] += counts[e]
        at += counts[e]


@kernel
def place_pairs(event: Int32s, slot: Int32s, cursor: Int64s, out: Int32s) -> None:
    """Write the slot of each pair at the cursor of its event."""
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
    """Write the slots of all set bits. Each event has `width` words.

    The slots of event e end before `ends[e]`. Sixteen are packed at a time if that does not
    overwrite the slots of the next event.
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
