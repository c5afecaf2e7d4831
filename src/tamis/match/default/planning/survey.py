"""Facts about clauses for planning: their routes and costs, rarest values, order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Floats, Int8s, Int64s, zeros
from tamis.index.clauses import SOME, ClauseStorage
from tamis.index.kernel import kernel
from tamis.match.default.structure.cells import HIGHEST, LOWEST, ValueCells, cell_of, closes, opens
from tamis.match.default.structure.packed_clauses import COUNT_BITS, COUNT_MASK, ROW, PackedClauses
from tamis.match.default.structure.routes import (
    DENSE,
    SCHEME,
    TERM,
    TERMS,
    WHOLE,
    RoutedIndex,
    choose,
    describe,
    points,
    shift_of,
)


class Survey(NamedTuple):
    """The routes that some clauses would take. Schemes omit the term."""

    kind: Int8s
    scheme: Int64s
    cost: Floats
    in_family: Floats


def survey(index: RoutedIndex, clauses: PackedClauses, slots: Int64s) -> Survey:
    """The result of `choose` for some clauses, without placing them."""
    found = zeros(Survey, len(slots))
    _survey(index, clauses, slots, *found)
    return found


@kernel
def _survey(
    index: RoutedIndex,
    clauses: PackedClauses,
    slots: Int64s,
    kind: Int8s,
    scheme: Int64s,
    cost: Floats,
    in_family: Floats,
) -> None:
    where, rows = clauses
    cells, schemes, costs = index.cells, index.schemes, index.costs
    columns = (index.sparse.column_of, index.dense.column_of)
    bound, row_start, row_cuts = cells.bound, cells.row_start, cells.row_cuts
    info, chance = np.empty(TERM * TERMS, np.int64), np.empty(2 * TERMS)
    for i in range(len(slots)):
        terms = describe(cells, where, rows, slots[i], info, chance)
        chosen = choose(
            schemes, costs, bound, row_start, row_cuts, columns, rows, info, chance, terms
        )
        kind[i] = chosen[0]
        scheme[i] = chosen[1] & SCHEME
        cost[i] = chosen[2]
        in_family[i] = chosen[3]


@kernel
def rarest_points(
    index: RoutedIndex,
    clauses: PackedClauses,
    slots: Int64s,
    most: int,
    attribute: Int64s,
    chance: Floats,
) -> None:
    """For each clause, the attributes of its rarest single values, rarest first, padded with -1.

    Those of clause i are at `attribute[i * most:]`, their probabilities at `chance[i * most:]`.
    Each attribute counts once.
    """
    where, rows = clauses
    cells, width = index.cells, len(index.schemes.allowed)
    info, likely_ = np.empty(TERM * TERMS, np.int64), np.empty(2 * TERMS)
    for i in range(len(slots)):
        terms = describe(cells, where, rows, slots[i], info, likely_)
        for j in range(most):
            attribute[i * most + j] = -1
            chance[i * most + j] = 1.0
        for t in range(min(terms, TERMS)):
            again = t > 0 and info[TERM * (t - 1)] == info[TERM * t]
            known = info[TERM * t] < width
            if info[TERM * t + 3] != 1 or again or not known or not points(rows, info, t):
                continue
            j = most
            while j > 0 and likely_[t] < chance[i * most + j - 1]:
                if j < most:
                    attribute[i * most + j] = attribute[i * most + j - 1]
                    chance[i * most + j] = chance[i * most + j - 1]
                j -= 1
            if j < most:
                attribute[i * most + j] = info[TERM * t]
                chance[i * most + j] = likely_[t]


@kernel
def nearness(
    cells: ValueCells, clauses: PackedClauses, slots: Int64s, attributes: Int64s, keys: Int64s
) -> None:
    """A sort key for each clause: clauses with close keys have similar intervals.

    The key has, for each of a few attributes, the eighths of the rows in which the interval begins
    and ends. Each attribute in `attributes` is followed by its number of rows.
    """
    where, rows = clauses
    row_start, row_cuts = cells.row_start, cells.row_cuts
    for i in range(len(slots)):
        begin = ROW * (where[slots[i]] >> COUNT_BITS)
        end = begin + ROW * (where[slots[i]] & COUNT_MASK)
        key = 0
        for j in range(0, len(attributes), 2):
            a, many = attributes[j], attributes[j + 1]
            low, high = 0, 7
            for row in range(begin, end, ROW):
                if rows[row] >> 32 == a and rows[row] & 0xFF == SOME:
                    low = cell_of(row_start, row_cuts, a, rows[row + 1]) * 8 // many
                    high = cell_of(row_start, row_cuts, a, rows[row + 2]) * 8 // many
                    break
            key = (key << 6) | (low << 3) | high
        keys[i] = key


# Maximum clauses to evaluate; above that, a sample. A clause takes 7 µs, in which no event is
# matched: `plan` on a million of them took 7 s.
_ASKED = 5000


class Expected(NamedTuple):
    """Expected figures of some clauses. Each represents `scale` clauses of the whole set."""

    kind: Int8s
    scheme: Int64s
    cost: Floats
    in_family: Floats
    likely: Floats  # probability that it holds
    reached: Floats  # probability that the columns of its family let it through
    scale: float
    intervals: Int64s  # by attribute
    exact: Int64s  # intervals whose ends are cell boundaries, by attribute


def expect(index: RoutedIndex, clauses: ClauseStorage, slots: Int64s) -> Expected:
    """The expected figures of the clauses in these slots, or of a sample if there are many."""
    some = slots
    if len(slots) > _ASKED:
        some = slots[np.unique(np.random.default_rng(0).integers(0, len(slots), _ASKED))]
    many, width = len(some), len(index.cells.bound)
    found = survey(index, clauses.view, some)
    expected = Expected(
        *found, np.empty(many), np.empty(many), len(slots) / max(1, many),
        np.zeros(width, np.int64), np.zeros(width, np.int64),
    )  # fmt: skip
    _weigh(index, clauses.view, some, expected)
    return expected


@kernel
def _weigh(index: RoutedIndex, clauses: PackedClauses, slots: Int64s, expected: Expected) -> None:
    """Fill in `likely`, `reached`, `intervals` and `exact`."""
    kind, likely, reached, intervals, exact = (
        expected.kind, expected.likely, expected.reached, expected.intervals, expected.exact,
    )  # fmt: skip
    where, rows = clauses
    start, cuts = index.cells.start, index.cells.cuts
    info, chance = np.empty(TERM * TERMS, np.int64), np.empty(2 * TERMS)
    for i in range(len(slots)):
        column_of = index.dense.column_of if kind[i] == DENSE else index.sparse.column_of
        terms = describe(index.cells, where, rows, slots[i], info, chance)
        likely[i], reached[i] = 1.0, 1.0
        for t in range(min(terms, TERMS)):
            likely[i] *= chance[t]
            if info[TERM * t] < len(column_of) and column_of[info[TERM * t]] >= 0:
                reached[i] *= chance[TERMS + t]
        row = ROW * (where[slots[i]] >> COUNT_BITS)
        end = row + ROW * (where[slots[i]] & COUNT_MASK)
        while row < end:
            a, low, high = rows[row] >> 32, rows[row + 1], rows[row + 2]
            if a < len(intervals) and rows[row] & 0xFF == SOME:
                intervals[a] += 1
                first = cell_of(start, cuts, a, low)
                last = cell_of(start, cuts, a, high)
                begins = low == LOWEST or opens(start, cuts, a, first, low)
                ends = high == HIGHEST or closes(start, cuts, a, last, high)
                exact[a] += begins and ends
            row += ROW


def cells_of(grain: int) -> int:
    """The number of cells in a run of this grain; 0 if the grain has no runs."""
    return 1 << shift_of(grain) if 0 < grain < WHOLE else 0
