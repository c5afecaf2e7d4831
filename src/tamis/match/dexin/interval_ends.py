"""The ends of intervals by attribute and side, in cells.

Each attribute has one list per cell for its low ends, its high ends and its excluded values, and
one list of the spans without a low end. A value violates all low ends in the cells above its own,
all high ends in the cells below, and some ends in its own cell. An event that does not bind the
attribute violates every span on it: those with a low end and those without.

Cells are cut so that each holds the same number of ends, because codes have no common scale, or so
that all are equally wide (see `edges`). They are rebuilt when the number of ends has doubled or
fallen to a quarter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int8s, Int32s, Int64s
from tamis.index.blocks import Lists
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.growth import HoldsArrays, grown
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import KeyedLists, bisect_right
from tamis.match.dexin.bitset import Words, strike
from tamis.match.dexin.edges import EQUAL_WIDTH, equal_width
from tamis.match.dexin.linked_ends import LinkedLists
from tamis.match.dexin.term_spans import Spans

LOW, HIGH, NOT, NO_LOW = 0, 1, 2, 3
_NO_LINKS = np.zeros(0, np.int32)
_FEW = 32  # minimum ends per cell: for a rare attribute, one list is faster to read than many


class Ends(NamedTuple):
    """View for kernels. See `list_of` for the numbering of the lists."""

    used: Int64s  # the attributes that some clause constrains
    first: Int64s  # by attribute: its first list; -1 if no clause constrains it
    cells: Int64s  # by attribute: number of cells
    cut: Int64s  # by attribute: where its cuts begin; there are cells - 1
    cuts: Int64s
    lists: Lists
    keys: Int64s
    slots: Int32s
    links: Int32s  # by node, if the lists are linked: the next node


class _Entries(NamedTuple):
    attribute: Int32s
    side: Int8s
    key: Int64s
    slot: Int32s


class EndLists(HoldsArrays):
    """Ends in cells; a cell is a list of `kind`: in insertion order, sorted by end, or linked.

    add, remove O(log cells + entries of the cell) per end; if sorted, an add moves part of the
    cell.
    """

    def __init__(self, cells: int, edges: str, kind: type[KeyedLists | LinkedLists]) -> None:
        self._most = cells
        self._even = edges == EQUAL_WIDTH
        self._kind = kind
        super().__init__()

    def clear(self) -> None:
        self._lists = self._kind()
        none = np.zeros(0, np.int64)
        self._used, self._first, self._cells, self._cut, self._cuts = none, none, none, none, none
        self._numbered = 0  # lists in use
        self._dealt = 0  # number of ends when the cells were built

    @property
    def view(self) -> Ends:
        """The arrays for kernels."""
        keys, slots = self._lists.pools
        links = self._lists.links if isinstance(self._lists, LinkedLists) else _NO_LINKS
        return Ends(
            self._used, self._first, self._cells, self._cut, self._cuts,
            self._lists.lists, keys, slots, links,
        )  # fmt: skip

    @property
    def lists(self) -> int:
        """The number of lists."""
        return self._numbered

    def stale(self, spans: int) -> bool:
        """Whether the cells should be rebuilt (see `deal`) after a change of `spans` spans."""
        after = self._lists.total + 2 * spans
        return after > 2 * self._dealt + 16 or 4 * after + 16 < self._dealt

    def deal(self, everything: Spans) -> None:
        """Rebuild the cells for these spans and insert them."""
        self.clear()
        entries = _entries(everything)
        width = int(everything.attribute.max(initial=-1)) + 1
        ends = entries.side != NO_LOW
        self._used = np.unique(everything.attribute).astype(np.int64)
        cut = _cut_evenly if self._even else _cut
        self._cuts, counts = cut(entries.attribute[ends], entries.key[ends], width, self._most)
        self._cut = np.cumsum(counts) - counts
        self._cells = np.zeros(width, np.int64)
        self._cells[self._used] = counts[self._used] + 1
        self._first = np.full(width, -1, np.int64)
        sizes = 3 * self._cells[self._used] + 1
        self._first[self._used] = np.cumsum(sizes) - sizes
        self._numbered = int(sizes.sum())
        self._lists.number(self._numbered)
        self._put(entries)
        self._dealt = self._lists.total

    def add(self, spans: Spans) -> tuple[Int32s, Int64s]:
        """Insert the ends of spans; returns the attribute and the list of each end."""
        known = np.zeros(len(spans.attribute), np.bool_)
        inside = spans.attribute < len(self._first)
        known[inside] = self._first[spans.attribute[inside]] >= 0
        if not known.all():
            self._introduce(np.unique(spans.attribute[~known]))
        entries = _entries(spans)
        return entries.attribute, self._put(entries)

    def remove(self, spans: Spans) -> tuple[Int32s, Int64s]:
        """Remove the ends of spans; returns the attribute and the list of each end."""
        entries = _entries(spans)
        lists = _lists_of(self.view, entries)
        self._lists.remove(lists, entries.key, entries.slot)
        return entries.attribute, lists

    def check(self, everything: Spans) -> None:
        """Raise unless exactly the ends of these spans are stored, each in its own list."""
        self._lists.check()
        entries = _entries(everything)
        expected = np.stack([_lists_of(self.view, entries), entries.key, entries.slot])
        held = np.stack(self._lists.flat())
        assert held.shape == expected.shape, "as many ends as the clauses have"
        expected, held = expected[:, np.lexsort(expected)], held[:, np.lexsort(held)]
        assert (expected == held).all(), "every end stands in the list of its cell"
        for attribute in self._used.tolist():
            cuts = self._cuts[self._cut[attribute] :][: self._cells[attribute] - 1]
            assert (cuts[1:] > cuts[:-1]).all(), "cuts ascend"

    def _put(self, entries: _Entries) -> Int64s:
        lists = _lists_of(self.view, entries)
        self._lists.add(lists, entries.key, entries.slot)
        return lists

    def _introduce(self, attributes: Int32s) -> None:
        """Give each new attribute one cell, until the next rebuild."""
        width = int(attributes.max()) + 1
        self._first = grown(self._first, width, -1)
        self._cells, self._cut = grown(self._cells, width), grown(self._cut, width)
        self._first[attributes] = self._numbered + 4 * np.arange(len(attributes))
        self._cells[attributes] = 1
        self._used = np.union1d(self._used, attributes).astype(np.int64)
        self._numbered += 4 * len(attributes)
        self._lists.number(self._numbered)


def _entries(spans: Spans) -> _Entries:
    unequal = spans.unequal
    low = np.flatnonzero(~unequal & (spans.low != LOWEST))
    high = np.flatnonzero(~unequal & (spans.high != HIGHEST))
    excluded = np.flatnonzero(unequal)
    no_low = np.flatnonzero(unequal | (spans.low == LOWEST))
    which = np.concatenate([low, high, excluded, no_low])
    sides = np.array([LOW, HIGH, NOT, NO_LOW], np.int8)
    side = np.repeat(sides, [len(low), len(high), len(excluded), len(no_low)])
    slot = spans.slot[which]
    # A span without a low end is sorted by slot, so that bisection can find it.
    without = spans.slot[no_low].astype(np.int64)
    key = np.concatenate([spans.low[low], spans.high[high], spans.low[excluded], without])
    return _Entries(spans.attribute[which], side, key, slot)


@kernel
def _cut(attribute: Int32s, key: Int64s, width: int, most: int) -> tuple[Int64s, Int64s]:
    """The cuts of all attributes, concatenated, and the number of cuts of each."""
    starts = np.zeros(width + 1, np.int64)
    for a in attribute:
        starts[a + 1] += 1
    starts = np.cumsum(starts)
    grouped = np.empty(len(key), np.int64)
    free = starts[:-1].copy()
    for i in range(len(key)):
        grouped[free[attribute[i]]] = key[i]
        free[attribute[i]] += 1
    cuts = np.empty(len(key), np.int64)
    counts = np.zeros(width, np.int64)
    n = 0
    for a in range(width):
        ends = np.sort(grouped[starts[a] : starts[a + 1]])
        cells = min(most, len(ends) // _FEW)
        for cell in range(1, cells):
            cut = ends[cell * len(ends) // cells]
            if cut > ends[0] and (counts[a] == 0 or cut > cuts[n - 1]):
                cuts[n] = cut
                n += 1
                counts[a] += 1
    return cuts[:n].copy(), counts


def _cut_evenly(attribute: Int32s, key: Int64s, width: int, most: int) -> tuple[Int64s, Int64s]:
    """Like `_cut`, in cells of equal width."""
    population = np.bincount(attribute, minlength=width)
    first, last = np.full(width, HIGHEST), np.full(width, LOWEST)
    np.minimum.at(first, attribute, key)
    np.maximum.at(last, attribute, key)
    counts = np.zeros(width, np.int64)
    cuts = [np.zeros(0, np.int64)]
    for a in np.flatnonzero(population >= 2 * _FEW).tolist():
        cells = min(most, int(population[a]) // _FEW)
        cuts.append(equal_width(int(first[a]), int(last[a]), cells))
        counts[a] = len(cuts[-1])
    return np.concatenate(cuts), counts


@kernel
def cell_of(ends: Ends, a: int, v: int) -> int:
    """The cell of attribute a that contains a code; cell i begins at cut i - 1."""
    start = ends.cut[a]
    return int(bisect_right(ends.cuts, start, start + ends.cells[a] - 1, v) - start)


@kernel
def list_of(ends: Ends, a: int, side: int, cell: int) -> int:
    """The list of one cell; NO_LOW has only cell 0."""
    return int(ends.first[a] + side * ends.cells[a] + cell)


@kernel
def _lists_of(ends: Ends, entries: _Entries) -> Int64s:
    lists = np.empty(len(entries.key), np.int64)
    for i in range(len(lists)):
        a, side = entries.attribute[i], entries.side[i]
        cell = 0 if side == NO_LOW else cell_of(ends, a, entries.key[i])
        lists[i] = list_of(ends, a, side, cell)
    return lists


@kernel
def strike_lists(ends: Ends, start: int, end: int, words: Words) -> int:
    """Clear the bits of all slots in the lists `start:end`; returns the number of entries.

    Adjacent lists, as after a rebuild, are processed in one run.
    """
    struck = 0
    at = start
    while at < end:
        begin = ends.lists.start[at]
        stop = begin + ends.lists.size[at]
        at += 1
        while at < end and (ends.lists.size[at] == 0 or ends.lists.start[at] == stop):
            stop += ends.lists.size[at]
            at += 1
        strike(words, ends.slots, begin, stop)
        struck += stop - begin
    return struck


@kernel
def strike_all(ends: Ends, a: int, words: Words) -> int:
    """Clear the bits of all slots that require attribute a; returns the number of entries."""
    lows, no_low = list_of(ends, a, LOW, 0), list_of(ends, a, NO_LOW, 0)
    struck = strike_lists(ends, lows, lows + ends.cells[a], words)
    return struck + strike_lists(ends, no_low, no_low + 1, words)


@kernel
def strike_unbound(
    ends: Ends, first: Int64s, last: Int64s, except_: Int64s, words: Words
) -> tuple[int, int]:
    """`strike_all` for all attributes that an event does not bind; returns lists and entries.

    Attributes with a value of 0 or more in `except_` are skipped. The loops are inline on purpose:
    with thousands of attributes that few clauses constrain, calls would cost five times the work.
    """
    lists = struck = 0
    for a in ends.used:
        if first[a] < last[a] or except_[a] >= 0:
            continue
        cells = ends.cells[a]
        for k in range(cells + 1):
            at = ends.first[a] + (k if k < cells else NO_LOW * cells)
            begin = ends.lists.start[at]
            stop = begin + ends.lists.size[at]
            for place in range(begin, stop):
                slot = np.uint32(ends.slots[place])
                words[slot >> np.uint32(5)] &= ~(np.uint32(1) << (slot & np.uint32(31)))
            struck += stop - begin
        lists += cells + 1
    return lists, struck
