"""The interface of matchers: slots in, slots out.

A matcher is a subclass of `Matcher` that implements `find`. A matcher with an index also implements
`clear`, `index_clauses` and `drop_clauses`. The base class handles what all matchers need: the
clause table, the tally, options, empty batches, rebuilding after a failure. Optional features are
in `capabilities`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from tamis.encode.batch import EventBatch
from tamis.encode.labels import Moved
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.files.arrays import Int64s
from tamis.index.clauses import ClauseStorage, ClauseTable
from tamis.index.growth import HoldsArrays
from tamis.match.answers import Matches
from tamis.match.options import Option, check_declarations, declared, validated

__all__ = ["Matcher", "Matches", "Slots", "Tally"]

Slots = Int64s
# Attributes of a matcher, and arguments of `Engine` and `Engine.open`, which also take options.
_TAKEN = {
    "clauses", "given", "tally", "schema", "matcher", "operators", "scheduler", "folder", "verify"
}  # fmt: skip


@dataclass
class Tally:
    """The work a matcher has done since the last reset. For reporting only, never for logic."""

    events: int = 0
    predicates: int = 0  # terms compared with an event's values
    nodes: int = 0  # nodes, buckets, cells or lists visited
    subscriptions: int = 0  # clauses touched, whether they matched or not

    def count(self, work: Int64s) -> None:
        """Add the counters of a kernel. The first three are predicates, nodes, subscriptions."""
        predicates, nodes, subscriptions = work.tolist()[:3]
        self.predicates += predicates
        self.nodes += nodes
        self.subscriptions += subscriptions

    def reset(self) -> None:
        """Set all counters to 0."""
        for field in fields(self):
            setattr(self, field.name, 0)


class Matcher(HoldsArrays, ABC):
    """An algorithm over terms. Exact unless the registry says otherwise.

    `clauses` is the table of live clauses: the exact terms of each slot. A subclass keeps its own
    index next to this table and finds slots through the index. Clauses come in batches, as events
    do; one clause is a batch of one.
    """

    table_type: ClassVar[type[ClauseStorage]] = ClauseTable
    tally_type: ClassVar[type[Tally]] = Tally

    def __init_subclass__(cls) -> None:
        taken = {name for base in Matcher.__mro__ for name in vars(base)}
        check_declarations(cls, taken | _TAKEN)

    def __init__(self, **options: Any) -> None:
        self.given = options  # as passed in: a saved engine recreates the matcher from them
        vars(self).update(validated(type(self), options))
        self.check_options()
        self.clauses: ClauseStorage = self.table_type()
        self._tally = self.tally_type()
        self.clear()

    @classmethod
    def options(cls) -> dict[str, Option[Any]]:
        """The options by name."""
        return declared(cls)

    # -- for callers -------------------------------------------------------------------------------

    @property
    def tally(self) -> Tally:
        """The work since the last reset."""
        return self._tally

    def __len__(self) -> int:
        return self.clauses.live

    def add(self, slots: Slots, terms: Terms) -> None:
        """Put clause i of `terms` into `slots[i]`. The slots must be free."""
        if not len(slots):
            return
        self.clauses.add(slots, terms.starts, terms[1:])
        try:
            self.index_clauses(slots, terms)
        except MatcherError:  # rejected before any change
            self.clauses.remove(slots)
            raise
        except BaseException:  # for example out of memory, halfway
            self.clauses.remove(slots)
            self.rebuild()
            raise

    def remove(self, slots: Slots) -> None:
        """Empty the slots."""
        if not len(slots):
            return
        try:
            self.drop_clauses(slots)
            self.clauses.remove(slots)
            if not self.clauses.live:
                self.clear()
        except MatcherError:
            raise
        except BaseException:
            self.rebuild()
            raise

    def match(self, batch: EventBatch) -> Matches:
        """The slots whose clause holds, for each event of the batch."""
        events = len(batch)
        self._tally.events += events
        if events and self.clauses.live:
            return self.find(batch)
        return Matches(np.zeros(events + 1, np.int64), np.zeros(0, np.int64))

    def terms(self, slots: Slots) -> Terms:
        """The terms of the clauses in the slots."""
        starts, rows = self.clauses.terms(slots)
        return Terms(starts, *rows)

    def follow(self, attribute: int, moved: Moved) -> None:
        """Labels of a text attribute were renumbered: update the clauses that mention them."""
        slots = self.clauses.mentioning(attribute)
        terms = self.terms(slots)
        mine = terms.attribute == attribute
        low, high = terms.low.copy(), terms.high.copy()
        low[mine] = moved.follow_lower(terms.low[mine])
        high[mine] = moved.follow_upper(terms.high[mine])
        changed = (low != terms.low) | (high != terms.high)
        clause = np.repeat(np.arange(len(slots)), np.diff(terms.starts))
        touched = np.unique(clause[changed])
        if not len(touched):
            return
        followed = terms._replace(low=low, high=high).take(touched)
        self.remove(slots[touched])
        try:
            self.add(slots[touched], followed)
        except BaseException:  # an accepted clause must not be lost
            self.clauses.add(slots[touched], followed.starts, followed[1:])
            self.rebuild()
            raise

    def rebuild(self) -> None:
        """Build the index again from the clause table."""
        self.clear()
        slots = self.clauses.live_slots()
        if len(slots):
            self.index_clauses(slots, self.terms(slots))

    def reset(self) -> None:
        """Empty the matcher, whatever state an interrupted change has left it in."""
        self.clauses = self.table_type()
        self.clear()

    def check(self) -> None:
        """Raise if an invariant is broken. Slow; for tests."""
        self.clauses.check()

    # -- for subclasses ----------------------------------------------------------------------------

    @abstractmethod
    def find(self, batch: EventBatch) -> Matches:
        """The slots whose clause holds. Neither the batch nor the clause table is empty."""

    def run(self, kernel: Callable[..., Any], batch: EventBatch, *index: Any) -> Matches:
        """The answer of a kernel. Its work is added to the tally (see `Tally.count`).

        The kernel takes the pairs of the batch, the clause table and its width, and `index`.
        """
        starts, slots, work = kernel(batch.pairs, self.clauses.view, self.clauses.width, *index)
        self.tally.count(work)
        return Matches(starts, slots)

    def clear(self) -> None:
        """Empty the index. Called at construction, after the last removal, before a rebuild."""

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        """Index one or more new clauses, which are already in the clause table.

        To reject them, raise a `MatcherError` before changing anything.
        """

    def drop_clauses(self, slots: Slots) -> None:
        """Remove one or more clauses from the index. They are still in the clause table."""

    def check_options(self) -> None:
        """Raise a `MatcherError` if individually valid options conflict."""
