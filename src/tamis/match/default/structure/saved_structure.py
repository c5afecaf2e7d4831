"""Checks of a saved index: every offset, slot and attribute that a kernel follows is in range.

An index that passes may still give wrong answers if someone forged it, but no kernel reads or
writes outside its arrays, and none loops for ever.
"""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int8s, Int64s
from tamis.files.saved_checks import require, rising, within
from tamis.index.kernel import kernel
from tamis.match.default.passes.vector import LANES, WORDS
from tamis.match.default.structure.buckets import (
    BUCKET,
    CLASSES,
    ENTRY,
    KEYS,
    LIVE,
    NOTHING,
    POOL_TOP,
    VALUES,
    VALUES_SHIFT,
    VALUES_TOP,
    Buckets,
    slot_in,
)
from tamis.match.default.structure.cells import ValueCells
from tamis.match.default.structure.family import BLOCK, COLUMNS, FREE, TOP, Family, blocks_of
from tamis.match.default.structure.family import LIVE as PLACES
from tamis.match.default.structure.routes import (
    BUCKET as IN_BUCKET,
)
from tamis.match.default.structure.routes import (
    COSTS,
    DENSE,
    NOWHERE,
    SPARSE,
    WHOLE,
    RoutedIndex,
    Schemes,
)


def check_index(index: RoutedIndex, live: Int64s, width: int) -> None:
    """Refuse an index that does not fit the live slots and the `width` of the clause table."""
    known = len(index.cells.bound)
    require(known <= width, "the plan knows attributes of clauses")
    _check_cells(index.cells, known)
    _check_schemes(index.schemes, known)
    require(len(index.costs) == COSTS, "each cost is known")
    kind = index.kind
    require(len(kind) == len(index.scheme) == len(index.place), "each slot has a place")
    within("live", live, 0, len(kind))
    within("kind", kind, NOWHERE, DENSE + 1)
    require(np.array_equal(np.flatnonzero(kind), live), "every clause has a place")
    require(_fits(index.buckets, kind, known), "every bucket lies in the pool, by itself")
    for which, family in ((SPARSE, index.sparse), (DENSE, index.dense)):
        _check_family(family, index.cells, dense=which == DENSE)
        mine = np.flatnonzero(kind == which)
        place = index.place[mine]
        within("place", place, 0, len(family.slot_of))
        fits = np.array_equal(family.slot_of[place], mine)
        fits = fits and len(mine) == np.count_nonzero(family.slot_of >= 0) == family.head[PLACES]
        require(fits, "places and slots know each other")


def _check_cells(cells: ValueCells, width: int) -> None:
    start, row_start, guide = cells.start, cells.row_start, cells.guide
    rising("cells.start", start, width, len(cells.cuts))
    rising("cells.row_start", row_start, width, len(cells.row_cuts))
    cuts, rows = np.diff(start), np.diff(row_start)
    for name, more in (("row_of_cell", 1), ("single", 1), ("below", 2)):
        length = len(getattr(cells, name))
        require(length == len(cells.cuts) + more * width, f"each cell has its {name}")
    require(len(cells.row_below) == len(cells.row_cuts) + 2 * width, "each row has its share")
    within("cells.row_of_cell", cells.row_of_cell, 1, 256)
    last = np.repeat(rows + 1, cuts + 1)
    require(bool((cells.row_of_cell <= last).all()), "every cell is in a row of its attribute")
    require(len(guide.base) == len(guide.shift) == width, "each attribute has its guide")
    within("cells.guide.shift", guide.shift, 0, 64)
    rising("cells.guide.start", guide.start, width, len(guide.below))
    slots = np.diff(guide.start)
    require(bool((slots >= 2).all()), "each attribute has its guide")
    fits = (guide.below >= 0).all() and (guide.below <= np.repeat(cuts, slots)).all()
    require(fits, "the guide leads to cuts of its attribute")


def _check_schemes(schemes: Schemes, width: int) -> None:
    require(len(schemes.allowed) == len(schemes.used) == width, "each attribute has its grains")
    within("schemes.allowed", schemes.allowed, 0, 2 << WHOLE)
    within("schemes.used", schemes.used, 0, 2 << WHOLE)
    many = len(schemes.start) - 1
    rising("schemes.start", schemes.start, many, len(schemes.attribute))
    within("schemes.start", np.diff(schemes.start), 2, VALUES + 1)
    within("schemes.attribute", schemes.attribute, 0, width)
    rising("schemes.pivot", schemes.pivot, width, len(schemes.combined))
    within("schemes.combined", schemes.combined, 0, many)


