"""Counting with a matrix of bytes, TOPSS's "regular" matching."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.index.bits import Words, lowest
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.match.base import Slots
from tamis.match.topss.byte_counts import Bytes, by_event, full
from tamis.match.topss.counting import MatrixCounting

Int64s = NDArray[np.int64]
_TILE = 16_384  # counters of a tile stay in the first-level cache while rows are added to them


class CountingByte(MatrixCounting):
    """Add up the rows of the satisfied predicates; a row has one byte for each subscription.

    Stage 1 sets a bit for each satisfied predicate. For each of these the whole row of the matrix
    is added to the counters, without looking at what is in it; counters that have reached their
    subscription's number of predicates are matches.

    add, remove O(predicates of the clause); match O(satisfied predicates · subscriptions), and the
    memory is predicates × subscriptions bytes, up to `max_bytes`.
    TOPSS (2002), section 3.3, the byte matrix of section 5.1.2. The paper prints the cost as
    n_psat · m + m with m the number of predicates; it is the number of subscriptions. The paper
    takes one event through the whole matrix; we go tile by tile, so that a tile's rows are read
    from memory once a batch. It must lose to `scan` where most predicates are satisfied, or where
    few subscriptions share one: a row costs the same if it holds a single association.
    """

    name = "counting-byte"

    def _associate(self, ids: Int64s, slots: Slots) -> None:
        by_row = np.argsort(ids, kind="stable")  # the memory of a large matrix is touched in order
        self._matrix[ids[by_row], slots[by_row]] = 1

    def _dissociate(self, ids: Int64s, slots: Slots) -> None:
        self._matrix[ids, slots] = 0

    def _total(self) -> int:
        return int(self._matrix.sum())

    def _count(self, bits: Words) -> tuple[Int64s, Int64s, int, int]:
        ends, slots, rows = _count(bits, self._matrix, self._wanted[: self._matrix.shape[1]])
        starts, found = by_event(ends, len(bits), slots)
        return starts, found, rows, rows * len(self.clauses)


@kernel
def _count(bits: Words, matrix: Bytes, wanted: Bytes) -> tuple[Int64s, Int64s, int]:
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
                    for i in range(size):  # compiled to SIMD; all of the time goes here
                        hits[i] += row[i]
                    word &= word - np.uint64(1)
                    rows += tile == 0
            out = ensure_capacity(out, found, size + 1)
            found = full(hits[:size], wanted[start : start + size], start, out, found)
            ends[tile * events + event] = found
    return ends, out[:found], rows
