"""The interface of matchers: slots in, slots out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.encode.labels import Moved
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.index.clauses import ClauseTable, mentioning

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


class Matches:
    """The answer to a batch: for each event a set, as CSR arrays.

    Event i matched `subscriptions[starts[i]:starts[i + 1]]`. A matcher speaks of slots; the engine
    attaches the ids that they stand for at that moment, so that an answer stays what it was when
    subscriptions go.
    """

    def __init__(
        self, starts: NDArray[np.int64], slots: Slots, ids: NDArray[Any] | None = None
    ) -> None:
        self.starts, self.slots = starts, slots
        self.subscriptions: NDArray[Any] = slots if ids is None else ids

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def total(self) -> int:
        """How many (event, subscription) pairs there are."""
        return int(self.starts[-1])

    @property
    def events(self) -> NDArray[np.int64]:
        """For each pair the position of its event in the batch."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.starts))

    def __getitem__(self, event: int) -> list[Any]:
        """The ids that matched one event, in no particular order."""
        if not -len(self) <= event < len(self):
            raise IndexError(f"event {event} of a batch of {len(self)}")
        event %= len(self)
        found: list[Any] = self.subscriptions[self.starts[event] : self.starts[event + 1]].tolist()
        return found

    def __iter__(self) -> Iterator[list[Any]]:
        return (self[event] for event in range(len(self)))

    def to_arrow(self) -> Any:
        """A table with the columns `event` (position in the batch) and `subscription` (id).

        Ids are int64 or string; where an engine has both kinds, all are strings.
        """
        import pyarrow as pa

        ids = self.subscriptions
        if ids.dtype == object:
            column = pa.array([str(id) for id in ids], pa.string())
        else:
            column = pa.array(ids)
        return pa.table({"event": pa.array(self.events), "subscription": column})


class Matcher(ABC):
    """An algorithm over terms. Exact unless the registry says otherwise.

    The base keeps the table of live clauses, which says exactly what each slot asks; a subclass
    keeps whatever index it likes beside it and finds slots through that. Like events, clauses come
    in batches; one clause is a batch of one.
    """

    def __init__(self) -> None:
        self.clauses = ClauseTable()
        self.tally = Tally()
        self._reset()

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
        slots = mentioning(self.clauses.view, attribute)
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
