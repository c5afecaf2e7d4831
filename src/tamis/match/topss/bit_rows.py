"""Count along rows of a bit matrix with a byte per subscription, as TOPSS publishes it."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int64s, UInt8s
from tamis.index.bits import Words, lowest
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.match.topss.byte_counts import full

_TILE = 256  # words of 64 slots: the counters of a tile stay in the L1 cache


@kernel
def count_bytes(bits: Words, matrix: Words, wanted: UInt8s) -> tuple[Int64s, Int64s, int, int]:
    """Where the runs of found slots end (see `by_event`), the slots, rows read, counters raised.

    A word without associations is passed over with one comparison. The other words raise the
    counter of each set bit.
    """
    events = len(bits)
    columns = min(matrix.shape[1], (len(wanted) + 63) // 64)
    tiles = (columns + _TILE - 1) // _TILE
    ends = np.zeros(tiles * events, np.int64)
    out = np.empty(1024, np.int64)
    hits = np.zeros(64 * _TILE, np.uint8)
    filled = np.empty(_TILE + 1, np.int64)
    found = rows = raised = 0
    for tile in range(tiles):
        start = tile * _TILE
        size = min(_TILE, columns - start)
        slots = min(64 * size, len(wanted) - 64 * start)
        for event in range(events):
            for number in range(bits.shape[1]):
                word = bits[event, number]
                while word != 0:
                    row = matrix[(number << 6) + lowest(word), start : start + size]
                    word &= word - np.uint64(1)
                    rows += tile == 0
                    raised += _raise(row, hits, filled)
            out = ensure_capacity(out, found, slots + 1)
            base = 64 * start
            found = full(hits[:slots], wanted[base : base + slots], base, out, found)
            ends[tile * events + event] = found
    return ends, out[:found], rows, raised


@kernel
def _raise(row: Words, hits: UInt8s, filled: Int64s) -> int:
    """Add one to the counter of each set bit; returns their number. All of the time goes here.

    `filled` is space for the places of words that are not zero. They are listed first, without a
    branch that would be mispredicted for every third word.
    """
    many = raised = 0
    for i in range(len(row)):
        filled[many] = i
        many += row[i] != 0
    for k in range(many):
        i = filled[k]
        word = row[i]
        while word != 0:
            hits[(i << 6) + lowest(word)] += 1
            word &= word - np.uint64(1)
            raised += 1
    return raised
