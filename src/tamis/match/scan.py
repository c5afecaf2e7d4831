"""The scan: an optimised columnar pass over all subscriptions.

It is the baseline that every index has to beat.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.files.arrays import Bools, Int32s, Int64s, UInt8s, offsets
from tamis.index.clauses import SOME, ClauseArrays, bind, holds, unbind
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.match.base import Matcher, Matches, Slots

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_TILE = 4096  # a column of a tile is 64 KB: it stays in L2 during the batch (1.5 ms against
# 1.8 ms at 1024 for a million clauses of ten ranges; larger tiles gain nothing)
_FEW = 1 / 8  # below this share of remaining slots, a list is cheaper than the whole tile
_SAMPLE = 16  # the selectivity of a column is measured on one tile in 16
_SHARE = 32  # an attribute gets a column if at least one clause in 32 constrains it
_DEAD, _EXACT, _VERIFY = 0, 1, 2


class ScanColumns(NamedTuple):
    """Bounds by column and slot. A slot without a constraint on the column has the widest bounds.

    If the lower bound is above the upper bound, the values *between* them are ruled out: `!= 5` has
    the bounds 6 and 4. `needed` is 1 if the clause requires the attribute to be bound.
    """

    low: Int64s
    high: Int64s
    needed: UInt8s
    attribute: Int32s  # per column
    holes: Bools  # per column: whether any `!=` was written to it


class Scan(Matcher):
    """One column of lower and one of upper bounds per attribute, compared tile by tile.

    A tile of a few thousand subscriptions stays in cache while the whole batch passes over it. The
    most selective columns come first. The first columns are compared for the whole tile at once
    (SIMD), the rest only for the slots still left. Columns hold one interval or one `!=` per
    clause. All other terms (several intervals, `missing`, `excludes`, rare attributes) are verified
    at the end, on the clauses still left.

    add O(columns), remove O(1), match O(subscriptions) with a small constant.
    """

    def clear(self) -> None:
        self._uses = np.zeros(0, np.int64)  # rows of terms by attribute
        self._state = np.zeros(0, np.uint8)
        self._columns = _columns(np.zeros(0, np.int32), 0)
        self._passed = np.zeros(0)  # share that each column let through in the last batch
        self._since_layout = 0
        self._at_layout = 0

    def find(self, batch: EventBatch) -> Matches:
        if self._since_layout > max(64, self._at_layout // 2):
            self._lay_out()
        order = np.argsort(self._passed, kind="stable")
        left_over = np.cumprod(self._passed[order])
        masked = min(int(np.searchsorted(-left_over, -_FEW)) + 1, len(order))
        state = self._state[: self.clauses.slots]
        event, slots, counts = _scan(
            batch.pairs, self.clauses.view, self.clauses.width, self._columns, order, masked, state
        )
        seen, left, looked = counts[0], counts[1], int(counts[0].sum())
        tried = seen > 0
        self._passed[tried] = left[tried] / seen[tried]
        self.tally.predicates += looked
        self.tally.subscriptions += len(batch) * self.clauses.live
        starts = offsets(np.bincount(event, minlength=len(batch)))
        # The kernel finds pairs tile by tile; a stable sort orders them by event.
        return Matches(
            starts, slots if len(batch) == 1 else slots[np.argsort(event, kind="stable")]
        )

    def check(self) -> None:
        super().check()
        live = self.clauses.live_slots()
        assert (self._state[live] != _DEAD).all()
        assert (self._state != _DEAD).sum() == len(live)
        uses = np.zeros(len(self._uses), np.int64)
        terms = self.terms(live)
        np.add.at(uses, terms.attribute, 1)
        assert (uses == self._uses).all()

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        self._count(terms, 1)
        self._reserve(self.clauses.slots)
        self._fill(slots, terms)
        self._since_layout += len(slots)

    def drop_clauses(self, slots: Slots) -> None:
        self._count(self.terms(slots), -1)
        self._state[slots] = _DEAD
        self._columns.low[:, slots] = _LOWEST
        self._columns.high[:, slots] = _HIGHEST
        self._columns.needed[:, slots] = 0

    def _count(self, terms: Terms, sign: int) -> None:
        self._uses = grown(self._uses, self.clauses.width)
        self._uses += sign * np.bincount(terms.attribute, minlength=len(self._uses))

    def _reserve(self, slots: int) -> None:
        old = len(self._state)
        if slots <= old:
            return
        self._state = grown(self._state, slots)
        wider = _columns(self._columns.attribute, len(self._state))
        wider.low[:, :old] = self._columns.low
        wider.high[:, :old] = self._columns.high
        wider.needed[:, :old] = self._columns.needed
        wider.holes[:] = self._columns.holes
        self._columns = wider

    def _lay_out(self) -> None:
        """Choose the columns again, for the attributes that clauses constrain most."""
        live = self.clauses.live_slots()
        popular = np.flatnonzero(self._uses * _SHARE >= len(live))
        self._columns = _columns(popular.astype(np.int32), len(self._state))
        self._passed = np.full(len(popular), 0.5)
        self._fill(live, self.terms(live))
        self._since_layout, self._at_layout = 0, len(live)

    def _fill(self, slots: Slots, terms: Terms) -> None:
        """Write the bounds of clauses. Clauses that do not fit the columns are marked to verify."""
        slot = np.repeat(slots, np.diff(terms.starts))
        self._state[slots] = _EXACT
        low, high = terms.low.copy(), terms.high.copy()
        same = (slot[1:] == slot[:-1]) & (terms.attribute[1:] == terms.attribute[:-1])
        after, before = np.append(same, False), np.append(False, same)
        # Everything but one value: two rows, written as one pair of swapped bounds.
        hole = after & ~before & ~np.append(after[1:], False)
        at = np.flatnonzero(hole & (terms.kind == SOME))
        at = at[(terms.term[at] == terms.term[at + 1]) & (low[at + 1] - high[at] == 2)]
        at = at[(low[at] == _LOWEST) & (high[at + 1] == _HIGHEST)]
        low[at] = low[at + 1]
        # Otherwise, several rows or a second term on the attribute do not form one interval.
        fits = (terms.kind == SOME) & ~after & ~before
        fits[at] = True
        for column, attribute in enumerate(self._columns.attribute):
            mine = (terms.attribute == attribute) & fits
            self._columns.low[column, slot[mine]] = low[mine]
            self._columns.high[column, slot[mine]] = high[mine]
            self._columns.needed[column, slot[mine]] = 1
            self._columns.holes[column] |= bool((low[mine] > high[mine]).any())
        fits &= np.isin(terms.attribute, self._columns.attribute)
        fits[at + 1] = fits[at]
        self._state[slot[~fits]] = _VERIFY


def _columns(attributes: Int32s, size: int) -> ScanColumns:
    shape = (len(attributes), size)
    return ScanColumns(
        np.full(shape, _LOWEST, np.int64),
        np.full(shape, _HIGHEST, np.int64),
        np.zeros(shape, np.uint8),
        attributes,
        np.zeros(len(attributes), np.bool_),
    )


@kernel
def _scan(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    columns: ScanColumns,
    order: Int64s,
    masked: int,
    state: UInt8s,
) -> tuple[Int64s, Int64s, Int64s]:
    """Matching (event, slot) pairs, and how many slots entered and passed each column.

    The first `masked` columns of the order are compared for a whole tile at once, because most
    slots are still left. The other columns are compared for the list of slots still left.
    """
    n = len(events.starts) - 1
    found = 0
    event_out = np.empty(1024, np.int64)
    slot_out = np.empty(1024, np.int64)
    counts = np.zeros((2, len(order)), np.int64)
    mask = np.empty(_TILE, np.uint8)
    left = np.empty(_TILE, np.int64)
    first = np.zeros(width, np.int64)
    last = np.zeros(width, np.int64)
    for tile in range(0, len(state), _TILE):
        stop = min(tile + _TILE, len(state))
        for event in range(n):
            begin, end = events.starts[event], events.starts[event + 1]
            bind(events.attribute, begin, end, first, last)
            alive = state[tile:stop]  # a slice: `state[tile + i]` would not be compiled to SIMD
            for i in range(stop - tile):
                mask[i] = alive[i] != _DEAD
            many = stop - tile
            for k in range(masked):
                _mask_column(columns, order[k], tile, stop, events.code, first, last, mask)
                if (tile // _TILE + event) % _SAMPLE == 0:
                    counts[0, order[k]] += many
                    many = mask[: stop - tile].sum()
                    counts[1, order[k]] += many
            many = 0
            for i in range(stop - tile):
                left[many] = tile + i
                many += mask[i]
            k = masked
            while k < len(order) and many:
                counts[0, order[k]] += many
                many = _keep(columns, order[k], events.code, first, last, left, many)
                counts[1, order[k]] += many
                k += 1
            event_out = ensure_capacity(event_out, found, many)
            slot_out = ensure_capacity(slot_out, found, many)
            for i in range(many):
                slot = left[i]
                ok = True
                if state[slot] == _VERIFY:
                    ok, _ = holds(clauses, slot, first, last, events.code)
                if ok:
                    event_out[found] = event
                    slot_out[found] = slot
                    found += 1
            unbind(events.attribute, begin, end, first, last)
    return event_out[:found], slot_out[:found], counts


@kernel
def _mask_column(
    columns: ScanColumns,
    column: int,
    tile: int,
    stop: int,
    code: Int64s,
    first: Int64s,
    last: Int64s,
    mask: UInt8s,
) -> None:
    """Clear the mask where one column rules the clause out."""
    a = columns.attribute[column]
    low = columns.low[column, tile:stop]
    high = columns.high[column, tile:stop]
    needed = columns.needed[column, tile:stop]
    size = stop - tile
    start, end = first[a], last[a]
    if start == end:
        for i in range(size):
            mask[i] &= 1 - needed[i]
    elif end - start == 1 and not columns.holes[column]:
        value = code[start]
        for i in range(size):  # compiled to SIMD; a batch spends most of its time here
            mask[i] &= (low[i] <= value) & (value <= high[i])
    elif end - start == 1:
        value = code[start]
        for i in range(size):
            above, below = low[i] <= value, value <= high[i]
            mask[i] &= (above & below) | ((low[i] > high[i]) & (above | below))
    else:
        for i in range(size):
            inside = False
            for at in range(start, end):
                above, below = low[i] <= code[at], code[at] <= high[i]
                inside |= (above & below) | ((low[i] > high[i]) & (above | below))
            mask[i] &= inside


@kernel
def _keep(
    columns: ScanColumns,
    column: int,
    code: Int64s,
    first: Int64s,
    last: Int64s,
    left: Int64s,
    many: int,
) -> int:
    """Keep the slots that one column lets through. Branch-free."""
    a = columns.attribute[column]
    start, end = first[a], last[a]
    kept = 0
    if end - start == 1 and not columns.holes[column]:
        value = code[start]
        for i in range(many):
            slot = left[i]
            left[kept] = slot
            kept += (columns.low[column, slot] <= value) & (value <= columns.high[column, slot])
        return kept
    for i in range(many):
        slot = left[i]
        inside = start == end and columns.needed[column, slot] == 0
        low, high = columns.low[column, slot], columns.high[column, slot]
        for at in range(start, end):
            above, below = low <= code[at], code[at] <= high
            inside |= (above & below) | ((low > high) & (above | below))
        left[kept] = slot
        kept += inside
    return kept
