"""The interface of matchers: slots in, slots out.

A matcher is a subclass of `Matcher` that writes `find`, and to keep an index also `clear`,
`index_clauses` and `drop_clauses`. The base does what all of them need: the table of clauses, the
tally, options, empty batches, rebuilding after a failure. What only some of them can do is in
`capabilities`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.encode.labels import Moved
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.index.clauses import ClauseStorage, ClauseTable
from tamis.index.growth import HoldsArrays
from tamis.match.answers import Matches
from tamis.match.options import Option, declared, validated

__all__ = ["Matcher", "Matches", "Slots", "Tally"]

Slots = NDArray[np.int64]


@dataclass
class Tally:
    """What a matcher did since the tally was last reset; for figures, not for logic."""

    events: int = 0
    predicates: int = 0  # terms compared with an event's values
    nodes: int = 0  # nodes, buckets, cells or lists visited
    subscriptions: int = 0  # clauses touched, whether they matched or not

    def count(self, work: NDArray[np.int64]) -> None:
        """Add the work of a kernel, which begins with predicates, nodes, subscriptions."""
        predicates, nodes, subscriptions = work.tolist()[:3]
        self.predicates += predicates
        self.nodes += nodes
        self.subscriptions += subscriptions

    def reset(self) -> None:
        """Start counting anew."""
        for field in fields(self):
            setattr(self, field.name, 0)


class Matcher(HoldsArrays, ABC):
    """An algorithm over terms. Exact unless the registry says otherwise.

    `clauses`, the table of live clauses, says exactly what each slot asks; a subclass keeps
    whatever index it likes beside it and finds slots through that. Like events, clauses come in
    batches; one clause is a batch of one.
    """

    table_type: ClassVar[type[ClauseStorage]] = ClauseTable
    tally_type: ClassVar[type[Tally]] = Tally

    def __init_subclass__(cls) -> None:
        for name in declared(cls):
            if any(name in vars(base) for base in Matcher.__mro__):
                raise TypeError(
                    f"{cls.__name__} cannot name an option {name!r}: a matcher has that"
                )

    def __init__(self, **options: Any) -> None:
        self.given = options  # what it was made with: a saved engine makes it again
        vars(self).update(validated(type(self), options))
        self.check_options()
        self.clauses: ClauseStorage = self.table_type()
        self.tally = self.tally_type()
        self.clear()

    @classmethod
    def options(cls) -> dict[str, Option[Any]]:
        """The options by name."""
        return declared(cls)

    # -- for callers -------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.clauses.live

    def add(self, slots: Slots, terms: Terms) -> None:
        """Put clause i of `terms` into `slots[i]`. The slots must be free."""
        if not len(slots):
            return
        self.clauses.add(slots, terms.starts, terms[1:])
        try:
            self.index_clauses(slots, terms)
        except MatcherError:  # refused before anything was changed
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
        self.tally.events += events
        if events and self.clauses.live:
            return self.find(batch)
        return Matches(np.zeros(events + 1, np.int64), np.zeros(0, np.int64))

    def terms(self, slots: Slots) -> Terms:
        """What the slots ask."""
        starts, rows = self.clauses.terms(slots)
        return Terms(starts, *rows)

    def follow(self, attribute: int, moved: Moved) -> None:
        """Labels of a text attribute moved: the clauses that mention them follow."""
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
        except BaseException:  # nothing that was accepted may be lost
            self.clauses.add(slots[touched], followed.starts, followed[1:])
            self.rebuild()
            raise

    def rebuild(self) -> None:
        """Make the index anew from the table of clauses."""
        self.clear()
        slots = self.clauses.live_slots()
        if len(slots):
            self.index_clauses(slots, self.terms(slots))

    def check(self) -> None:
        """Raise if an invariant is broken. Slow; for tests."""
        self.clauses.check()

    # -- for subclasses ----------------------------------------------------------------------------

    @abstractmethod
    def find(self, batch: EventBatch) -> Matches:
        """The slots whose clause holds. There are events in the batch, and clauses in the table."""

    def tallied(self, starts: Slots, slots: Slots, work: NDArray[np.int64]) -> Matches:
        """The answer of a kernel, whose work is added to the tally (see `Tally.count`)."""
        self.tally.count(work)
        return Matches(starts, slots)

    def clear(self) -> None:
        """Make the index empty: at first, when the last clause is gone, before it is rebuilt."""

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        """Index new clauses, at least one, which are in the table already.

        To refuse them, raise a `MatcherError` before anything is changed.
        """

    def drop_clauses(self, slots: Slots) -> None:
        """Take clauses, at least one, out of the index; they are still in the table."""

    def check_options(self) -> None:
        """Raise a `MatcherError` if options, each valid by itself, do not go together."""
