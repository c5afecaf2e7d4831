"""Kernels for planning: the routes of clauses, their rarest values, their order."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Floats, Int8s, Int64s
from tamis.index.clauses import SOME
from tamis.index.kernel import kernel
from tamis.match.default.structure.cells import ValueCells, cell_of
from tamis.match.default.structure.packed_clauses import COUNT_BITS, COUNT_MASK, ROW, PackedClauses
from tamis.match.default.structure.routes import (
    SCHEME,
    TERM,
    TERMS,
    RoutedIndex,
    choose,
    describe,
    points,
)


@kernel
def survey(
    index: RoutedIndex,
    clauses: PackedClauses,
    slots: Int64s,
    kind: Int8s,
    scheme: Int64s,
    cost: Floats,
    in_family: Floats,
) -> None:
    """The result of `choose` for some clauses, without placing them. Schemes omit the term."""
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
