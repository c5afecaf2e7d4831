"""The naive matcher: test every subscription in turn."""

from __future__ import annotations

from tamis.encode.batch import EventBatch, Pairs
from tamis.files.arrays import Int64s
from tamis.index.clauses import ClauseArrays, bind, holds, unbind
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.index.verification import answer_arrays
from tamis.match.base import Matcher, Matches


class Naive(Matcher):
    """Test every subscription predicate by predicate and stop at the first false predicate.

    There is no index: the matcher scans the table of clauses from end to end.

    add O(terms), remove O(1), match O(total terms).

    Le Subscribe, figure 1. It is slower than `scan` on every workload: it makes the same
    comparisons, but one clause at a time and without SIMD.
    """

    def find(self, batch: EventBatch) -> Matches:
        starts, slots, looked = _match(batch.pairs, self.clauses.view, self.clauses.width)
        self.tally.predicates += looked
        self.tally.subscriptions += len(batch) * self.clauses.live
        return Matches(starts, slots)


@kernel
def _match(events: Pairs, clauses: ClauseArrays, width: int) -> tuple[Int64s, Int64s, int]:
    starts, slots, _, first, last = answer_arrays(events.starts, width)
    found = 0
    looked = 0
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        bind(events.attribute, begin, end, first, last)
        for slot in range(len(clauses.size)):
            if clauses.size[slot] < 0:
                continue
            ok, terms = holds(clauses, slot, first, last, events.code)
            looked += terms
            if ok:
                slots = ensure_capacity(slots, found, 1)
                slots[found] = slot
                found += 1
        unbind(events.attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, slots[:found], looked
