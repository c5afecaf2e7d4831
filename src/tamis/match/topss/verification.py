"""Find candidates by their elementary predicates, then verify them against the clause table."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.files.arrays import Bools, Int8s, Int32s, Int64s, offsets
from tamis.index.clauses import ClauseArrays, bind, unbind
from tamis.index.elementary_predicates import IF_SINGLE, VERIFY, has_several
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.slot_set import SlotSet
from tamis.index.verification import answer_arrays, keep_matching, trusted
from tamis.match.base import Matcher, Matches, Slots

Events = tuple[Int64s, Int32s, Int64s]
"""Starts, attribute and code of pairs: event i has the pairs `starts[i]:starts[i + 1]`."""


class CandidateMatcher(Matcher):
    """Find candidates by their elementary predicates; verify clauses that these do not cover.

    A batch is processed in chunks, which bounds the memory per chunk.
    """

    def clear(self) -> None:
        self._always = SlotSet()  # clauses that are candidates for every event
        self._exact = np.zeros(0, np.int8)  # by slot
        self._inexact = np.zeros(3, np.int64)  # number of other clauses, by exactness

    @abstractmethod
    def chunk_size(self) -> int:
        """The number of events processed at a time."""

    @abstractmethod
    def candidates(self, pairs: Pairs) -> tuple[Int64s, Int64s]:
        """Starts and slots of the clauses whose predicates hold, without the slots in `_always`."""

    def find(self, batch: EventBatch) -> Matches:
        size = self.chunk_size()
        if size >= len(batch):
            return Matches(*self._verified(batch.pairs))
        parts = [self._verified(batch[at : at + size].pairs) for at in range(0, len(batch), size)]
        starts = offsets(np.concatenate([np.diff(starts) for starts, _ in parts]))
        return Matches(starts, np.concatenate([slots for _, slots in parts]))

    def _verified(self, pairs: Pairs) -> tuple[Int64s, Int64s]:
        starts, slots = self.candidates(pairs)
        # Two values of one attribute might satisfy one end of a range each.
        several = self._inexact[IF_SINGLE] and any_several(pairs.starts, pairs.attribute)
        if len(self._always) or self._inexact[VERIFY] or several:
            starts, slots, terms = verified(
                (pairs.starts, pairs.attribute, pairs.code),
                (starts, slots),
                self.clauses.view,
                self.clauses.width,
                self._exact,
                self._always.slots,
            )
            self.tally.predicates += terms
            self.tally.subscriptions += (len(pairs.starts) - 1) * len(self._always)
        return starts, slots

    def check(self) -> None:
        super().check()
        self._always.check()
        others = np.setdiff1d(self.clauses.live_slots(), self._always.slots)
        assert (self._inexact == np.bincount(self._exact[others], minlength=3)).all()

    def _note(self, slots: Slots, found: Bools, exact: Int8s) -> None:
        """Record which new clauses are `found` by their predicates and how `exact` these are."""
        self._exact = grown(self._exact, self.clauses.slots)
        self._exact[slots] = np.where(found, exact, VERIFY)
        self._always.add(slots[~found])
        self._inexact += np.bincount(exact[found], minlength=3)

    def _forget(self, slots: Slots, found: Bools) -> None:
        """Forget clauses; `found` marks those found by their predicates."""
        self._always.remove(slots[~found])
        self._inexact -= np.bincount(self._exact[slots[found]], minlength=3)


@kernel
def verified(
    events: Events,
    candidates: tuple[Int64s, Int64s],
    clauses: ClauseArrays,
    width: int,
    exact: Int8s,
    always: Int64s,
) -> tuple[Int64s, Int64s, int]:
    """Starts and slots of the candidates that hold, and the number of terms examined.

    `candidates` also has starts and slots. Only candidates that the index does not represent
    exactly are verified (`exact`, by slot). The slots in `always` are candidates for every event.
    """
    pair_starts, attribute, code = events
    old, slots = candidates
    starts, out, _, first, last = answer_arrays(pair_starts, width)
    found = 0
    looked = 0
    for event in range(len(starts) - 1):
        begin, end = pair_starts[event], pair_starts[event + 1]
        several = bind(attribute, begin, end, first, last)
        many = old[event + 1] - old[event]
        out = ensure_capacity(out, found, many + len(always))
        full = found + many
        out[found:full] = slots[old[event] : old[event + 1]]
        out[full : full + len(always)] = always
        full += len(always)
        found, terms = keep_matching(
            clauses, first, last, code, exact, trusted(several), out, found, full
        )
        looked += terms
        unbind(attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, out[:found], looked


@kernel
def any_several(starts: Int64s, attribute: Int32s) -> bool:
    """Whether any event has several values of an attribute."""
    for event in range(len(starts) - 1):
        if has_several(attribute, starts[event], starts[event + 1]):
            return True
    return False
