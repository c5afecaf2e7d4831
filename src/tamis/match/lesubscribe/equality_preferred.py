"""The equality-preferred algorithm: look up the equalities and count the other predicates."""

from __future__ import annotations

from dataclasses import dataclass

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
from tamis.match.base import Matcher, Matches, Slots, Tally
from tamis.match.lesubscribe.clusters import Clusters, EqualityClusters, partial
from tamis.match.lesubscribe.predicate_counts import (
    CountArrays,
    PredicateCounters,
    count,
)


@dataclass
class ClusterTally(Tally):
    """Splits `subscriptions` into the two figures that the paper compares."""

    additions: int = 0  # counters raised
    partial: int = 0  # clauses whose equalities hold

    def count(self, work: Int64s) -> None:
        """Add the work of a kernel: predicates, nodes, additions, partial."""
        predicates, nodes, additions, partial = work.tolist()
        self.predicates += predicates
        self.nodes += nodes
        self.additions += additions
        self.partial += partial
        self.subscriptions += additions + partial


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
    sequence instead; this also bounds the combinations of an event with many values. The paper
    scans all subscriptions without equalities at the end; we scan those with raised counters when
    they are fewer. A second equality on the same attribute, which only a multi-valued event can
    satisfy, is counted.
    """

    tally: ClusterTally
    tally_type = ClusterTally

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
) -> tuple[Int64s, Int64s, Int64s]:
    unkeyed, always = others
    # `work`: predicates, lists read, counters raised, partially satisfied
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
            clusters, events.attribute, events.code, pairs, (first, last), keys
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
            out = ensure_capacity(out, full, size + 1)
            for place in range(start, start + size):
                slot = members[place]
                out[full] = slot
                full += hits[slot] == ~needed[slot]
        rest = unkeyed if len(unkeyed) < raised else touched[:raised]
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
