"""Counting with a matrix of bytes, the "regular" matching of TOPSS."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int64s, UInt8s
from tamis.index.bits import Words, lowest
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.match.base import Slots
from tamis.match.topss.byte_counts import by_event, full
from tamis.match.topss.counting import MatrixCounting

_TILE = 16_384  # the counters of a tile stay in the L1 cache while rows are added to them


class CountingByte(MatrixCounting):
    """Add up the matrix rows of the satisfied predicates; a row has one byte per subscription.

    Stage 1 sets a bit for each satisfied predicate. Stage 2 adds the whole matrix row of each such
    predicate to the counters, whatever it contains. A subscription matches when its counter reaches
    its number of predicates.

    add, remove O(predicates of the clause); match O(satisfied predicates · subscriptions). The
    memory is predicates × subscriptions bytes, up to `max_bytes`.

    TOPSS (2002), section 3.3, the byte matrix of section 5.1.2. The paper gives the cost as
    n_psat · m + m with m the number of predicates; m must be the number of subscriptions. The paper
    takes one event through the whole matrix. We work tile by tile, so that a batch reads the rows
    of a tile from memory only once. It is slower than `scan` when most predicates are satisfied, or
    when few subscriptions share a predicate: a row costs the same for a single association.

    Tally: `subscriptions` has the additions, one for each satisfied predicate and subscription.
    """

    name = "counting-byte"

    def _mark(self, ids: Int64s, slots: Slots, on: bool) -> None:
        self._matrix[ids, slots] = on

    def _total(self) -> int:
        return int(self._matrix.sum())

    def _count(self, bits: Words) -> tuple[Int64s, Int64s, int, int]:
        ends, slots, rows = _count(bits, self._matrix, self._wanted[: self._matrix.shape[1]])
        starts, found = by_event(ends, len(bits), slots)
        return starts, found, rows, rows * len(self.clauses)


@kernel
def _count(bits: Words, matrix: UInt8s, wanted: UInt8s) -> tuple[Int64s, Int64s, int]:
    events = len(bits)
    tiles = (len(wanted) + _TILE - 1) // _TILE
    ends = np.zeros(tiles * events, np.int64)
    out = np.empty(1024, np.int64)
    found = 0
    rows = 0
    hits = np.zeros(_TILE, np.uint8)
    for tile in range(tiles):
        start = tile * _TILE
        size = min(_TILE, len(wanted) - start)
        for event in range(events):
            for number in range(bits.shape[1]):
                word = bits[event, number]
                while word != 0:
                    row = matrix[(number << 6) + lowest(word), start : start + size]
                    for i in range(size):  # the hot loop, compiled to SIMD
                        hits[i] += row[i]
                    word &= word - np.uint64(1)
                    rows += tile == 0
            out = ensure_capacity(out, found, size + 1)
            found = full(hits[:size], wanted[start : start + size], start, out, found)
            ends[tile * events + event] = found
    return ends, out[:found], rows
