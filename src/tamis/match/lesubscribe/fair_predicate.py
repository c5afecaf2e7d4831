"""The fair predicate algorithm: count the satisfied predicates of every subscription."""

from __future__ import annotations

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.files.arrays import Int64s
from tamis.index.clauses import ClauseArrays, bind, unbind
from tamis.index.counters import CounterScratch
from tamis.index.elementary_predicates import elementary_predicates
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.index.slot_set import SlotSet
from tamis.index.verification import answer_arrays, keep_matching, trusted
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.lesubscribe.predicate_counts import (
    CountArrays,
    CountTally,
    PredicateCounters,
    count,
)
from tamis.match.options import choice


class FairPredicate(Matcher):
    """Evaluate each distinct predicate once; count the satisfied ones for every subscription.

    Equal predicates are stored once, clustered by attribute and comparator. An event satisfies a
    run of each cluster, and each satisfied predicate raises the counters of its subscriptions. A
    subscription matches when its counter reaches its number of predicates.

    add O(predicates · log clusters), remove the same plus the lengths of their postings; match
    O(satisfied predicates + their postings), and with `final="all"` O(subscriptions) on top.

    Le Subscribe, figure 2. The paper compares the counter of every subscription at the end; we
    compare only the raised ones (`final="all"` follows the paper). We fix two slips of the paper:
    less-than predicates are satisfied from the value upwards, and counters start at zero for each
    event. It is slower than `scan` on wide ranges (DEXIN): an event satisfies most of the
    predicates, so it raises a counter for most predicates of all subscriptions, each a random
    write. `scan` leaves a subscription at the first attribute that fails.

    Tally: `predicates` satisfied, `additions`, counters `compared` at the end.
    """

    tally: CountTally
    tally_type = CountTally

    final = choice("touched", "whose counters are compared at the end", "touched", "all")

    def clear(self) -> None:
        self._counting = PredicateCounters()
        self._always = SlotSet()  # clauses with no predicate to count

    def find(self, batch: EventBatch) -> Matches:
        return self.run(
            _match,
            batch,
            self._counting.view,
            self._always.slots,
            self._counting.scratch(),
            self._counting.stamps(len(batch)),
            self.final == "all",
        )

    def check(self) -> None:
        super().check()
        self._counting.check()
        self._always.check()
        live = self.clauses.live_slots()
        assert self._counting.postings.total == int(self._counting.view.needed[live].sum())

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        found = elementary_predicates(self.clauses.view, slots)
        counts = np.diff(found.starts).astype(np.int32)
        self._counting.add(slots, found, counts)
        self._always.add(slots[counts == 0])

    def drop_clauses(self, slots: Slots) -> None:
        found = elementary_predicates(self.clauses.view, slots)
        self._counting.remove(slots, found)
        self._always.remove(slots[np.diff(found.starts) == 0])


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    counted: CountArrays,
    always: Int64s,
    scratch: CounterScratch,
    stamp: int,
    final_all: bool,
) -> tuple[Int64s, Int64s, Int64s]:
    # `work`: predicates satisfied, lists read, counters raised, (none), counters compared
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        raised, many, additions = count(
            counted, events.attribute, events.code, (begin, end), scratch, stamp + event
        )
        work[0] += many
        work[1] += many  # the list of each satisfied predicate is read
        work[2] += additions
        several = bind(events.attribute, begin, end, first, last)
        compared = len(counted.needed) if final_all else raised
        work[4] += compared
        out = ensure_capacity(out, found, compared + len(always) + 1)
        full = found
        for i in range(compared):
            slot = i if final_all else scratch.touched[i]
            out[full] = slot
            full += scratch.hits[slot] != 0 and scratch.hits[slot] == counted.needed[slot]
        out[full : full + len(always)] = always
        full += len(always)
        found, _ = keep_matching(
            clauses, first, last, events.code, counted.exact, trusted(several), out, found, full
        )
        unbind(events.attribute, begin, end, first, last)
        for i in range(raised):
            scratch.hits[scratch.touched[i]] = 0
        starts[event + 1] = found
    return starts, out[:found], work
