"""The equality-preferred algorithm: look up the equalities and count the other predicates."""

from __future__ import annotations

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.files.arrays import Int64s
from tamis.index.clauses import ClauseArrays, bind, unbind
from tamis.index.counters import CounterScratch
from tamis.index.elementary_predicates import elementary_predicates, key_predicates, predicates_of
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.index.slot_set import SlotSet
from tamis.index.verification import answer_arrays, keep_matching, trusted
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.lesubscribe.clusters import Clusters, EqualityClusters, partial
from tamis.match.lesubscribe.predicate_counts import (
    CountArrays,
    CountTally,
    PredicateCounters,
    count,
)
from tamis.match.options import choice


class EqualityPreferred(Matcher):
    """Find by hash the subscriptions whose equalities all hold; count the other predicates.

    Subscriptions are clustered by the attributes of their equalities, then by the values. One
    look-up per cluster whose attributes the event binds finds the partially satisfied
    subscriptions. The other predicates of all subscriptions are counted as in fair-predicate. The
    counters are compared for subscriptions that are partially satisfied or have no equality.

    add, remove O(predicates · log); match O(clusters covered + satisfied predicates + their
    postings). It is slower than `scan` on wide ranges: an event raises the counters of
    subscriptions whose equalities fail, as often as fair-predicate does. It is also slower when
    nearly every subscription has its own schema, because the clusters then save nothing.

    Le Subscribe, figure 4. Differences: the paper enumerates the subsets of the event's attributes
    to find the covered clusters. We enumerate the subsets or the schemas listed under these
    attributes, whichever is fewer. If an event would look up most keys, we test all keys in
    sequence instead; this also bounds the combinations of an event with many values.
    `schemas="subsets"` follows the paper for events of up to 16 attributes. The paper compares all
    subscriptions without equalities at the end; we compare those with raised counters when they are
    fewer, unless `final="all"`. A second equality on the same attribute, which only a multi-valued
    event can satisfy, is counted.

    Tally: `predicates` satisfied, `nodes` (schemas, keys and lists read), `additions`, `partial`
    (clauses whose equalities hold), counters `compared` at the end.
    """

    tally: CountTally
    tally_type = CountTally
    final = choice("touched", "whose counters are compared at the end", "touched", "all")
    schemas = choice(
        "fewest", "how the schemas that an event covers are found", "fewest", "subsets"
    )

    def clear(self) -> None:
        self._clusters = EqualityClusters()
        self._counting = PredicateCounters()
        self.unkeyed = SlotSet()  # clauses without an equality, but with predicates to count
        self._always = SlotSet()  # clauses with no predicate to look up or count

    def find(self, batch: EventBatch) -> Matches:
        return self.run(
            _match,
            batch,
            self._clusters.view,
            self._counting.view,
            (self.unkeyed.slots, self._always.slots),
            self._counting.scratch(),
            self._counting.stamps(len(batch)),
            (self.final == "all", self.schemas == "subsets"),
        )

    def check(self) -> None:
        super().check()
        for part in (self._clusters, self._counting, self.unkeyed, self._always):
            part.check()
        held = len(self._clusters) + len(self.unkeyed) + len(self._always)
        assert held == len(self.clauses), "a clause is in one cluster or in one of the sets"
        needed = self._counting.view.needed[self.clauses.live_slots()]
        assert int(np.where(needed < 0, ~needed, needed).sum()) == self._counting.postings.total
        assert int((needed < 0).sum()) == len(self._clusters)

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        found = elementary_predicates(self.clauses.view, slots)
        keyed = key_predicates(found)
        has_key = self._clusters.add(slots, found, keyed)
        rest = predicates_of(found, ~keyed)
        counts = np.diff(rest.starts).astype(np.int32)
        # Negative for clauses with a key, so that no counter alone can make them match.
        self._counting.add(slots, rest, np.where(has_key, ~counts, counts))
        self.unkeyed.add(slots[~has_key & (counts > 0)])
        self._always.add(slots[~has_key & (counts == 0)])

    def drop_clauses(self, slots: Slots) -> None:
        found = elementary_predicates(self.clauses.view, slots)
        keyed = key_predicates(found)
        has_key = self._clusters.remove(slots, found, keyed)
        rest = predicates_of(found, ~keyed)
        counts = np.diff(rest.starts)
        self._counting.remove(slots, rest)
        self.unkeyed.remove(slots[~has_key & (counts > 0)])
        self._always.remove(slots[~has_key & (counts == 0)])


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    clusters: Clusters,
    counted: CountArrays,
    others: tuple[Int64s, Int64s],
    scratch: CounterScratch,
    stamp: int,
    published: tuple[bool, bool],
) -> tuple[Int64s, Int64s, Int64s]:
    unkeyed, always = others
    final_all, subsets = published
    # `work`: predicates, lists read, counters raised, partially satisfied, counters compared
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    keys = np.empty(64, np.int64)
    hits, touched = scratch.hits, scratch.touched
    needed, members = counted.needed, clusters.slots
    for event in range(len(starts) - 1):
        pairs = events.starts[event], events.starts[event + 1]
        several = bind(events.attribute, pairs[0], pairs[1], first, last)
        # Step 1: the clauses whose equalities hold.
        keys, many, looked = partial(
            clusters, events.attribute, events.code, pairs, (first, last), keys, subsets
        )
        # Step 2: count the other predicates, of all clauses. Most of the time goes here.
        raised, satisfied, additions = count(
            counted, events.attribute, events.code, pairs, scratch, stamp + event
        )
        work[0] += satisfied
        work[1] += looked + satisfied
        work[2] += additions
        # Step 3: compare the counters of clauses that are partially satisfied or have no key.
        full = found
        for i in range(many):
            start, size = clusters.lists.start[keys[i]], clusters.lists.size[keys[i]]
            work[3] += size
            work[4] += size
            out = ensure_capacity(out, full, size + 1)
            for place in range(start, start + size):
                slot = members[place]
                out[full] = slot
                full += hits[slot] == ~needed[slot]
        rest = unkeyed if final_all or len(unkeyed) < raised else touched[:raised]
        work[4] += len(rest)
        out = ensure_capacity(out, full, len(rest) + len(always) + 1)
        for slot in rest:
            out[full] = slot
            full += hits[slot] == needed[slot]
        out[full : full + len(always)] = always
        full += len(always)
        found, _ = keep_matching(
            clauses, first, last, events.code, counted.exact, trusted(several), out, found, full
        )
        unbind(events.attribute, pairs[0], pairs[1], first, last)
        for i in range(raised):
            hits[touched[i]] = 0
        starts[event + 1] = found
    return starts, out[:found], work
