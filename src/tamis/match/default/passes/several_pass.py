"""Match an event with several values of one attribute against a family: any value may match."""

from __future__ import annotations

import numpy as np

from tamis.index.kernel import kernel
from tamis.match.default.passes.event_arrays import LINES, Doubts, Events
from tamis.match.default.passes.vector import WORDS, or_lines, trailing
from tamis.match.default.structure.cells import ValueCells
from tamis.match.default.structure.family import BLOCK, Family


@kernel
def pass_several(
    family: Family,
    cells: ValueCells,
    events: Events,
    e: int,
    blocks: tuple[int, int],
    doubts: Doubts,
) -> int:
    """The candidates of an event with several values of some attribute. All must be verified.

    For each column, takes the OR of the lines of its values, or the "not bound" line. Returns 0, or
    -2 if `doubts` is full.
    """
    starts, attribute, _, cell, _ = events
    base, column_of, slot_of, bits = family.base, family.column_of, family.slot_of, family.bits
    start, row_of_cell = cells.start, cells.row_of_cell
    doubt_event, doubt_slot, _, doubt_many = doubts
    each = int(base[-1])
    columns = len(family.attribute)
    rows = np.empty(starts[e + 1] - starts[e] + columns, np.uint16)  # of all columns
    first = np.zeros(columns + 1, np.int64)
    for k in range(columns):
        first[k + 1] = first[k]
        for pair in range(starts[e], starts[e + 1]):
            a = attribute[pair]
            if a < len(column_of) and column_of[a] == k:
                rows[first[k + 1]] = base[k] + row_of_cell[start[a] + a + cell[pair] - 1]
                first[k + 1] += 1
        if first[k + 1] == first[k]:
            rows[first[k]] = base[k]
            first[k + 1] += 1
    line, left = np.empty(WORDS, np.uint64), np.empty(WORDS, np.uint64)
    doubtful = doubt_many[0]
    doubt_many[LINES] += (blocks[1] - blocks[0]) * first[columns]
    for block in range(blocks[0], blocks[1]):
        if doubtful + BLOCK > len(doubt_event):
            return -2
        left[:] = ~np.uint64(0)
        for k in range(columns):
            many = first[k + 1] - first[k]
            or_lines(bits, WORDS * block * each, rows, first[k], many, line, 0)
            for w in range(WORDS):
                left[w] &= line[w]
        for w in range(WORDS):
            word = left[w]
            while word != 0:
                doubt_event[doubtful] = e
                doubt_slot[doubtful] = slot_of[BLOCK * block + 64 * w + trailing(word)]
                doubtful += 1
                word &= word - np.uint64(1)
    doubt_many[0] = doubtful
    return 0
