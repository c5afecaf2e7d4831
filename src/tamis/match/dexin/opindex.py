"""OpIndex: predicates partitioned by pivot attribute, then by comparator and attribute."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.files.arrays import Int8s, Int32s, Int64s, zeros
from tamis.index.clauses import ClauseArrays, bind, unbind
from tamis.index.elementary_predicates import (
    ElementaryPredicates,
    clauses_of,
    elementary_predicates,
)
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import inlined, kernel
from tamis.index.slot_set import SlotSet
from tamis.index.verification import answer_arrays, keep_matching, trusted
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.dexin.pivots import PivotLists, Pivots, inverts, lists_under, no_probes, probe
from tamis.match.options import whole_number

_BITS = 62  # maximum number of bits per signature word
_SPARSE = 8  # if more than one counter in 8 is lowered, restoring all is cheaper than tracking


class SlotCounts(NamedTuple):
    """Counters and scratch space by slot."""

    all: Int32s  # number of predicates
    left: Int32s  # predicates not yet satisfied; equal to `all` between events
    exact: Int8s  # how exactly the predicates represent the clause
    touched: Int32s  # scratch: slots with a lowered counter ...
    ready: Int32s  # ... and slots with none left; one spare entry for the branchless write


class OpIndex(Matcher):
    """Put a clause under its rarest attribute, the pivot; there, sort predicates by comparator.

    An event looks only under the pivots that it binds, and there only at the lists of its own
    attributes: one per comparator, and one per value for equalities. Every predicate of a list is
    compared with the value; a satisfied one lowers its clause's number of open predicates, and a
    clause with none open matches. Signatures, a few bits per pivot and comparator, avoid the
    look-up of most lists that do not exist.

    add O(predicates); remove O(predicates + lengths of their lists); match O(pivots · pairs +
    predicates in the lists), whether these are satisfied or not.

    OpIndex, VLDB 2014, as far as its abstract and public implementations describe it; `segments`
    words of `signature` bits come from these implementations. They hash attributes into lists by
    segment and compare the attribute. We keep one list per attribute, and per value of an equality,
    so that no list is read in vain. Pivots are chosen again after as many additions as there were
    clauses.
    When all clauses constrain the same attributes (DEXIN's workload), a pivot rules out nothing and
    every range of every clause is compared. It is then slower than `scan`, which leaves a clause at
    the first false predicate.
    """

    segments = whole_number(32, "words of signature of a pivot", least=1, most=4096)
    signature = whole_number(61, "bits of a word of signature", least=1, most=_BITS)

    def clear(self) -> None:
        self._clear_lists()
        self._frequency = np.zeros(0, np.int64)  # number of clauses by attribute
        self._since_choice = 0  # clauses added since the pivots were chosen
        self._at_choice = 0  # number of clauses at that time

    def _clear_lists(self) -> None:
        self._lists = PivotLists(self.segments, self.signature)
        self._always = SlotSet()  # clauses without a predicate to count
        self._pivot = np.zeros(0, np.int32)  # by slot; -1: no pivot
        self._counts = zeros(SlotCounts, 1)

    def find(self, batch: EventBatch) -> Matches:
        return self.run(_match, batch, self._lists.view, self._counts, self._always.slots)

    def check(self) -> None:
        super().check()
        self._always.check()
        live = self.clauses.live_slots()
        found = elementary_predicates(self.clauses.view, live)
        counts = np.diff(found.starts)
        assert (self._counts.all[live] == counts).all()
        assert (self._counts.all == self._counts.left).all(), "counters are restored"
        assert set(self._always.slots.tolist()) == set(live[counts == 0].tolist())
        assert (self._pivot >= 0).sum() == (counts > 0).sum()
        frequency = np.bincount(_mentioned(found), minlength=len(self._frequency))
        assert (frequency == self._frequency).all()
        live, found = _with_predicates(live, found)
        self._lists.check(live, found, self._pivot[live])

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        found = elementary_predicates(self.clauses.view, slots)
        self._count(found, 1)
        self._since_choice += len(slots)
        if self._since_choice > max(64, self._at_choice):
            self._clear_lists()
            slots = self.clauses.live_slots()
            found = elementary_predicates(self.clauses.view, slots)
            self._since_choice, self._at_choice = 0, len(slots)
        counts = np.diff(found.starts)
        self._pivot = grown(self._pivot, self.clauses.slots, -1)
        self._counts = SlotCounts(*(grown(each, self.clauses.slots + 1) for each in self._counts))
        self._counts.all[slots] = self._counts.left[slots] = counts
        self._counts.exact[slots] = found.exact
        self._always.add(slots[counts == 0])
        slots, found = _with_predicates(slots, found)
        self._pivot[slots] = _rarest(found.starts, found.attribute, self._frequency)
        self._lists.add(slots, found, self._pivot[slots])

    def drop_clauses(self, slots: Slots) -> None:
        found = elementary_predicates(self.clauses.view, slots)
        self._count(found, -1)
        self._counts.all[slots] = self._counts.left[slots] = 0
        self._always.remove(slots[np.diff(found.starts) == 0])
        slots, found = _with_predicates(slots, found)
        self._lists.remove(slots, found, self._pivot[slots])
        self._pivot[slots] = -1

    def _count(self, found: ElementaryPredicates, sign: int) -> None:
        """Update the number of clauses that mention each attribute."""
        have = len(self._frequency)
        change = sign * np.bincount(_mentioned(found), minlength=have)
        change[:have] += self._frequency
        self._frequency = change


def _mentioned(found: ElementaryPredicates) -> Int32s:
    """The attributes that clauses mention, once per clause."""
    first = np.ones(len(found.attribute), np.bool_)
    first[1:] = found.attribute[1:] != found.attribute[:-1]
    first[found.starts[:-1][np.diff(found.starts) > 0]] = True
    return found.attribute[first]


def _with_predicates(
    slots: Slots, found: ElementaryPredicates
) -> tuple[Slots, ElementaryPredicates]:
    """Drop the clauses without predicates."""
    some = np.diff(found.starts) > 0
    return slots[some], clauses_of(found, some)


@kernel
def _rarest(starts: Int64s, attribute: Int32s, frequency: Int64s) -> Int32s:
    """For each clause, its attribute that the fewest clauses mention."""
    rarest = np.empty(len(starts) - 1, np.int32)
    for i in range(len(rarest)):
        rarest[i] = attribute[starts[i]]
        for at in range(starts[i] + 1, starts[i + 1]):
            if frequency[attribute[at]] < frequency[rarest[i]]:
                rarest[i] = attribute[at]
    return rarest


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    pivots: Pivots,
    counts: SlotCounts,
    always: Int64s,
) -> tuple[Int64s, Int64s, Int64s]:
    # `work`: predicates compared, lists read, counters lowered
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    probes = no_probes(64)
    ids, which = np.empty(64, np.int64), np.empty(64, np.int64)
    most_noted = len(counts.all) // _SPARSE
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        if 5 * (end - begin) > len(probes.key):
            probes = no_probes(5 * (end - begin))
            ids, which = np.empty_like(probes.key), np.empty_like(probes.key)
        many = probe(events.attribute, events.code, begin, end, pivots, probes)
        compared = touched = ready = 0
        for at in range(begin, end):
            a = events.attribute[at]
            if a >= len(pivots.row) or (at > begin and events.attribute[at - 1] == a):
                continue
            row = pivots.row[a]
            if row < 0 or pivots.clauses[row] == 0:
                continue
            there = lists_under(pivots, row, probes, many, ids, which)
            work[1] += there
            for i in range(there):
                block = (pivots.lists.start[ids[i]], pivots.lists.size[ids[i]])
                at_probe = which[i]
                bounds = (probes.low[at_probe], probes.high[at_probe], inverts(probes, at_probe))
                compared += block[1]
                # Most of the time goes into these two calls: one write per predicate compared.
                if compared <= most_noted:
                    touched, ready = _lower(
                        pivots, block, bounds, counts, touched, ready, work, True
                    )
                else:
                    _, ready = _lower(pivots, block, bounds, counts, 0, ready, work, False)
        work[0] += compared
        several = bind(events.attribute, begin, end, first, last)
        out = ensure_capacity(out, found, ready + len(always))
        full = found + ready
        out[found:full] = counts.ready[:ready]
        out[full : full + len(always)] = always
        full += len(always)
        found, _ = keep_matching(
            clauses, first, last, events.code, counts.exact, trusted(several), out, found, full
        )
        unbind(events.attribute, begin, end, first, last)
        if compared <= most_noted:
            for i in range(touched):
                counts.left[counts.touched[i]] = counts.all[counts.touched[i]]
        else:
            counts.left[:] = counts.all
        starts[event + 1] = found
    return starts, out[:found], work


@inlined
def _lower(
    pivots: Pivots,
    block: tuple[int, int],
    bounds: tuple[int, int, bool],
    counts: SlotCounts,
    touched: int,
    ready: int,
    work: Int64s,
    noting: bool,
) -> tuple[int, int]:
    """Lower the counters of the satisfied predicates of a list; collect clauses with none left.

    With `noting`, a constant, it also records the lowered counters. The outcome is unpredictable,
    so the loop has no branch (1.6 ns a predicate; 4.4 with a branch when half are satisfied). Slots
    are unsigned: a possibly negative one costs another comparison.
    """
    start, size = block
    low, high, inverted = bounds
    lowered = 0
    for place in range(start, start + size):
        slot = np.uint32(pivots.slots[place])
        constant = pivots.constants[place]
        agrees = np.int32(((low <= constant) & (constant <= high)) != inverted)
        left = counts.left[slot]
        if noting:
            counts.touched[touched] = slot
            touched += int(agrees & (left == counts.all[slot]))
        left -= agrees
        counts.left[slot] = left
        counts.ready[ready] = slot
        ready += int(agrees & (left == 0))
        lowered += int(agrees)
    work[2] += lowered
    return touched, ready
