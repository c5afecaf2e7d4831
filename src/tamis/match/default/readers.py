"""Readers of the default matcher: what one thread at a time matches with.

The index and the clauses are only read by a match. All that it writes is here: buffers, the answer,
and counters. So several threads match at once, each with a reader of its own. The matcher has one
more for itself, when it is called directly.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from tamis.encode.batch import EventBatch
from tamis.encode.shapes.shape_code import EventShape
from tamis.files.arrays import Int32s, offsets
from tamis.match.answers import Matches
from tamis.match.capabilities import MatchReader
from tamis.match.default.passes.buffers import AnswerBuffers
from tamis.match.default.passes.twin_events import Twins, with_twins
from tamis.match.default.single_events import SingleEvents
from tamis.match.default.workers import WorkerPool, WorkTally

if TYPE_CHECKING:
    from tamis.match.default.matcher import Tamis


class TamisReader(MatchReader):
    """Buffers and counters for one thread at a time.

    The counters only grow, and only in the thread that matches. `count` adds what is new to the
    tally of the matcher; it may run in another thread meanwhile.
    """

    def __init__(self, matcher: Tamis) -> None:
        self._of = ref(matcher)  # a cycle would keep large indexes until the garbage is collected
        self._tally, self._counted = WorkTally(), WorkTally()
        self._twins = Twins()
        self.clear()

    @property
    def _matcher(self) -> Tamis:
        matcher = self._of()
        assert matcher is not None, "whoever has a reader has its matcher"
        return matcher

    def clear(self) -> None:
        """Release the buffers."""
        self.workers = WorkerPool(self._tally)
        self.singles = SingleEvents(self.workers.first)
        self._answers, self._copies = AnswerBuffers(), AnswerBuffers()

    def count(self, tally: WorkTally) -> None:
        """Add the work since the last call to a tally."""
        for field in fields(WorkTally):
            now = getattr(self._tally, field.name)
            more = now - getattr(self._counted, field.name)
            setattr(self._counted, field.name, now)
            setattr(tally, field.name, getattr(tally, field.name) + more)
        self.singles.count(tally)

    def forget(self) -> None:
        """The index or the clauses have changed."""
        self.singles.forget()

    def match_shape(self, shape: EventShape) -> Int32s | None:
        matcher, singles = self._of(), self.singles
        assert matcher is not None
        if not singles.fitted:
            index = matcher._index
            if index is None or not self._may_match():
                return None
            singles.renew(index, matcher.clauses)
        if matcher._planning is not None or not matcher._watch.see_one(shape):
            return None
        return singles.match(shape)

    def is_ready(self, events: int) -> bool:
        matcher = self._matcher
        if not events or not self._may_match():
            return False
        if matcher._planning is None:
            return not matcher._watch.is_due(events)
        return not (matcher._workers.forked or matcher._planning.done())

    def match(self, batch: EventBatch) -> Matches | None:
        if not self._may_match():
            return None
        if self._matcher._planning is None:
            self._matcher._watch.see_some(batch)
        self._tally.events += len(batch)
        return self.find(batch)

    def _may_match(self) -> bool:
        """Whether the matcher has one index, which still suits the clauses."""
        matcher = self._matcher
        single = matcher._index is not None and matcher._next is None
        return single and matcher.threads == 1 and not matcher._stale()

    def find(self, batch: EventBatch) -> Matches:
        """The matches of events that the matcher has counted."""
        matcher = self._matcher
        pairs, twin = self._twins.without(batch.pairs)
        counts, out, used = self.workers.match(
            matcher._indexes(), matcher.clauses, pairs, matcher.threads, self._answers.take()
        )
        self._answers.keep(out, used)
        if len(batch) == 1:  # for a single event, every NumPy call is noticeable
            return Matches(np.array([0, used], np.int64), out[:used])
        starts = offsets(counts)
        if twin is None:
            return Matches(starts, out[:used])
        copies = self._copies.take()
        starts, copies = with_twins(twin, starts, out, copies)
        self._copies.keep(copies, int(starts[-1]))
        return Matches(starts, copies[: starts[-1]])