def _check_family(family: Family, cells: ValueCells, *, dense: bool) -> None:
    attribute, column_of, head = family.attribute, family.column_of, family.head
    columns, width = len(attribute), len(cells.bound)
    require(columns > 0 and len(column_of) == width and len(head) == 4, "a family has columns")
    within("attribute", attribute, -1, width)
    real = np.flatnonzero(attribute >= 0)
    right = np.full(width, -1, np.int32)
    right[attribute[real]] = real
    fits = np.array_equal(column_of, right) and len(np.unique(attribute)) == columns
    require(fits, "columns and attributes know each other")
    rows = np.ones(columns, np.int64)
    rows[real] = np.diff(cells.row_start)[attribute[real]] + 2
    lines = int(rows.sum())
    base = np.concatenate([[0], np.cumsum(rows)])
    require(np.array_equal(family.base, base) and lines < 1 << 16, "each column has its rows")
    blocks, places = blocks_of(family), len(family.slot_of)
    require(places == blocks * BLOCK and head[TOP] >= 0, "every place is in a block")
    require(len(family.bits) == blocks * lines * WORDS, "each block has its lines")
    # The zones of a family that has shrunk may be longer.
    require(len(family.zone) >= -(-blocks // 64) * lines, "each block is in a zone")
    lanes = 0 if dense else BLOCK * LANES * -(-columns // COLUMNS)
    require(len(family.records) == blocks * lanes, "each place has its record")
    edges = max(1, blocks * (lines + 1) * WORDS) if dense else 0
    require(len(family.edges) == edges, "each block has its edges")
    free = np.flatnonzero(family.slot_of < 0)
    within("slot_of", -2 - family.slot_of[free].astype(np.int64), -1, max(0, int(head[TOP])))
    within("head", head[FREE : FREE + 1], -1, max(0, int(head[TOP])))
    # No line of the first column has the bit of a free place, so a free place never matches.
    first = family.bits.reshape(blocks, lines, WORDS)[:, : base[1]]
    some = np.bitwise_or.reduce(first, axis=1).reshape(-1)
    bits = some[free >> 6] >> (free & 63).astype(np.uint64)
    require(not (bits & np.uint64(1)).any(), "free places match nothing")


@kernel
def _fits(buckets: Buckets, kind: Int8s, width: int) -> bool:
    """Whether every bucket has a run of the pool for itself, with entries for its clauses."""
    key, bucket, pool, values, free, head = buckets
    if len(head) != 5 or len(free) != CLASSES or len(key) & (len(key) - 1) or len(key) < 2:
        return False
    top = len(pool) // ENTRY
    if len(bucket) != BUCKET * len(key) or len(pool) != ENTRY * top or head[POOL_TOP] != top:
        return False
    if head[VALUES_TOP] != len(values):
        return False
    taken = np.zeros(top, np.bool_)
    keys, entries, stored = 0, 0, 0
    for at in range(len(key)):
        if key[at] == 0:
            continue
        keys += 1
        many, value = bucket[BUCKET * at] >> VALUES_SHIFT, bucket[BUCKET * at + 1]
        start, size = bucket[BUCKET * at + 2], bucket[BUCKET * at + 3] >> 8
        grade = bucket[BUCKET * at + 3] & 0xFF
        if not 1 <= many <= VALUES or grade >= CLASSES:
            return False
        if many > 1:
            stored += many
            if value < 0 or value > len(values) - many:
                return False
        capacity = (1 << grade) >> 1
        if size < 0 or size > capacity or (capacity and (start < 0 or start > top - capacity)):
            return False
        for place in range(start, start + capacity):
            if taken[place]:
                return False
            taken[place] = True
        for place in range(start, start + size):
            entries += 1
            slot = slot_in(pool[ENTRY * place])
            if slot >= len(kind) or kind[slot] != IN_BUCKET:
                return False
            for i in range(1, ENTRY):
                constraint = pool[ENTRY * place + i]
                if constraint != NOTHING and constraint & 0xFFFF >= width:
                    return False
    for grade in range(1, CLASSES):
        capacity = 1 << (grade - 1)
        start = free[grade]
        while start >= 0:
            if start > top - capacity:
                return False
            for place in range(start, start + capacity):
                if taken[place]:
                    return False
                taken[place] = True
            start = pool[ENTRY * start]
    full = 2 * keys > len(key) or stored > len(values)
    return bool(keys == head[KEYS] and entries == head[LIVE] and not full)
