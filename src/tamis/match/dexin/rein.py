"""REIN: rule out the subscriptions that the event does not match."""

from __future__ import annotations

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.files.arrays import Int8s, Int32s, Int64s
from tamis.index.clauses import ClauseArrays, bind, unbind
from tamis.index.elementary_predicates import IF_SINGLE
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import KeyedLists
from tamis.index.verification import NOTHING, answer_arrays, keep_matching
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.dexin.bitset import BitSet, Words, members, strike
from tamis.match.dexin.edges import EQUAL_DEPTH, EQUAL_WIDTH
from tamis.match.dexin.interval_ends import (
    HIGH,
    LOW,
    NOT,
    EndLists,
    Ends,
    cell_of,
    list_of,
    strike_lists,
    strike_unbound,
)
from tamis.match.dexin.term_spans import spans_of
from tamis.match.options import choice, whole_number


class Rein(Matcher):
    """Find the subscriptions that do not match and return the others.

    Each attribute has two lists of buckets, for the low and the high ends of intervals. The event's
    value violates all low ends in the buckets above it and all high ends in the buckets below; in
    its own bucket, ends are compared one by one. Violated subscriptions are marked in a bitset; the
    unmarked ones match.

    add O(ends), remove O(ends · bucket), match O(violated ends + subscriptions / 32). An attribute
    that the event does not bind costs one mark per subscription that constrains it.

    Qian et al., INFOCOM 2014, as summarised in section 1.1 of DEXIN. Buckets hold the same number
    of ends, because codes have no scale; `edges="equal-width"` follows the paper. `!=` has its own
    buckets. An attribute with several values marks the intervals that lie entirely above or below
    all of them; such events, and clauses with terms of another shape, are verified at the end.
    The marks of all attributes add up, because there is no early exit. When most attributes rule
    out most subscriptions (ten attributes, narrow ranges: nine marks each) it is slower than
    `scan`, which looks at a subscription about twice.

    Tally: `predicates` has the ends compared one by one, `nodes` the buckets read, `subscriptions`
    the marks made.
    """

    buckets = whole_number(1000, "buckets of each side of an attribute", least=1)
    edges = choice(EQUAL_DEPTH, "where cells are cut", EQUAL_DEPTH, EQUAL_WIDTH)

    def clear(self) -> None:
        self._ends = EndLists(self.buckets, self.edges, KeyedLists)
        self._live = BitSet()
        self._exact = np.zeros(0, np.int8)
        self._left = np.zeros(0, np.int32)

    def find(self, batch: EventBatch) -> Matches:
        return self.run(_match, batch, self._ends.view, self._live.words, self._exact, self._left)

    def check(self) -> None:
        super().check()
        live = self.clauses.live_slots()
        everything = spans_of(self.clauses.view, live)
        self._live.check(live)
        self._ends.check(everything)
        assert (self._exact[live] == everything.exact).all()

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        fresh = spans_of(self.clauses.view, slots)
        self._live.add(slots)
        self._exact = grown(self._exact, self.clauses.slots)
        self._left = grown(self._left, self.clauses.slots + 1)  # `members` needs a spare entry
        self._exact[slots] = fresh.exact
        if self._ends.stale(len(fresh.slot)):
            self._ends.deal(spans_of(self.clauses.view, self.clauses.live_slots()))
        else:
            self._ends.add(fresh)

    def drop_clauses(self, slots: Slots) -> None:
        gone = spans_of(self.clauses.view, slots)
        self._live.remove(slots)
        if self._ends.stale(-len(gone.slot)):
            rest = np.setdiff1d(self.clauses.live_slots(), slots)
            self._ends.deal(spans_of(self.clauses.view, rest))
        else:
            self._ends.remove(gone)


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    ends: Ends,
    live: Words,
    exact: Int8s,
    left: Int32s,
) -> tuple[Int64s, Int64s, Int64s]:
    # `work`: ends compared, buckets read, marks made
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    unmarked = np.empty_like(live)
    none = np.full(len(ends.first), -1, np.int64)
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        several = bind(events.attribute, begin, end, first, last)
        unmarked[:] = live
        # Nearly all of the time goes into the marks.
        lists, struck = strike_unbound(ends, first, last, none, unmarked)
        work[1] += lists
        work[2] += struck
        for at in range(begin, end):
            a = events.attribute[at]
            if a < len(ends.first) and ends.first[a] >= 0 and at == first[a]:
                values = events.code[first[a] : last[a]]
                _mark(ends, a, values.min(), values.max(), unmarked, work)
        many = members(unmarked, left)
        out = ensure_capacity(out, found, many)
        full = found + many
        out[found:full] = left[:many]
        trust = NOTHING if several else IF_SINGLE
        found, _ = keep_matching(clauses, first, last, events.code, exact, trust, out, found, full)
        unbind(events.attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, out[:found], work


@kernel
def _mark(ends: Ends, a: int, least: int, greatest: int, unmarked: Words, work: Int64s) -> None:
    """Mark the clauses that no value of attribute a, from least to greatest, can satisfy."""
    top, bottom = cell_of(ends, a, greatest), cell_of(ends, a, least)
    lows, highs = list_of(ends, a, LOW, 0), list_of(ends, a, HIGH, 0)
    own = lows + top
    for place in range(ends.lists.start[own], ends.lists.start[own] + ends.lists.size[own]):
        if ends.keys[place] > greatest:
            strike(unmarked, ends.slots, place, place + 1)
            work[2] += 1
    own = highs + bottom
    for place in range(ends.lists.start[own], ends.lists.start[own] + ends.lists.size[own]):
        if ends.keys[place] < least:
            strike(unmarked, ends.slots, place, place + 1)
            work[2] += 1
    work[0] += ends.lists.size[lows + top] + ends.lists.size[highs + bottom]
    work[2] += strike_lists(ends, lows + top + 1, highs, unmarked)
    work[2] += strike_lists(ends, highs, highs + bottom, unmarked)
    work[1] += ends.cells[a] - top + bottom + 1
    if least == greatest:
        own = list_of(ends, a, NOT, bottom)
        for place in range(ends.lists.start[own], ends.lists.start[own] + ends.lists.size[own]):
            if ends.keys[place] == least:
                strike(unmarked, ends.slots, place, place + 1)
                work[2] += 1
        work[0] += ends.lists.size[own]
        work[1] += 1
