"""Nonequality quarantining: look up equalities; count only subscriptions that have none."""

from __future__ import annotations

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.files.arrays import Bools, Int64s, offsets
from tamis.index.clauses import ClauseArrays, bind, holds, unbind
from tamis.index.counters import CounterScratch
from tamis.index.elementary_predicates import (
    EXACT,
    clauses_of,
    elementary_predicates,
    key_predicates,
)
from tamis.index.growth import ensure_capacity, grown
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


class Quarantine(Matcher):
    """Find by hash the subscriptions whose equalities all hold, then verify their other predicates.

    Subscriptions are clustered by the attributes of their equalities, then by the values, as in
    equality-preferred. Subscriptions without an equality are kept apart ("quarantined") and counted
    as in fair-predicate. An event thus never raises the counter of a subscription whose equalities
    fail.

    add, remove O(predicates · log); match O(clusters covered + partially satisfied subscriptions
    + postings of the quarantined). When hardly any subscription has an equality, it behaves like
    fair-predicate. When equalities are unselective, it verifies large parts of the table in random
    order, while `scan` reads them in sequence.

    Le Subscribe, figure 5. Differences: clusters are found as in equality-preferred, with the same
    option `schemas`. We compare quarantined subscriptions only when a counter was raised; the paper
    compares all of them, as `final="all"` does. Verification tests all terms of a subscription in
    attribute order, including the equalities: they are in the same cache line as the rest.

    Tally: `predicates` satisfied or verified, `nodes` (schemas, keys and lists read), `additions`,
    clauses whose equalities hold (`partial`; they are verified unless the key covers them),
    counters `compared` at the end.
    """

    tally: CountTally
    tally_type = CountTally
    final = choice("touched", "whose counters are compared at the end", "touched", "all")
    schemas = choice(
        "fewest", "how the schemas that an event covers are found", "fewest", "subsets"
    )

    def clear(self) -> None:
        self._clusters = EqualityClusters()
        self._whole = np.zeros(0, np.bool_)  # by slot: whether the key covers every predicate
        self._counting = PredicateCounters()  # of the quarantined
        self._always = SlotSet()  # clauses with no predicate to look up or count
        self.unkeyed = 0  # how many clauses are quarantined
        self._apart = SlotSet()  # these clauses, if all of them are compared at the end

    def find(self, batch: EventBatch) -> Matches:
        return self.run(
            _match,
            batch,
            (self._clusters.view, self._whole),
            self._counting.view,
            (self._apart.slots, self._always.slots),
            self._counting.scratch(),
            self._counting.stamps(len(batch)),
            (self.final == "all", self.schemas == "subsets"),
        )

    def check(self) -> None:
        super().check()
        for part in (self._clusters, self._counting, self._always, self._apart):
            part.check()
        assert len(self._apart) == (self.unkeyed if self.final == "all" else 0)
        held = len(self._clusters) + self.unkeyed + len(self._always)
        assert held == len(self.clauses), "a clause is clustered, quarantined or always verified"
        needed = self._counting.view.needed
        assert int(needed.sum()) == self._counting.postings.total
        assert int((needed > 0).sum()) == self.unkeyed

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        found = elementary_predicates(self.clauses.view, slots)
        keyed = key_predicates(found)
        has_key = self._clusters.add(slots, found, keyed)
        self._whole = grown(self._whole, self.clauses.slots)
        left = np.diff(offsets(~keyed)[found.starts])
        self._whole[slots] = (left == 0) & (found.exact == EXACT)
        apart = ~has_key
        self._counting.add(slots[apart], clauses_of(found, apart), left[apart].astype(np.int32))
        self.unkeyed += int((left[apart] > 0).sum())
        if self.final == "all":
            self._apart.add(slots[apart & (left > 0)])
        self._always.add(slots[apart & (left == 0)])

    def drop_clauses(self, slots: Slots) -> None:
        found = elementary_predicates(self.clauses.view, slots)
        has_key = self._clusters.remove(slots, found, key_predicates(found))
        some = np.diff(found.starts) > 0
        self._counting.remove(slots[~has_key], clauses_of(found, ~has_key))
        self.unkeyed -= int((some & ~has_key).sum())
        if self.final == "all":
            self._apart.remove(slots[some & ~has_key])
        self._always.remove(slots[~some])


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    clustered: tuple[Clusters, Bools],
    counted: CountArrays,
    others: tuple[Int64s, Int64s],
    scratch: CounterScratch,
    stamp: int,
    published: tuple[bool, bool],
) -> tuple[Int64s, Int64s, Int64s]:
    clusters, whole = clustered
    apart, always = others
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
        # Step 1: verify the clauses whose equalities hold.
        keys, many, looked = partial(
            clusters, events.attribute, events.code, pairs, (first, last), keys, subsets
        )
        for i in range(many):
            start, size = clusters.lists.start[keys[i]], clusters.lists.size[keys[i]]
            work[3] += size
            out = ensure_capacity(out, found, size)
            for place in range(start, start + size):
                slot = members[place]
                ok = whole[slot]
                if not ok:
                    ok, terms = holds(clauses, slot, first, last, events.code)
                    work[0] += terms
                out[found] = slot
                found += ok
        # Step 2: count the predicates of quarantined clauses. Most of the time goes here, unless
        # unselective equalities make step 1 find more clauses.
        raised, satisfied, additions = count(
            counted, events.attribute, events.code, pairs, scratch, stamp + event
        )
        work[0] += satisfied
        work[1] += looked + satisfied
        work[2] += additions
        # Step 3: compare their counters.
        compared = len(apart) if final_all else raised
        work[4] += compared
        out = ensure_capacity(out, found, compared + len(always) + 1)
        full = found
        if final_all:
            for slot in apart:
                out[full] = slot
                full += hits[slot] == needed[slot]
            for i in range(raised):
                hits[touched[i]] = 0
        else:
            for i in range(raised):
                slot = touched[i]
                out[full] = slot
                full += hits[slot] == needed[slot]
                hits[slot] = 0
        out[full : full + len(always)] = always
        full += len(always)
        found, _ = keep_matching(
            clauses, first, last, events.code, counted.exact, trusted(several), out, found, full
        )
        unbind(events.attribute, pairs[0], pairs[1], first, last)
        starts[event + 1] = found
    return starts, out[:found], work
