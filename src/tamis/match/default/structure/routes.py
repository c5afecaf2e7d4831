"""Routes: which of the structures holds a clause, decided once, by what it is expected to cost.

A clause can lie in a bucket, under a key that an event must have for the clause to hold, or in one
of two families of bitmaps. In a bucket it costs something only when the key is met; in a family it
costs a few bits of every event, and something more when these let it through. Both are known in
advance from how often events bind each attribute and where their values fall (`cells`), and from
what each step takes on this machine (`costs`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.clauses import MISSING, NONE, SOME
from tamis.index.kernel import inlined, kernel
from tamis.match.default.structure.buckets import (
    COMBINED,
    GRAINS,
    Buckets,
)
from tamis.match.default.structure.cells import HIGHEST, LOWEST, ValueCells, cell_of, closes, opens
from tamis.match.default.structure.family import (
    Family,
)
from tamis.match.default.structure.packed_clauses import COUNT_BITS, COUNT_MASK, ROW

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
NOWHERE, BUCKET, SPARSE, DENSE = 0, 1, 2, 3
PROBE, VISIT, VERIFY, LINE, CHECK, BIT, SPARSE_LINES, DENSE_LINES, DENSE_FROM = range(9)
"""Costs, in nanoseconds: of looking up a key, of an entry, of verifying a clause, of a line of a
block, of a candidate of a sparse family, of a bit of a dense one; then what all lines of a clause
in each family come to, and from what share of matching events on a clause is for the dense one."""
TERM = 6  # numbers that describe a term
TERMS = 32  # of a clause; what comes after is not considered, only verified
COPIES = 8  # entries of one clause at most
WHOLE = 5  # the coarsest grain: whatever the value
_MOST = 4  # nodes of a grain that an interval may take
TERM_SHIFT = 56  # where a scheme is kept for a slot, the term that it is about stands above it
SCHEME = (1 << TERM_SHIFT) - 1
_SOME = 1 / 64  # of that share: what is enough where rows tell all of a clause


class Schemes(NamedTuple):
    """Which keys there are.

    `allowed` and `used` have a bit for each grain, by attribute. Combination c is of the attributes
    `attribute[start[c]:start[c + 1]]`, ascending; those whose rarest attribute is a are
    `combined[pivot[a]:pivot[a + 1]]`.
    """

    allowed: Int64s
    used: Int64s
    start: Int64s
    attribute: Int64s
    pivot: Int64s
    combined: Int64s


class RoutedIndex(NamedTuple):
    """Everything beside the table of clauses. The last three are by slot."""

    cells: ValueCells
    schemes: Schemes
    costs: Floats
    buckets: Buckets
    sparse: Family
    dense: Family
    kind: NDArray[np.int8]
    scheme: Int64s
    place: Int64s


@inlined
def shift_of(grain: int) -> int:
    """Cells of a node, as a power of two."""
    return 15 if grain == WHOLE else 3 * (grain - 1)


@inlined
def describe(
    cells: ValueCells, where: Int64s, rows: Int64s, slot: int, info: Int64s, chance: Floats
) -> int:
    """The terms of a clause, how likely each is to hold, and how likely its rows are met.

    The latter, `chance[TERMS + t]`, is what a bitmap lets through, which knows rows only. A term is
    six numbers: attribute, kind, first row, rows, and the cells where its first interval begins
    and ends. Gives how many terms there are; of those past `TERMS` nothing is noted.
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
    """Whether a term asks for one of a few single values."""
    count, first = info[TERM * t + 3], info[TERM * t + 2]
    ok = info[TERM * t + 1] == SOME and count <= COPIES
    for i in range(min(count, COPIES)):
        ok &= rows[first + ROW * i + 1] == rows[first + ROW * i + 2]
    return bool(ok)


@inlined
def point(rows: Int64s, info: Int64s, terms: int, attribute: int) -> int:
    """The term that asks for a single value of an attribute, or -1."""
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
    columns: tuple[NDArray[np.int32], NDArray[np.int32]],
    rows: Int64s,
    info: Int64s,
    chance: Floats,
    terms: int,
) -> tuple[int, int, float, float]:
    """The route of a clause: kind, scheme with its term, what it costs an event, and a family."""
    allowed, _, start, attribute, pivot, combined = schemes
    seen = min(terms, TERMS)
    every = 1.0
    for t in range(seen):
        every *= chance[t]
    in_sparse, in_dense = columns
    exact = terms <= TERMS
    strange, odd = not exact, not exact  # to the dense family, and to the sparse one
    passing, let_in = 1.0, 1.0  # how likely the columns of each let it through
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
    """Whether an interval begins and ends with a row."""
    from_row = cell_of(row_start, row_cuts, a, low)
    to_row = cell_of(row_start, row_cuts, a, high)
    begins = low == LOWEST or opens(row_start, row_cuts, a, from_row, low)
    ends = high == HIGHEST or closes(row_start, row_cuts, a, to_row, high)
    return begins and ends


@inlined
def _rest(chance: Floats, terms: int, t: int) -> float:
    """How likely the two best of the other terms are to hold: what is left to verify."""
    best, second = 1.0, 1.0
    for i in range(terms):
        if i != t:
            if chance[i] < best:
                best, second = chance[i], best
            elif chance[i] < second:
                second = chance[i]
    return best * second
