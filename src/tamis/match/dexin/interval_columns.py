"""Intervals by attribute and slot, for attributes that many clauses constrain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s, UInt8s
from tamis.index.clauses import MISSING, SOME, ClauseArrays
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.growth import HoldsArrays, grown
from tamis.index.kernel import kernel
from tamis.match.dexin.term_spans import Spans

_SHARE = 8  # an attribute gets a column if at least one clause in 8 constrains it


class IntervalColumns(NamedTuple):
    """Bounds by column and slot; unbounded if the clause does not constrain the attribute.

    `needed` is 1 if the clause requires the attribute to be bound.
    """

    low: Int64s
    high: Int64s
    needed: UInt8s
    column: Int64s  # by attribute; -1: no column


class ColumnTable(HoldsArrays):
    """The columns of a matcher. add, remove O(spans)."""

    def clear(self) -> None:
        self.view = _columns(np.zeros(0, np.int64), 0, 0)

    def lay_out(self, everything: Spans, slots: int, clauses: int, width: int) -> None:
        """Choose the columns again, for clauses in slots below `slots`."""
        uses = np.bincount(everything.attribute, minlength=width)
        popular = np.flatnonzero(uses * _SHARE >= max(clauses, 1))
        self.view = _columns(popular, slots, width)
        self.add(everything)

    def add(self, spans: Spans, slots: int = 0) -> None:
        """Write the intervals of clauses; of two intervals on one attribute, either will do.

        Makes space for all slots below `slots`, because clauses without spans are looked up here
        too.
        """
        top = max(int(spans.slot.max(initial=-1)) + 1, slots)
        old = self.view.low.shape[1]
        width = int(spans.attribute.max(initial=-1)) + 1
        self.view = self.view._replace(column=grown(self.view.column, width, -1))
        if top > old:
            popular = np.flatnonzero(self.view.column >= 0)
            wider = _columns(popular, max(top, old * 3 // 2, 64), len(self.view.column))
            wider.low[:, :old] = self.view.low
            wider.high[:, :old] = self.view.high
            wider.needed[:, :old] = self.view.needed
            self.view = wider
        known = np.flatnonzero(self.view.column[spans.attribute] >= 0)
        column = self.view.column[spans.attribute[known]]
        slot, bounded = spans.slot[known], ~spans.unequal[known]
        self.view.low[column[bounded], slot[bounded]] = spans.low[known][bounded]
        self.view.high[column[bounded], slot[bounded]] = spans.high[known][bounded]
        self.view.needed[column, slot] = 1

    def remove(self, slots: Int64s) -> None:
        """Reset the slots to unbounded."""
        self.view.low[:, slots] = LOWEST
        self.view.high[:, slots] = HIGHEST
        self.view.needed[:, slots] = 0

    def check(self, everything: Spans) -> None:
        """Raise if the columns disagree with these spans."""
        view = self.view
        column = view.column[everything.attribute]
        needed = np.zeros_like(view.needed)
        needed[column[column >= 0], everything.slot[column >= 0]] = 1
        assert (needed == view.needed).all(), "needed where a clause has a span"
        open_ = needed == 0
        assert (view.low[open_] == LOWEST).all()
        assert (view.high[open_] == HIGHEST).all()


def _columns(attributes: Int64s, slots: int, width: int) -> IntervalColumns:
    shape = (len(attributes), slots)
    column = np.full(width, -1, np.int64)
    column[attributes] = np.arange(len(attributes))
    return IntervalColumns(
        np.full(shape, LOWEST, np.int64),
        np.full(shape, HIGHEST, np.int64),
        np.zeros(shape, np.uint8),
        column,
    )


@kernel
def keep(columns: IntervalColumns, column: int, values: Int64s, left: Int32s, many: int) -> int:
    """Keep the slots of `left[:many]` that one column accepts; returns their number.

    The loop has no branch per slot, which would be mispredicted half of the time. Indexes are
    unsigned, so no test for negative ones is compiled (0.9 ns a slot against 1.4).
    """
    low, high, needed = columns.low[column], columns.high[column], columns.needed[column]
    kept = np.uint64(0)
    if len(values) == 0:
        for i in range(many):
            slot = np.uint32(left[i])
            left[kept] = slot
            kept += np.uint64(needed[slot] == 0)
    elif len(values) == 1:
        value = values[0]
        for i in range(many):
            slot = np.uint32(left[i])
            left[kept] = slot
            kept += np.uint64((low[slot] <= value) & (value <= high[slot]))
    else:
        for i in range(many):
            slot = np.uint32(left[i])
            inside = needed[slot] == 0
            for value in values:
                inside |= (low[slot] <= value) & (value <= high[slot])
            left[kept] = slot
            kept += np.uint64(inside)
    return int(np.int64(kept))


@kernel
def keep_by_rows(
    clauses: ClauseArrays, attribute: int, values: Int64s, left: Int32s, many: int
) -> int:
    """Like `keep`, for an attribute without a column: reads the clauses themselves."""
    kept = 0
    for i in range(many):
        slot = left[i]
        left[kept] = slot
        kept += _holds_on(clauses, slot, attribute, values)
    return kept


@kernel
def _holds_on(clauses: ClauseArrays, slot: int, attribute: int, values: Int64s) -> bool:
    """Whether the terms of a clause on one attribute hold."""
    row = clauses.start[slot]
    end = row + clauses.size[slot]
    while row < end and clauses.attribute[row] < attribute:
        row += 1
    while row < end and clauses.attribute[row] == attribute:
        term, kind = clauses.term[row], clauses.kind[row]
        inside = False
        while row < end and clauses.term[row] == term:
            for value in values:
                inside |= clauses.low[row] <= value <= clauses.high[row]
            row += 1
        if (kind == MISSING) == (len(values) > 0):
            return False
        if kind != MISSING and inside != (kind == SOME):
            return False
    return True
