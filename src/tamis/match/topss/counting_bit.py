"""Counting with a matrix of bits, the "bit-wise" matching of TOPSS."""

from __future__ import annotations

import numpy as np

from tamis.encode.terms import Terms
from tamis.files.arrays import Int64s, UInt8s
from tamis.index.bits import Words, clear_bit, lowest, set_bit
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.match.base import Slots
from tamis.match.options import choice
from tamis.match.topss.bit_rows import count_bytes
from tamis.match.topss.byte_counts import by_event
from tamis.match.topss.counting import MatrixCounting

_PLANES = 8  # binary digits of a counter: it counts to 255
_TILE = 512  # words of 64 slots: the planes of a tile stay in the L1 cache
_RUN = 32  # words that are skipped together if all are zero


class CountingBit(MatrixCounting):
    """Add up the matrix rows of the satisfied predicates, 64 subscriptions at a time.

    This is `counting-byte` with one bit per predicate and subscription. Counters are stored in
    planes, one per binary digit, so that adding a row takes a few logical operations on whole
    words. Runs of zero words are skipped. Counters and numbers of predicates are compared in the
    same way.

    add, remove O(predicates of the clause); match O(satisfied predicates · subscriptions / 64). The
    memory is predicates × subscriptions / 8 bytes, up to `max_bytes`.

    TOPSS (2002), section 3.3, the bit matrix. The paper keeps one byte per counter and processes
    "several subscriptions simultaneously" without saying how. `counters="bytes"` follows it: a word
    without associations is passed over at once, and each bit of another word raises one byte. Rows
    with many bits are then slower than in the byte matrix, which vectorises well; so our counters
    are in planes too. A batch is processed tile by tile as in `counting-byte`. It is slower than
    `scan` when few subscriptions share a predicate: nearly all words read are then zero.

    Tally: `subscriptions` has the additions, one for each satisfied predicate and subscription with
    planes, one for each association of a satisfied predicate with bytes.
    """

    counters = choice("planes", "how hits are counted", "planes", "bytes")

    name = "counting-bit"
    kind = np.uint64
    packed = 64

    def clear(self) -> None:
        super().clear()
        self._digits = np.zeros((_PLANES, 0), np.uint64)  # digits of each slot's predicate count

    def check(self) -> None:
        super().check()
        if self.counters == "bytes":
            return
        wanted = np.zeros(64 * self._digits.shape[1], np.int64)
        for plane in range(_PLANES):
            bits = np.unpackbits(self._digits[plane].view(np.uint8), bitorder="little")
            wanted += bits.astype(np.int64) << plane
        size = min(len(wanted), len(self._wanted))
        assert (wanted[:size] == self._wanted[:size]).all(), "planes and bytes agree"
        assert not wanted[size:].any()
        assert not self._wanted[size:].any()

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        super().index_clauses(slots, terms)
        if self.counters == "bytes":
            return
        columns = self._matrix.shape[1]
        if self._digits.shape[1] < columns:
            more = columns - self._digits.shape[1]
            self._digits = np.hstack([self._digits, np.zeros((_PLANES, more), np.uint64)])
        _write(self._digits, slots, self._wanted)

    def drop_clauses(self, slots: Slots) -> None:
        super().drop_clauses(slots)
        if self.counters == "planes":
            _write(self._digits, slots, self._wanted)

    def _mark(self, ids: Int64s, slots: Slots, on: bool) -> None:
        _write_all(self._matrix, ids, slots, on)

    def _total(self) -> int:
        return int(np.bitwise_count(self._matrix).sum())

    @property
    def _counting_bytes(self) -> int:
        return super()._counting_bytes + self._digits.nbytes

    def _count(self, bits: Words) -> tuple[Int64s, Int64s, int, int]:
        if self.counters == "bytes":
            ends, slots, rows, raised = count_bytes(bits, self._matrix, self._wanted)
            starts, found = by_event(ends, len(bits), slots)
            return starts, found, rows * self._matrix.shape[1], raised
        used = int(self._wanted.max(initial=0)).bit_length()
        ends, slots, rows = _count(bits, self._matrix, self._digits[:used])
        starts, found = by_event(ends, len(bits), slots)
        return starts, found, rows * self._matrix.shape[1], rows * len(self.clauses)


@kernel
def _write(digits: Words, slots: Int64s, wanted: UInt8s) -> None:
    """Write the digits of some slots' numbers of predicates into the planes."""
    for slot in slots:
        for plane in range(len(digits)):
            _write_bit(digits[plane], slot, (wanted[slot] >> plane) & 1 == 1)


@kernel
def _write_all(matrix: Words, ids: Int64s, slots: Int64s, on: bool) -> None:
    for i in range(len(ids)):
        _write_bit(matrix[ids[i]], slots[i], on)


@kernel
def _write_bit(words: Words, place: int, on: bool) -> None:
    if on:
        set_bit(words, place)
    else:
        clear_bit(words, place)


@kernel
def _count(bits: Words, matrix: Words, digits: Words) -> tuple[Int64s, Int64s, int]:
    events = len(bits)
    columns = matrix.shape[1]
    tiles = (columns + _TILE - 1) // _TILE
    ends = np.zeros(tiles * events, np.int64)
    out = np.empty(1024, np.int64)
    found = 0
    rows = 0
    planes = np.zeros((len(digits), _TILE), np.uint64)
    carry = np.zeros(_RUN, np.uint64)
    for tile in range(tiles):
        start = tile * _TILE
        size = min(_TILE, columns - start)
        for event in range(events):
            for number in range(bits.shape[1]):
                word = bits[event, number]
                while word != 0:
                    row = matrix[(number << 6) + lowest(word), start : start + size]
                    word &= word - np.uint64(1)
                    rows += tile == 0
                    _add(row, planes, carry)
            out = ensure_capacity(out, found, 64 * size)
            found = _full(planes, digits[:, start : start + size], 64 * start, out, found)
            planes[:] = np.uint64(0)
            ends[tile * events + event] = found
    return ends, out[:found], rows


@kernel
def _add(row: Words, planes: Words, carry: Words) -> None:
    """Add one to the counters of the bits set in a row. All of the time goes here."""
    for start in range(0, len(row), _RUN):
        size = min(_RUN, len(row) - start)
        part = row[start : start + size]
        left = np.uint64(0)
        for i in range(size):  # sparse rows mostly stop here: their only cost is this read
            left |= part[i]
        if left == 0:
            continue
        carry[:size] = part
        plane = 0
        while left != 0:  # ends: no counter exceeds its target, so no carry leaves the last plane
            left = np.uint64(0)
            digit = planes[plane, start : start + size]
            for i in range(size):  # compiled to SIMD
                before = digit[i]
                digit[i] = before ^ carry[i]
                carry[i] &= before
                left |= carry[i]
            plane += 1


@kernel
def _full(planes: Words, digits: Words, base: int, out: Int64s, found: int) -> int:
    """Append the slots (from `base` on) whose counter equals their target and is not zero."""
    for i in range(digits.shape[1]):
        wanting = np.uint64(0)
        other = np.uint64(0)
        for plane in range(len(digits)):
            wanting |= digits[plane, i]
            other |= digits[plane, i] ^ planes[plane, i]
        word = wanting & ~other
        while word != 0:
            out[found] = base + (i << 6) + lowest(word)
            word &= word - np.uint64(1)
            found += 1
    return found
