"""Answers: which slots matched which event, and the ids that the slots stood for at that moment.

An answer may hold a thousand times more pairs than there are subscriptions. So nothing is copied or
translated before somebody reads it: a matcher's slots are handed on as they are, and become ids
when and where they are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

FoundSlots = NDArray[np.signedinteger[Any]]
"""Slots in an answer, of 32 or 64 bits as the matcher likes."""


class TextsBySlot(Protocol):
    """An array of texts, or what can be read like one."""

    def __getitem__(self, slots: FoundSlots, /) -> NDArray[np.object_]: ...


class SlotIds:
    """The ids that slots stood for at one moment: `text[slot]` if it is not None, else a number.

    What a slot of an answer stood for is never changed here, whatever becomes of the subscription;
    whoever keeps the live ids sees to that.
    """

    __slots__ = ("__weakref__", "number", "text")

    def __init__(self, number: NDArray[np.int64], text: TextsBySlot | None) -> None:
        self.number, self.text = number, text

    def of(self, slots: FoundSlots) -> NDArray[Any]:
        """The ids of slots: int64, or objects where some id is text."""
        if self.text is None:
            return self.number[slots]
        found = self.text[slots]
        numbered = np.flatnonzero(found == None)  # noqa: E711 - element by element
        found[numbered] = self.number[slots[numbered]]
        return found


class Matches:
    """The answer to a batch: for each event a set, as CSR arrays.

    Event i matched `subscriptions[starts[i]:starts[i + 1]]`. A matcher speaks of slots; from an
    engine, `subscriptions` are the ids that they stood for when it answered, whatever has become of
    the subscriptions since. Ids are looked up when they are read: one event's by `matches[i]`, all
    of them by `subscriptions`; counting needs none.
    """

    def __init__(
        self, starts: NDArray[np.int64], slots: FoundSlots, ids: SlotIds | None = None
    ) -> None:
        self.starts, self.slots = starts, slots
        self._ids = ids  # until all are looked up
        self._subscriptions: NDArray[Any] = slots

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def total(self) -> int:
        """How many (event, subscription) pairs there are."""
        return int(self.starts[-1])

    @property
    def subscriptions(self) -> NDArray[Any]:
        """For each pair the id of its subscription."""
        ids = self._ids
        if ids is not None:
            # In this order, so that a second thread finds the one or the other.
            self._subscriptions = ids.of(self.slots)
            self._ids = None
        return self._subscriptions

    @property
    def events(self) -> NDArray[np.int64]:
        """For each pair the position of its event in the batch."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.starts))

    def __getitem__(self, event: int) -> list[Any]:
        """The ids that matched one event, in no particular order."""
        at = position(event, len(self))
        part = slice(self.starts[at], self.starts[at + 1])
        ids = self._ids
        found = self._subscriptions[part] if ids is None else ids.of(self.slots[part])
        listed: list[Any] = found.tolist()
        return listed

    def __iter__(self) -> Iterator[list[Any]]:
        return (self[event] for event in range(len(self)))

    def without(self, pairs: NDArray[np.int64]) -> Matches:
        """The answer of a matcher less some of its pairs, given by ascending place."""
        if not len(pairs):
            return self
        starts = self.starts - np.searchsorted(pairs, self.starts)
        return Matches(starts, np.delete(self.slots, pairs), self._ids)

    def to_arrow(self) -> Any:
        """A table with the columns `event` (position in the batch) and `subscription` (id).

        Ids are int64 or string; where an engine has both kinds, all are strings.
        """
        import pyarrow as pa

        return pa.table({"event": pa.array(self.events), "subscription": self.arrow_ids()})

    def arrow_ids(self, texts: bool = False) -> Any:
        """For each pair the id of its subscription, as an Arrow array of int64 or string.

        Strings where an engine has any, and with `texts` in any case. Of a million subscriptions
        that are hit in no order, Arrow takes the numbers three times as fast as NumPy does.
        """
        import pyarrow as pa

        known = self._ids
        if not texts and known is not None and known.text is None:
            return pa.array(known.number).take(pa.array(self.slots))
        ids = self.subscriptions
        if not texts and ids.dtype != object:
            return pa.array(ids)
        try:
            return pa.array(ids, pa.string())
        except pa.ArrowException:  # some are numbers: all become text
            return pa.array([str(each) for each in ids], pa.string())

    def __getstate__(self) -> dict[str, Any]:
        self.subscriptions  # noqa: B018 - the ids of the answer go along, not those of all slots
        return self.__dict__


def position(event: int, events: int) -> int:
    """The place of an event that is counted from either end of a batch."""
    if not -events <= event < events:
        raise IndexError(f"event {event} of a batch of {events}")
    return event % events
