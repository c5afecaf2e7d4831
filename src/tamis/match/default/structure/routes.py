"""Routes: which structure holds a clause, chosen once by expected cost.

A clause can be in a bucket, under a key that an event must have for the clause to hold, or in one
of two families of bitmaps. In a bucket it costs time only for events that have the key. In a family
it costs a few bits for every event, and more if the bitmaps let it through. Both costs are
estimated from how often events bind each attribute and where their values fall (`cells`), and from
the time of each step on this machine (`costs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import (
    Arrays,
    Floats,
    Int8s,
    Int32s,
    Int64s,
    add_prefix,
    flatten,
    offsets,
    unflatten,
)
from tamis.index.clauses import MISSING, NONE, SOME
from tamis.index.kernel import inlined, kernel
from tamis.match.default.structure.buckets import (
    COMBINED,
    ENTRY,
    GRAINS,
    POOL_TOP,
    VALUES_TOP,
    Buckets,
    no_buckets,
)
from tamis.match.default.structure.cells import HIGHEST, LOWEST, ValueCells, cell_of, closes, opens
from tamis.match.default.structure.family import BLOCK, Family, blocks_of, make_family
from tamis.match.default.structure.guide import make_guide
from tamis.match.default.structure.packed_clauses import COUNT_BITS, COUNT_MASK, ROW

NOWHERE, BUCKET, SPARSE, DENSE = 0, 1, 2, 3
PROBE, VISIT, VERIFY, LINE, CHECK, BIT, SPARSE_LINES, DENSE_LINES, DENSE_FROM = range(9)
"""Positions in the array of costs. PROBE to BIT are nanoseconds: to look up a key, to visit an
entry, to verify a clause, to AND a line of a block, to check a candidate of the sparse family, to
write a bit of the dense family. SPARSE_LINES and DENSE_LINES are the cost of all lines per clause
in each family. DENSE_FROM is the share of matching events above which a clause goes to the dense
family."""
COSTS = 9  # their number
TERM = 6  # numbers that describe a term
TERMS = 32  # terms per clause that are considered; further terms are only verified
COPIES = 8  # maximum entries per clause
WHOLE = 5  # the coarsest grain: any value
_MOST = 4  # maximum nodes of a grain per interval
TERM_SHIFT = 56  # in the scheme stored for a slot, the number of its term is above this bit
SCHEME = (1 << TERM_SHIFT) - 1
_SOME = 1 / 64  # factor on DENSE_FROM if rows express the clause exactly


class Schemes(NamedTuple):
    """The kinds of keys in use.

    `allowed` and `used` have one bit per grain, by attribute. Combination c consists of the
    attributes `attribute[start[c]:start[c + 1]]`, ascending. The combinations whose rarest
    attribute is a are `combined[pivot[a]:pivot[a + 1]]`.
    """

    allowed: Int64s
    used: Int64s
    start: Int64s
    attribute: Int64s
    pivot: Int64s
    combined: Int64s


class RoutedIndex(NamedTuple):
    """The whole index, without the clause table. The last three arrays are by slot."""

    cells: ValueCells
    schemes: Schemes
    costs: Floats
    buckets: Buckets
    sparse: Family
    dense: Family
    kind: Int8s
    scheme: Int64s
    place: Int64s


def schemes_of(allowed: Int64s, combined: Sequence[tuple[int, ...]], bound: Floats) -> Schemes:
    """Schemes with these grains and combinations. `bound` is how often each attribute is bound."""
    pivots = np.array([min(each, key=bound.__getitem__) for each in combined], np.int64)
    order = np.argsort(pivots, kind="stable")
    return Schemes(
        allowed,
        np.zeros_like(allowed),
        offsets([len(each) for each in combined]),
        np.array([a for each in combined for a in each], np.int64),
        np.searchsorted(pivots[order], np.arange(len(allowed) + 1)).astype(np.int64),
        order.astype(np.int64),
    )


def empty_index(
    cells: ValueCells, schemes: Schemes, costs: Floats, sparse: Int32s, dense: Int32s, slots: int
) -> RoutedIndex:
    """An index for `slots` clauses. `sparse` and `dense` are the columns of the families."""
    return RoutedIndex(
        cells,
        schemes,
        costs,
        no_buckets(),
        make_family(sparse, cells, dense=False),
        make_family(dense, cells, dense=True),
        np.zeros(slots, np.int8),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
    )


@inlined
def shift_of(grain: int) -> int:
    """Log2 of the number of cells per node."""
    return 15 if grain == WHOLE else 3 * (grain - 1)


@inlined
def describe(
    cells: ValueCells, where: Int64s, rows: Int64s, slot: int, info: Int64s, chance: Floats
) -> int:
    """Describe the terms of a clause, with two probabilities for each.

    `chance[t]` is the probability that term t holds. `chance[TERMS + t]` is the probability that a
    bitmap lets it through, which knows only rows of cells. A term is six numbers in `info`:
    attribute, kind, first row in the table, number of rows, and the cells where its first interval
    begins and ends. Returns the number of terms. Terms past `TERMS` are not described.
    """
    start, cuts, row_start, _, row_of_cell, bound, below, row_below, single, _ = cells
    row = ROW * (where[slot] >> COUNT_BITS)
    end = row + ROW * (where[slot] & COUNT_MASK)
    terms = 0
    while row < end:
        what = rows[row]
        stop = row + ROW
        while stop < end and rows[stop] == what:
            stop += ROW
        if terms < TERMS:
            a, kind, at = what >> 32, what & 0xFF, TERM * terms
            info[at], info[at + 1], info[at + 2] = a, kind, row
            info[at + 3] = (stop - row) // ROW
            info[at + 4], info[at + 5] = 0, 0
            known = a < len(bound)
            inside, coarse = 0.0, 0.0
            if kind == SOME and known:
                for r in range(row, stop, ROW):
                    low, high = rows[r + 1], rows[r + 2]
                    from_ = 0 if low == LOWEST else cell_of(start, cuts, a, low)
                    to = start[a + 1] - start[a]
                    if low == high:
                        to = from_
                        inside += single[start[a] + a + from_]
                    else:
                        if high != HIGHEST:
                            to = cell_of(start, cuts, a, high)
                        inside += below[start[a] + 2 * a + to + 1] - below[start[a] + 2 * a + from_]
                    first, last = row_of_cell[start[a] + a + from_], row_of_cell[start[a] + a + to]
                    coarse += row_below[row_start[a] + 2 * a + last]
                    coarse -= row_below[row_start[a] + 2 * a + first - 1]
                    if r == row:
                        info[at + 4], info[at + 5] = from_, to
            else:
                inside = coarse = 0.5 if kind == SOME else 1.0
            often = bound[a] if known else 0.5
            chance[terms] = 1.0 - often if kind == MISSING else often * min(1.0, inside)
            chance[TERMS + terms] = 1.0 - often if kind == MISSING else often * min(1.0, coarse)
        terms += 1
        row = stop
    return terms


@inlined
def points(rows: Int64s, info: Int64s, t: int) -> bool:
    """Whether a term requires one of a few single values."""
    count, first = info[TERM * t + 3], info[TERM * t + 2]
    ok = info[TERM * t + 1] == SOME and count <= COPIES
    for i in range(min(count, COPIES)):
        ok &= rows[first + ROW * i + 1] == rows[first + ROW * i + 2]
    return bool(ok)


@inlined
def point(rows: Int64s, info: Int64s, terms: int, attribute: int) -> int:
    """The term that requires a single value of an attribute, or -1."""
    found = -1
    for t in range(terms):
        mine = info[TERM * t] == attribute and info[TERM * t + 3] == 1
        if found < 0 and mine and points(rows, info, t):
            found = t
    return found


@kernel
def choose(
    schemes: Schemes,
    costs: Floats,
    bound: Floats,
    row_start: Int64s,
    row_cuts: Int64s,
    columns: tuple[Int32s, Int32s],
    rows: Int64s,
    info: Int64s,
    chance: Floats,
    terms: int,
) -> tuple[int, int, float, float]:
    """The route of a clause: kind, scheme with its term, cost per event, cost in a family."""
    allowed, _, start, attribute, pivot, combined = schemes
    seen = min(terms, TERMS)
    every = 1.0
    for t in range(seen):
        every *= chance[t]
    in_sparse, in_dense = columns
    exact = terms <= TERMS
    strange, odd = not exact, not exact  # needs verification: in the dense, in the sparse family
    passing, let_in = 1.0, 1.0  # probability to pass the columns: of the sparse, of the dense one
    for t in range(seen):
        at = TERM * t
        a, kind, row, count = info[at], info[at + 1], info[at + 2], info[at + 3]
        again = kind == NONE or (t > 0 and info[at - TERM] == a)
        if a < len(in_dense) and in_dense[a] >= 0:
            let_in *= chance[TERMS + t]
            strange |= again
            if kind == SOME and exact:
                for r in range(row, row + ROW * count, ROW):
                    exact = exact and _whole_rows(row_start, row_cuts, a, rows[r + 1], rows[r + 2])
        else:
            strange = True
        if a < len(in_sparse) and in_sparse[a] >= 0:
            passing *= chance[TERMS + t]
            odd |= again or count > 1
        else:
            odd = True
    exact = exact and not strange
    dense = every > costs[DENSE_FROM] * (_SOME if exact else 1.0)
    cost = costs[SPARSE_LINES] + passing * (costs[CHECK] + (costs[VERIFY] if odd else 0.0))
    if dense:
        cost = costs[DENSE_LINES] * (1 if exact else 2)
        cost += let_in * (costs[VERIFY] if strange else costs[BIT])
    kind, scheme, in_family = DENSE if dense else SPARSE, 0, cost
    for t in range(seen):
        a = info[TERM * t]
        if a >= len(allowed) or info[TERM * t + 1] == MISSING:
            continue
        if allowed[a] == 0 and pivot[a] == pivot[a + 1]:
            continue
        simple = info[TERM * t + 1] == SOME and info[TERM * t + 3] == 1
        grain, met = -1, 2.0
        single = points(rows, info, t)
        if allowed[a] & 1 and single:
            grain, met = 0, chance[t]
        elif simple:
            cells = info[TERM * t + 5] - info[TERM * t + 4] + 1
            for finer in range(1, WHOLE + 1):
                shift = shift_of(finer)
                nodes = (info[TERM * t + 5] >> shift) - (info[TERM * t + 4] >> shift) + 1
                if grain < 0 and allowed[a] >> finer & 1 and nodes <= _MOST:
                    grain = finer
                    met = min(bound[a], chance[t] * max(1.0, (nodes << shift) / cells))
        elif allowed[a] >> WHOLE & 1:
            grain, met = WHOLE, bound[a]
        if grain >= 0:
            left = 0.0 if terms == 1 and grain == 0 else _rest(chance, seen, t)
            here = met * (costs[VISIT] + left * costs[VERIFY])
            if here < cost:
                kind, cost = BUCKET, here
                scheme = (GRAINS * a + grain) | (t << TERM_SHIFT)
        if single and info[TERM * t + 3] == 1:
            for i in range(pivot[a], pivot[a + 1]):
                c = combined[i]
                met = 1.0
                for j in range(start[c], start[c + 1]):
                    other = point(rows, info, seen, attribute[j])
                    met = 2.0 if other < 0 or met > 1 else met * chance[other]
                if met <= 1:
                    left = 0.0
                    if start[c + 1] - start[c] < terms:
                        left = min(1.0, every / met)
                    here = met * (costs[VISIT] + left * costs[VERIFY])
                    if here < cost:
                        kind, cost, scheme = BUCKET, here, COMBINED + c
    return kind, scheme, cost, in_family


@inlined
def _whole_rows(row_start: Int64s, row_cuts: Int64s, a: int, low: int, high: int) -> bool:
    """Whether both ends of an interval are row boundaries."""
    from_row = cell_of(row_start, row_cuts, a, low)
    to_row = cell_of(row_start, row_cuts, a, high)
    begins = low == LOWEST or opens(row_start, row_cuts, a, from_row, low)
    ends = high == HIGHEST or closes(row_start, row_cuts, a, to_row, high)
    return begins and ends


@inlined
def _rest(chance: Floats, terms: int, t: int) -> float:
    """The probability that the two most selective other terms hold: the share to verify."""
    best, second = 1.0, 1.0
    for i in range(terms):
        if i != t:
            if chance[i] < best:
                best, second = chance[i], best
            elif chance[i] < second:
                second = chance[i]
    return best * second


def trimmed(index: RoutedIndex) -> RoutedIndex:
    """The same index without spare capacity."""
    buckets = index.buckets
    return index._replace(
        sparse=_trimmed(index.sparse),
        dense=_trimmed(index.dense),
        buckets=buckets._replace(
            pool=buckets.pool[: ENTRY * int(buckets.head[POOL_TOP])],
            values=buckets.values[: int(buckets.head[VALUES_TOP])],
        ),
    )


def restored(arrays: Mapping[str, NDArray[Any]]) -> RoutedIndex:
    """An index from its saved arrays. Builds the guide to the cells if the save lacks one."""
    if "cells.guide.start" not in arrays:
        made = make_guide(arrays["cells.start"], arrays["cells.cuts"])
        arrays = Arrays({**arrays, **add_prefix("cells.guide", flatten(made))})
    return unflatten(RoutedIndex, arrays)


def _trimmed(family: Family) -> Family:
    blocks, capacity = blocks_of(family), len(family.slot_of) // BLOCK
    if blocks == capacity:
        return family
    kept = family._replace(
        **{
            name: getattr(family, name)[: len(getattr(family, name)) // capacity * blocks]
            for name in ("bits", "edges", "records", "slot_of")
        }
    )
    # `edges` must stay non-empty in a dense family: that is what marks it as dense.
    return kept if blocks else kept._replace(edges=family.edges[: min(1, len(family.edges))])
