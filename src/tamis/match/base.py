"""The interface of matchers: slots in, slots out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.encode.labels import Moved
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.files.arrays import add_prefix, take_prefix
from tamis.index.clauses import ClauseStorage, ClauseTable
from tamis.match.answers import Matches
from tamis.match.bitmaps import Bitmaps
from tamis.match.plan import LINES, Plan

__all__ = ["Bitmaps", "Matcher", "Matches", "Slots", "Tally"]

Slots = NDArray[np.int64]


@dataclass
class Tally:
    """What a matcher did since the tally was last reset; for figures, not for logic."""

    events: int = 0
    predicates: int = 0  # terms compared with an event's values
    nodes: int = 0  # nodes, buckets, cells or lists visited
    subscriptions: int = 0  # clauses touched, whether they matched or not

    def reset(self) -> None:
        """Start counting anew."""
        for field in fields(self):
            setattr(self, field.name, 0)


class Matcher(ABC):
    """An algorithm over terms. Exact unless the registry says otherwise.

    The base keeps the table of live clauses, which says exactly what each slot asks; a subclass
    keeps whatever index it likes beside it and finds slots through that. Like events, clauses come
    in batches; one clause is a batch of one.
    """

    layout: ClassVar[int] = 1  # of what is saved: the next number when arrays or facts change
    unsaved: ClassVar[tuple[str, ...]] = ()  # options that are secret or belong to a machine

    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *given: Any, **options: Any) -> Self:
        """Remember what it is made with: opening a saved engine makes it again."""
        made = super().__new__(cls)
        made._made_with = (given, options)
        return made

    def __init__(self) -> None:
        self.clauses: ClauseStorage = self._table()
        self.tally = Tally()
        self._reset()

    def _table(self) -> ClauseStorage:
        """An empty table of clauses."""
        return ClauseTable()

    def __len__(self) -> int:
        return len(self.clauses)

    def add(self, slots: Slots, terms: Terms) -> None:
        """Put clause i of `terms` into `slots[i]`. The slots must be free."""
        self.clauses.add(slots, terms.starts, terms[1:])
        try:
            self._added(slots, terms)
        except MatcherError:  # refused before anything was changed
            self.clauses.remove(slots)
            raise
        except BaseException:  # for example out of memory, halfway
            self.clauses.remove(slots)
            self._rebuild()
            raise

    def remove(self, slots: Slots) -> None:
        """Empty the slots."""
        self._removing(slots)
        self.clauses.remove(slots)
        if not len(self.clauses):
            self._reset()

    @abstractmethod
    def match(self, batch: EventBatch) -> Matches:
        """The slots whose clause holds, for each event of the batch."""

    def match_bits(self, batch: EventBatch) -> Bitmaps:
        """The same answer as bits. For a matcher that has it so anyway, or finds it sooner so.

        The words are given away: an engine writes in them. The slots are not written in, and must
        stay what they are when clauses come and go.
        """
        return Bitmaps.of(self.match(batch), self.clauses.live_slots())

    def plan(self, slots: Slots | None = None, lines: int = LINES) -> Plan:
        """Where clauses lie, what that is expected to cost, and why; with `slots`, of each of
        them too. Of each sort of thing at most so many `lines` are told one by one."""
        raise MatcherError(f"a {type(self).__name__} makes no plan; the matcher 'tamis' makes one")

    def settle(self) -> None:  # noqa: B027
        """Finish whatever it does beside, such as following a change of events. For benchmarks."""

    def check(self) -> None:
        """Raise if an invariant is broken. Slow; for tests."""
        self.clauses.check()

    @property
    def nbytes(self) -> int:
        """Bytes of the table of clauses and of the index."""
        return self.clauses.nbytes

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
            self._rebuild()
            raise

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved of it, not copied: the table of clauses, and of the index what is quicker
        read than made again."""
        return add_prefix("clauses", self.clauses.arrays())

    def facts(self) -> dict[str, Any]:
        """What is saved besides arrays, such as JSON can say: text for keys, lists for tuples."""
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Become what gave these arrays and facts, under the same options.

        The arrays are mapped from files and the matcher's own from then on: writing to them is
        allowed and private, and costs memory. Making the index anew, as here, is always right.
        """
        self.clauses.restore(take_prefix("clauses", arrays))
        self._rebuild()

    def _rebuild(self) -> None:
        """Make the index anew from the table of clauses."""
        self._reset()
        slots = self.clauses.live_slots()
        if len(slots):
            self._added(slots, self.terms(slots))

    def _reset(self) -> None:  # noqa: B027
        """Make the index empty: at first, and when the last clause is gone."""

    def _added(self, slots: Slots, terms: Terms) -> None:  # noqa: B027
        """Index new clauses, which are in the table already.

        To refuse them, raise a `MatcherError` before anything is changed.
        """

    def _removing(self, slots: Slots) -> None:  # noqa: B027
        """Take clauses out of the index; they are still in the table."""
