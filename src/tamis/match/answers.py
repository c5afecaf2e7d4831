"""Answers: which slots matched which event, and the ids of those slots as of the match.

An answer may hold a thousand times more pairs than there are subscriptions. So ids are resolved
lazily: the matcher's slots are passed on without a copy and become ids only when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import EngineError, counted
from tamis.files.arrays import Int64s, offsets

FoundSlots = NDArray[np.signedinteger[Any]]
"""Slots in an answer: 32 or 64 bits, depending on the matcher."""


class SlotIds:
    """A snapshot of the ids of slots: `text[slot]` if it is not None, else `number[slot]`.

    The ids of slots in an answer never change here, even when the subscription is removed. The
    owner of the live ids guarantees this.
    """

    __slots__ = ("__weakref__", "number", "text")

    def __init__(self, number: Int64s, text: Any) -> None:
        self.number = number
        self.text = text  # None, an array of texts, or an object that is indexed like one

    def of(self, slots: FoundSlots) -> NDArray[Any]:
        """The ids of slots: int64, or object if some ids are text."""
        if self.text is None:
            return self.number[slots]
        found: NDArray[np.object_] = self.text[slots]
        numbered = np.flatnonzero(found == None)  # noqa: E711 - element by element
        found[numbered] = self.number[slots[numbered]]
        return found


class Matches:
    """The answer to a batch: one set per event, as CSR arrays.

    Event i matched `subscriptions[starts[i]:starts[i + 1]]`. In the answer of a matcher these are
    slots. In the answer of an engine they are ids as of the match; later changes to the
    subscriptions do not affect them. Ids are resolved lazily: `matches[i]` resolves those of one
    event, `subscriptions` resolves all. Counting resolves none.
    """

    refused: Sequence[tuple[int, str]] = ()
    """The rows that are no events, with their reasons, if `match_batch` was asked to report."""

    def __init__(self, starts: Int64s, slots: FoundSlots, ids: SlotIds | None = None) -> None:
        self.starts, self.slots = starts, slots
        self._ids = ids  # None once all ids are resolved
        self._subscriptions: NDArray[Any] = slots

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def total(self) -> int:
        """The number of (event, subscription) pairs."""
        return int(self.starts[-1])

    @property
    def subscriptions(self) -> NDArray[Any]:
        """The subscription id of each pair."""
        ids = self._ids
        if ids is not None:
            # In this order, so that another thread always sees one of the two.
            self._subscriptions = ids.of(self.slots)
            self._ids = None
        return self._subscriptions

    @property
    def events(self) -> Int64s:
        """The position in the batch of each pair's event."""
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

    def without(self, pairs: Int64s) -> Matches:
        """The answer without the pairs at these positions, which ascend."""
        if not len(pairs):
            return self
        starts = self.starts - np.searchsorted(pairs, self.starts)
        return Matches(starts, np.delete(self.slots, pairs), self._ids)

    def spread(self, counts: Int64s, refused: Sequence[tuple[int, str]]) -> Matches:
        """The answer for more events: each has so many of the pairs, in order."""
        found = Matches(offsets(counts), self.slots, self._ids)
        found._subscriptions, found.refused = self._subscriptions, refused
        return found

    def to_arrow(self) -> Any:
        """A table with the columns `event` (position in the batch) and `subscription` (id).

        Ids are int64 or string. If an engine has both kinds, all are strings.
        """
        import pyarrow as pa

        return pa.table({"event": pa.array(self.events), "subscription": self.arrow_ids()})

    def to_pandas(self) -> Any:
        """The table of `to_arrow` as a DataFrame of pandas."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            raise EngineError("to_pandas needs pandas, which is not installed") from None

    def to_polars(self) -> Any:
        """The table of `to_arrow` as a DataFrame of polars."""
        try:
            polars = import_module("polars")
        except ImportError:
            raise EngineError("to_polars needs polars, which is not installed") from None
        return polars.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        bad = f", {len(self.refused):,} refused" if self.refused else ""
        return f"<Matches: {self.total:,} of {counted(len(self), 'event')}{bad}>"

    def arrow_ids(self, texts: bool = False) -> Any:
        """The subscription id of each pair, as an Arrow array of int64 or string.

        The array holds strings if the engine has any text id, or if `texts` is set. Arrow gathers
        numbers from a million subscriptions in random order three times as fast as NumPy.
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
        except pa.ArrowException:  # some ids are numbers: convert all to text
            return pa.array([str(each) for each in ids], pa.string())

    def __getstate__(self) -> dict[str, Any]:
        self.subscriptions  # noqa: B018 - pickle only the ids in the answer, not those of all slots
        return self.__dict__


def position(event: int, events: int) -> int:
    """The position of an event in a batch. A negative index counts from the end."""
    if not -events <= event < events:
        raise IndexError(f"event {event} is out of range for a batch of {events}")
    return event % events
