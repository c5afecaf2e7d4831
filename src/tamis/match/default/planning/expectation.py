"""The expected cost of clauses, from the same function that decided where they go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Floats, Int8s, Int64s
from tamis.index.clauses import SOME, ClauseStorage
from tamis.index.kernel import kernel
from tamis.match.default.planning.survey import survey
from tamis.match.default.structure.cells import HIGHEST, LOWEST, cell_of, closes, opens
from tamis.match.default.structure.packed_clauses import COUNT_BITS, COUNT_MASK, ROW, PackedClauses
from tamis.match.default.structure.routes import (
    DENSE,
    TERM,
    TERMS,
    WHOLE,
    RoutedIndex,
    describe,
    shift_of,
)

_ASKED = 1_000_000  # maximum clauses to evaluate; above that, a sample


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
        some = np.sort(np.random.default_rng(0).choice(slots, _ASKED, replace=False))
    many, width = len(some), len(index.cells.bound)
    expected = Expected(
        np.empty(many, np.int8), np.empty(many, np.int64), np.empty(many), np.empty(many),
        np.empty(many), np.empty(many), len(slots) / max(1, many), np.zeros(width, np.int64),
        np.zeros(width, np.int64),
    )  # fmt: skip
    survey(
        index, clauses.view, some, expected.kind, expected.scheme, expected.cost, expected.in_family
    )
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
