"""A family: clauses as bitmaps, one line of bits for each row of each column.

A column is an attribute. Its rows are those of `cells`; row 0 is for events that do not bind it.
Bit i of a line is set if clause i holds in that row or does not constrain the attribute. The AND of
one line per column is the set of candidates. The lines of a block of 512 clauses are contiguous,
one cache line each, so the block stays in cache while a batch of events passes over it.

Candidates are decided in one of two ways. A sparse family has *records*: the bounds of a clause as
cells, 32 lanes per line, compared in one step. A dense family, where many clauses match, has
*edges*: lines that mark the clauses with an interval that begins or ends inside a row. Clauses that
a family cannot express are verified one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int16s, Int32s, Int64s, offsets
from tamis.index.bits import Words
from tamis.index.clauses import MISSING, NONE
from tamis.index.kernel import inlined, kernel
from tamis.match.default.passes.vector import LANES, WORDS
from tamis.match.default.structure.cells import HIGHEST, LOWEST, ValueCells, cell_of, closes, opens
from tamis.match.default.structure.packed_clauses import COUNT_BITS, COUNT_MASK, ROW

BLOCK = 64 * WORDS  # clauses per block
COLUMNS = 15  # per line of a record: the last lane is the flag
NO_BOUND = -32768
_LINE = 64  # bytes
TOP, FREE, LIVE, EDGED = range(4)  # positions in `head`; EDGED counts clauses marked in `edges`


class Family(NamedTuple):
    """The arrays, as kernels see them.

    Line r of block b is `bits[8 (b lines + r):][:8]`. Column k has the rows `base[k]` to
    `base[k + 1] - 1`. `zone[b // 64 * lines + r]` has a bit for each of 64 blocks: whether line r
    of that block has any bit set. Clause i of block b is at place `512 b + i`. `slot_of` is the
    slot of a place, or negative if the place is free.
    """

    attribute: Int32s
    base: Int32s
    column_of: Int32s  # the column of each attribute, or -1
    bits: Words
    edges: Words  # like bits, plus one line for clauses to verify; empty in a sparse family
    zone: Words
    records: Int16s  # empty in a dense family
    slot_of: Int32s
    head: Int64s


def make_family(attributes: Int32s, cells: ValueCells, *, dense: bool) -> Family:
    """An empty family with these attributes as columns."""
    if not len(attributes):
        attributes = np.array([-1], np.int32)  # a column that no event binds
    rows = np.ones(len(attributes), np.int64)
    real = attributes >= 0
    rows[real] = np.diff(cells.row_start)[attributes[real]] + 2
    base = offsets(rows).astype(np.int32)
    column_of = np.full(len(cells.bound), -1, np.int32)
    column_of[attributes[real]] = np.flatnonzero(real)
    no_words = np.zeros(0, np.uint64)
    return Family(
        attributes.astype(np.int32),
        base,
        column_of,
        no_words,
        np.zeros(1 if dense else 0, np.uint64),
        no_words.copy(),
        np.zeros(0, np.int16),
        np.zeros(0, np.int32),
        np.array([0, -1, 0, 0], np.int64),
    )


def is_dense(family: Family) -> bool:
    """Whether the family is dense: it has edges, not records."""
    return len(family.edges) > 0


def family_with_room(family: Family, more: int) -> Family:
    """The family with capacity for `more` further clauses."""
    blocks = len(family.slot_of) // BLOCK
    needed = -(-(int(family.head[TOP]) + more) // BLOCK)
    if needed <= blocks:
        return family
    blocks = max(needed, blocks + blocks // 4)
    each = int(family.base[-1])  # lines per block
    dense = is_dense(family)
    lanes = 0 if dense else BLOCK * LANES * -(-len(family.attribute) // COLUMNS)
    return family._replace(
        bits=_fit(family.bits, blocks * each * WORDS),
        edges=_fit(family.edges, blocks * (each + 1) * WORDS if dense else 0),
        zone=_fit(family.zone, -(-blocks // 64) * each),
        records=_fit(family.records, blocks * lanes),
        slot_of=_fit(family.slot_of, blocks * BLOCK, -1),
    )


def blocks_of(family: Family) -> int:
    """The number of blocks in use."""
    return -(-int(family.head[TOP]) // BLOCK)


def _fit(array: NDArray[Any], size: int, fill: int = 0) -> NDArray[Any]:
    if size <= len(array):
        return array
    wider = aligned(size, array.dtype)
    wider[: len(array)] = array
    if fill:
        wider[len(array) :] = fill
    return wider


def aligned(size: int, kind: Any) -> NDArray[Any]:
    """Zeros, aligned so that a line of bits never straddles two cache lines.

    The system provides zeroed pages lazily, so they cost nothing before they are used.
    """
    step = np.dtype(kind).itemsize
    raw = np.zeros(size * step + _LINE, np.uint8)
    skip = -raw.ctypes.data % _LINE
    return raw[skip : skip + size * step].view(kind)


@inlined
def _mark(words: Words, line: int, place: int, on: bool) -> None:
    """Set or clear the bit of a clause in a line."""
    at = WORDS * line + ((place >> 6) & (WORDS - 1))
    bit = np.uint64(1) << np.uint64(place & 63)
    if on:
        words[at] |= bit
    else:
        words[at] &= ~bit


@inlined
def take_place(slot_of: Int32s, head: Int64s) -> int:
    """Take a free place. The family must have capacity."""
    place = head[FREE]
    if place >= 0:
        head[FREE] = -2 - np.int64(slot_of[place])
    else:
        place = head[TOP]
        head[TOP] += 1
    head[LIVE] += 1
    return int(place)


@kernel
def leave_place(family: Family, place: int) -> None:
    """Free a place. Clears its bits in the first column, so that it never matches."""
    _, base, _, bits, _, _, _, slot_of, head = family
    block = place // BLOCK
    first = block * int(base[-1])
    for r in range(base[0], base[1]):
        _mark(bits, first + r, place, False)
    slot_of[place] = -2 - head[FREE]
    head[FREE] = place
    head[LIVE] -= 1


@kernel
def write(
    family: Family, cells: ValueCells, where: Int64s, rows: Int64s, place: int, slot: int
) -> None:
    """Write the clause of a slot to a place, replacing the old contents."""
    attribute, base, column_of, bits, edges, zone, records, slot_of, head = family
    start, cuts, row_start, row_cuts = cells[:4]
    lines = int(base[-1])
    block = place // BLOCK
    first = block * lines
    edge_first = block * (lines + 1)
    dense = len(edges) > 0
    width = -(-len(attribute) // COLUMNS) * LANES
    record = place * width
    for r in range(lines):
        _mark(bits, first + r, place, True)
    if dense:
        for r in range(lines + 1):
            _mark(edges, edge_first + r, place, False)
    else:
        for i in range(width):
            records[record + i] = NO_BOUND
    slot_of[place] = slot
    at = where[slot]
    begin = ROW * (at >> COUNT_BITS)
    end = begin + ROW * (at & COUNT_MASK)
    special = False
    edged = False
    row = begin
    while row < end:
        what = rows[row]
        stop = row + ROW
        while stop < end and rows[stop] == what:
            stop += ROW
        a = what >> 32
        kind = what & 0xFF
        again = row > begin and rows[row - ROW] >> 32 == a
        k = column_of[a] if a < len(column_of) else -1
        special |= k < 0 or again or kind == NONE
        if k >= 0 and not again:
            low_row, high_row = base[k], base[k + 1]
            for r in range(low_row, high_row):
                _mark(bits, first + r, place, False)
            if kind == MISSING:
                _mark(bits, first + low_row, place, True)
            elif kind == NONE:
                for r in range(low_row + 1, high_row):
                    _mark(bits, first + r, place, True)
            else:
                for i in range(row, stop, ROW):
                    low, high = rows[i + 1], rows[i + 2]
                    from_row = cell_of(row_start, row_cuts, a, low) + 1
                    to_row = cell_of(row_start, row_cuts, a, high) + 1
                    for r in range(low_row + from_row, low_row + to_row + 1):
                        _mark(bits, first + r, place, True)
                    if dense:
                        if low != LOWEST and not opens(row_start, row_cuts, a, from_row - 1, low):
                            _mark(edges, edge_first + low_row + from_row, place, True)
                            edged = True
                        if high != HIGHEST and not closes(row_start, row_cuts, a, to_row - 1, high):
                            _mark(edges, edge_first + low_row + to_row, place, True)
                            edged = True
                if not dense:
                    if stop == row + ROW:
                        lane = record + k // COLUMNS * LANES + k % COLUMNS
                        low, high = rows[row + 1], rows[row + 2]
                        records[lane] = lower_lane(start, cuts, a, low)
                        records[lane + LANES // 2] = -upper_lane(start, cuts, a, high)
                    else:
                        special = True
        row = stop
    head[EDGED] += edged or special
    if special:
        if dense:
            _mark(edges, edge_first + lines, place, True)
        else:
            records[record + COLUMNS] = 0  # equals the event's lane: at most "may match"
    group = block // 64 * lines
    bit = np.uint64(1) << np.uint64(block & 63)
    for r in range(lines):
        if bits[WORDS * (first + r) + ((place >> 6) & (WORDS - 1))] != 0:
            zone[group + r] |= bit


@inlined
def lower_lane(start: Int64s, cuts: Int64s, attribute: int, low: int) -> int:
    """A lower bound as a lane: events above it satisfy it; events equal to it may."""
    lane = NO_BOUND
    if low != LOWEST:
        cell = cell_of(start, cuts, attribute, low)
        lane = cell if opens(start, cuts, attribute, cell, low) else cell + 1
    return lane


@inlined
def upper_lane(start: Int64s, cuts: Int64s, attribute: int, high: int) -> int:
    """An upper bound as a lane: events below it satisfy it; events equal to it may."""
    lane = -NO_BOUND
    if high != HIGHEST:
        cell = cell_of(start, cuts, attribute, high)
        lane = cell + 2 if closes(start, cuts, attribute, cell, high) else cell + 1
    return lane
