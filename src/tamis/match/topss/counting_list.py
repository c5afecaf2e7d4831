"""Counting with lists of subscriptions, the "list-based" matching of TOPSS."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int32s, Int64s, UInt8s
from tamis.index.bits import Words, lowest
from tamis.index.blocks import Lists
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.index.postings import Postings
from tamis.match.base import Slots
from tamis.match.options import choice
from tamis.match.topss.byte_counts import full
from tamis.match.topss.counting import CountingMatcher

_STEP = 64  # the paper does not say by how much its lists grow


class CountingList(CountingMatcher):
    """Read the lists of the satisfied predicates and count for the subscriptions in them.

    Each predicate has the list of the subscriptions that contain it. Stage 1 sets a bit for each
    satisfied predicate; stage 2 raises the counters of all subscriptions in its list. A
    subscription matches when its counter reaches its number of predicates.

    add O(predicates of the clause), remove O(lengths of their lists), match O(satisfied predicates
    + their lists + subscriptions); the last term has the small constant of comparing bytes.

    TOPSS (2002), section 3.3. The paper's lists grow by a constant, which makes loading quadratic
    (its table 2). Ours double; `grow="constant"` follows the paper. To remove a subscription, we
    read its predicates from the table of clauses that every matcher has. It is slower than `scan`
    on wide ranges, where an event satisfies about half of all predicates: it counts most predicates
    of most subscriptions, while `scan` leaves most of them by the third predicate.

    Tally: `subscriptions` has the additions, one for each subscription in a list that is read.
    """

    grow = choice("double", "by how much full lists grow", "double", "constant")

    def clear(self) -> None:
        super().clear()
        self._postings = Postings(_STEP if self.grow == "constant" else None)
        self._hits = np.zeros(0, np.uint8)

    def check(self) -> None:
        super().check()
        self._postings.check()
        assert self._postings.total == int(self._wanted.sum())
        assert not self._hits.any(), "counters are zero between events"

    @property
    def _counting_bytes(self) -> int:
        return super()._counting_bytes + self._postings.nbytes + self._hits.nbytes

    def _associate(self, ids: Int64s, slots: Slots) -> None:
        self._postings.append(ids, slots)

    def _dissociate(self, ids: Int64s, slots: Slots) -> None:
        self._postings.remove(ids, slots)

    def _count(self, bits: Words) -> tuple[Int64s, Int64s, int, int]:
        if len(self._hits) < len(self._wanted):
            self._hits = np.zeros(len(self._wanted), np.uint8)
        size = self.clauses.slots
        return _count(
            bits, self._postings.lists, self._postings.slots, self._wanted[:size], self._hits[:size]
        )


@kernel
def _count(
    bits: Words, lists: Lists, pool: Int32s, wanted: UInt8s, hits: UInt8s
) -> tuple[Int64s, Int64s, int, int]:
    events = len(bits)
    starts = np.zeros(events + 1, np.int64)
    out = np.empty(1024, np.int64)
    found = 0
    read = 0
    raised = 0
    for event in range(events):
        for number in range(bits.shape[1]):
            word = bits[event, number]
            while word != 0:
                id = (number << 6) + lowest(word)
                word &= word - np.uint64(1)
                start = lists.start[id]
                # Most of the time goes here: one random write per subscription in the list.
                for place in range(start, start + lists.size[id]):
                    hits[pool[place]] += 1
                read += 1
                raised += lists.size[id]
        out = ensure_capacity(out, found, len(wanted) + 1)
        found = full(hits, wanted, 0, out, found)
        starts[event + 1] = found
    return starts, out[:found], read, raised
