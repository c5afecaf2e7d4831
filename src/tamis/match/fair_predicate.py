"""The fair predicate algorithm: count the satisfied predicates of every subscription."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.index.blocks import Lists
from tamis.index.clauses import Clauses, bind, holds, unbind
from tamis.index.counters import Counters, Scratch
from tamis.index.elementary import EXACT, VERIFY, elementary, has_several
from tamis.index.kernel import kernel
from tamis.index.output import room
from tamis.index.postings import Postings
from tamis.index.predicates import PredicateIndex, Predicates, satisfied
from tamis.index.slotset import SlotSet
from tamis.match.base import Matcher, Matches, Slots

Int64s = NDArray[np.int64]


class Counts(NamedTuple):
    """What is known of each slot: how many predicates it has, and how far they say it all."""

    predicates: NDArray[np.int32]
    exact: NDArray[np.int8]


class FairPredicate(Matcher):
    """Find the satisfied predicates, each evaluated once; count them for every subscription.

    Equal predicates are kept once, clustered by attribute and comparator. An event satisfies a run
    of each cluster; for every satisfied predicate the counters of its subscriptions go up, and
    those that reach their number of predicates match.

    add, remove O(predicates · log clusters); match O(satisfied predicates + their postings), and
    with `final="all"` O(subscriptions) on top.
    Le Subscribe, figure 2. The paper compares the counter of every subscription at the end; we
    compare only those touched (`final="all"` does as the paper). Two of the paper's slips are
    mended: less-than predicates are satisfied from the value upwards, and counters start at zero
    for each event.
    """

    def __init__(self, final: str = "touched") -> None:
        if final not in ("touched", "all"):
            raise MatcherError(f"final is 'touched' or 'all', got {final!r}")
        self._all = final == "all"
        super().__init__()

    def _reset(self) -> None:
        self._predicates = PredicateIndex()
        self._postings = Postings()
        self._always = SlotSet()  # clauses of which no predicate is left to count
        self._counts = Counts(np.zeros(0, np.int32), np.zeros(0, np.int8))
        self._counters = Counters()

    @property
    def nbytes(self) -> int:
        parts = (self.clauses, self._predicates, self._postings, self._always, self._counters)
        return sum(part.nbytes for part in parts) + sum(c.nbytes for c in self._counts)

    def match(self, batch: EventBatch) -> Matches:
        starts, slots, work = _match(
            batch.pairs,
            self.clauses.view,
            self.clauses.width,
            self._predicates.view,
            (self._postings.lists, self._postings.slots),
            self._counts,
            self._always.slots,
            self._counters.fit(len(self._counts.predicates), self._predicates.top),
            self._counters.stamps(len(batch)),
            self._all,
        )
        self.tally.events += len(batch)
        self.tally.predicates += int(work[0])
        self.tally.nodes += int(work[1])
        self.tally.subscriptions += int(work[2])
        return Matches(starts, slots)

    def check(self) -> None:
        super().check()
        self._predicates.check()
        self._postings.check()
        self._always.check()
        live = self.clauses.live_slots()
        assert self._postings.total == int(self._counts.predicates[live].sum())

    def _added(self, slots: Slots, terms: Terms) -> None:
        if not len(slots):
            return
        found = elementary(self.clauses.view, slots)
        counts = np.diff(found.starts)
        ids = self._predicates.add(found.attribute, found.comparator, found.constant)
        self._postings.append(ids, np.repeat(slots, counts))
        self._fit(int(slots.max()) + 1)
        self._counts.predicates[slots] = counts
        self._counts.exact[slots] = found.exact
        self._always.add(slots[counts == 0])

    def _removing(self, slots: Slots) -> None:
        if not len(slots):
            return
        found = elementary(self.clauses.view, slots)
        counts = np.diff(found.starts)
        ids = self._predicates.find(found.attribute, found.comparator, found.constant)
        self._postings.remove(ids, np.repeat(slots, counts))
        self._predicates.remove(ids)
        self._counts.predicates[slots] = 0
        self._always.remove(slots[counts == 0])

    def _fit(self, slots: int) -> None:
        have = len(self._counts.predicates)
        if slots > have:
            grow = max(slots, 2 * have, 64) - have
            self._counts = Counts(
                np.concatenate([self._counts.predicates, np.zeros(grow, np.int32)]),
                np.concatenate([self._counts.exact, np.zeros(grow, np.int8)]),
            )


@kernel
def _match(
    events: Pairs,
    clauses: Clauses,
    width: int,
    predicates: Predicates,
    postings: tuple[Lists, NDArray[np.int32]],
    counts: Counts,
    always: Int64s,
    scratch: Scratch,
    stamp: int,
    final_all: bool,
) -> tuple[Int64s, Int64s, Int64s]:
    lists, pool = postings
    n = len(events.starts) - 1
    starts = np.zeros(n + 1, np.int64)
    out = np.empty(1024, np.int64)
    found = 0
    work = np.zeros(3, np.int64)  # predicates satisfied, lists read, counters raised
    hits, touched, seen, ids = scratch
    first = np.zeros(width, np.int64)
    last = np.zeros(width, np.int64)
    for event in range(n):
        begin, end = events.starts[event], events.starts[event + 1]
        # Step 1: the satisfied predicates.
        many = 0
        for at in range(begin, end):
            many = satisfied(
                predicates, events.attribute[at], events.code[at], seen, stamp + event, ids, many
            )
        # Step 2: count them. Most of the time goes here: a random write per posting.
        raised = 0
        for i in range(many):
            start = lists.start[ids[i]]
            for place in range(start, start + lists.size[ids[i]]):
                slot = pool[place]
                if hits[slot] == 0:
                    touched[raised] = slot
                    raised += 1
                hits[slot] += 1
                work[2] += 1
        work[0] += many
        work[1] += many
        several = has_several(events.attribute, begin, end)
        bind(events.attribute, begin, end, first, last)
        candidates = len(counts.predicates) if final_all else raised
        out = room(out, found, candidates + len(always))
        for i in range(candidates):
            slot = i if final_all else touched[i]
            if hits[slot] == 0 or hits[slot] != counts.predicates[slot]:
                continue
            exact = counts.exact[slot]
            ok = exact == EXACT or (exact < VERIFY and not several)
            if not ok:
                ok, _ = holds(clauses, slot, first, last, events.code)
            if ok:
                out[found] = slot
                found += 1
        for slot in always:
            ok, _ = holds(clauses, slot, first, last, events.code)
            if ok:
                out[found] = slot
                found += 1
        unbind(events.attribute, begin, end, first, last)
        for i in range(raised):
            hits[touched[i]] = 0
        starts[event + 1] = found
    return starts, out[:found], work
