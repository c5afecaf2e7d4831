"""The counting step that several matchers share: predicates and the clauses that use them.

Each predicate that an event satisfies raises the counters of its clauses by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int8s, Int32s, Int64s
from tamis.index.blocks import Lists
from tamis.index.counters import Counters, CounterScratch
from tamis.index.elementary_predicates import ElementaryPredicates
from tamis.index.growth import HoldsArrays, grown
from tamis.index.kernel import kernel
from tamis.index.postings import Postings
from tamis.match.base import Tally
from tamis.match.lesubscribe.predicates import PredicateIndex, Predicates, satisfied


@dataclass
class CountTally(Tally):
    """What Le Subscribe's formulas of cost count. `subscriptions` is additions and partial."""

    additions: int = 0  # counters raised
    partial: int = 0  # clauses whose equalities hold, where these are looked up
    compared: int = 0  # counters compared with the number of predicates

    def count(self, work: Int64s) -> None:
        """Add the work of a kernel: predicates, nodes, additions, partial, compared."""
        predicates, nodes, additions, partial, compared = work.tolist()
        self.predicates += predicates
        self.nodes += nodes
        self.additions += additions
        self.partial += partial
        self.compared += compared
        self.subscriptions += additions + partial


class CountArrays(NamedTuple):
    """View for kernels: predicates, their slot lists, and the predicates each slot needs."""

    predicates: Predicates
    lists: Lists
    slots: Int32s
    needed: Int32s
    exact: Int8s


class PredicateCounters(HoldsArrays):
    """The counted predicates of clauses, with scratch space for counting."""

    def clear(self) -> None:
        self.predicates = PredicateIndex()
        self.postings = Postings()
        self._needed = np.zeros(0, np.int32)
        self._exact = np.zeros(0, np.int8)
        self._counters = Counters()

    @property
    def view(self) -> CountArrays:
        """The arrays for kernels."""
        return CountArrays(
            self.predicates.view,
            self.postings.lists,
            self.postings.slots,
            self._needed,
            self._exact,
        )

    def scratch(self) -> CounterScratch:
        """Counters for all slots and marks for all predicates."""
        return self._counters.fit(len(self._needed), self.predicates.top)

    def stamps(self, events: int) -> int:
        """The stamp of the first event of a batch; the next ones count up from it."""
        return self._counters.stamps(events)

    def add(self, slots: Int64s, found: ElementaryPredicates, needed: Int32s) -> None:
        """Count the predicates of some clauses; their slots must hold no predicates yet."""
        size = int(slots.max(initial=-1)) + 1
        self._needed = grown(self._needed, size)
        self._exact = grown(self._exact, size)
        self._needed[slots] = needed
        self._exact[slots] = found.exact
        if len(found.attribute):
            ids = self.predicates.add(self.predicates.plan(found))
            self.postings.append(ids, np.repeat(slots, np.diff(found.starts)))

    def remove(self, slots: Int64s, found: ElementaryPredicates) -> None:
        """Stop counting the predicates of some clauses."""
        self._needed[slots] = 0
        if len(found.attribute):
            ids = self.predicates.find(found)
            self.postings.remove(ids, np.repeat(slots, np.diff(found.starts)))
            self.predicates.remove(ids)

    def check(self) -> None:
        """Raise if a part is inconsistent or a counter is not zero."""
        self.predicates.check()
        self.postings.check()
        assert not self._counters.scratch.hits.any(), "counters are zero between events"


@kernel
def count(
    counted: CountArrays,
    attribute: Int32s,
    code: Int64s,
    event: tuple[int, int],
    scratch: CounterScratch,
    stamp: int,
) -> tuple[int, int, int]:
    """Raise the counters of one event, whose pairs are `event[0]:event[1]`.

    Returns the number of raised slots (the first entries of `scratch.touched`), of satisfied
    predicates, and of counter increments.
    """
    hits, touched, seen, ids = scratch
    starts, sizes, slots = counted.lists.start, counted.lists.size, counted.slots
    many = 0
    for at in range(event[0], event[1]):
        many = satisfied(counted.predicates, attribute[at], code[at], seen, stamp, ids, many)
    raised = 0
    additions = 0
    for i in range(many):
        start, size = starts[ids[i]], sizes[ids[i]]
        additions += size
        for place in range(start, start + size):  # the hot loop: one random write per posting
            slot = slots[place]
            if hits[slot] == 0:
                touched[raised] = slot
                raised += 1
            hits[slot] += 1
    return raised, many, additions
