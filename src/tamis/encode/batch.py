"""`EventBatch`: encoded events, by column or by event, as a matcher needs them.

A batch is the unit; one event is a batch of one. Arrow tables start as columns (without a copy if
possible), dicts start by event. The other form is built lazily, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tamis.files.arrays import Int32s, Int64s


class Column(NamedTuple):
    """The codes of one attribute. Without `rows`, event i has the one value `codes[i]`.

    With `rows` (ascending), `codes[j]` is a value of event `rows[j]`. An event not in `rows` does
    not bind the attribute; an event that is in `rows` twice has two values.
    """

    codes: Int64s
    rows: Int64s | None = None


class Pairs(NamedTuple):
    """All (attribute, code) pairs, event by event, by ascending attribute within an event.

    Event i has the pairs `starts[i]:starts[i + 1]`.
    """

    starts: Int64s
    attribute: Int32s
    code: Int64s


class Texts(NamedTuple):
    """Raw texts of one attribute, for patterns: value j of the column is `texts[which[j]]`."""

    texts: list[str]
    which: Int64s
    rows: Int64s | None


class RawValues(Protocol):
    """The values of events as published, by attribute. Operators read values, not codes."""

    def event(self, row: int) -> Mapping[str, tuple[Any, ...]]:
        """All values of an event."""

    def column(self, name: str, rows: list[int]) -> list[tuple[Any, ...]]:
        """The values of one attribute in some events."""


class EventValues:
    """Raw values that are there by event."""

    def __init__(self, values: Sequence[Mapping[str, tuple[Any, ...]]]) -> None:
        self._values = values

    def event(self, row: int) -> Mapping[str, tuple[Any, ...]]:
        """All values of an event."""
        return self._values[row]

    def column(self, name: str, rows: list[int]) -> list[tuple[Any, ...]]:
        """The values of one attribute in some events."""
        return [self._values[row].get(name, ()) for row in rows]


class EventBatch:
    """Encoded events. `stamp` identifies the state of the encoder that encoded them."""

    def __init__(
        self,
        size: int,
        *,
        columns: Mapping[int, Column] | None = None,
        pairs: Pairs | None = None,
        texts: Mapping[int, Texts] | None = None,
        stamp: int = 0,
        raw: RawValues | None = None,
        first: int = 0,
        moments: Int64s | int | None = None,
    ) -> None:
        if columns is None and pairs is None:
            raise ValueError("an EventBatch is made of columns or of pairs")
        self.size = size
        self.stamp = stamp
        self.texts: Mapping[int, Texts] = texts or {}
        self._columns = columns
        self._pairs = pairs
        self._raw, self._first = raw, first
        self.moments = np.full(size, moments, np.int64) if isinstance(moments, int) else moments
        """The moment of each event, in microseconds since 1970; None: that of the match."""

    def __len__(self) -> int:
        return self.size

    @property
    def columns(self) -> Mapping[int, Column]:
        """The column of each attribute that some event binds, by position."""
        if self._columns is None:
            assert self._pairs is not None
            self._columns = _columns(self._pairs, self.size)
        return self._columns

    @property
    def pairs(self) -> Pairs:
        """The same codes, event by event."""
        if self._pairs is None:
            assert self._columns is not None
            self._pairs = _pairs(self._columns, self.size)
        return self._pairs

    def __getitem__(self, part: slice) -> EventBatch:
        """A run of the events, as a batch."""
        starts, attribute, code = self.pairs
        first, last, step = part.indices(self.size)
        if step != 1:
            raise ValueError("a slice of a batch must have step 1")
        last = max(first, last)
        inner = slice(starts[first], starts[last])
        pairs = Pairs(starts[first : last + 1] - starts[first], attribute[inner], code[inner])
        texts = {at: _cut(column, first, last) for at, column in self.texts.items()}
        return EventBatch(
            last - first,
            pairs=pairs,
            texts=texts,
            stamp=self.stamp,
            raw=self._raw,
            first=self._first + first,
            moments=None if self.moments is None else self.moments[first:last],
        )

    def codes_of(self, event: int, attribute: int) -> list[int]:
        """The codes of one attribute of one event."""
        run = slice(self.pairs.starts[event], self.pairs.starts[event + 1])
        found: list[int] = self.pairs.code[run][self.pairs.attribute[run] == attribute].tolist()
        return found

    def raw_values(self, event: int) -> Mapping[str, tuple[Any, ...]]:
        """The values of an event as published, by attribute, for operators."""
        return self._values().event(self._first + event)

    def read(self, name: str, events: list[int]) -> list[tuple[Any, ...]]:
        """The values of one attribute in some events as published, for operators."""
        first = self._first
        return self._values().column(name, [first + each for each in events] if first else events)

    def _values(self) -> RawValues:
        if self._raw is None:
            raise ValueError("the batch has codes only")
        return self._raw


def _cut(column: Texts, first: int, last: int) -> Texts:
    if column.rows is None:
        return Texts(column.texts, column.which[first:last], None)
    a, b = np.searchsorted(column.rows, (first, last))
    return Texts(column.texts, column.which[a:b], column.rows[a:b] - first)


def _pairs(columns: Mapping[int, Column], size: int) -> Pairs:
    order = sorted(columns)
    if order and all(columns[at].rows is None for at in order):
        # Every event binds every attribute once: the pairs are the transposed columns.
        code = np.stack([columns[at].codes for at in order], axis=1).reshape(-1)
        attribute = np.tile(np.array(order, np.int32), size)
        return Pairs(np.arange(size + 1, dtype=np.int64) * len(order), attribute, code)
    every = np.arange(size, dtype=np.int64)
    counts = np.zeros(size + 1, np.int64)
    for column in columns.values():
        if column.rows is None:
            counts[1:] += 1
        else:
            counts[1:] += np.bincount(column.rows, minlength=size)
    starts = np.cumsum(counts)
    code = np.empty(starts[-1], np.int64)
    attribute = np.empty(starts[-1], np.int32)
    free = starts[:-1].copy()  # where the next pair of each event goes
    for at in order:
        codes, rows = columns[at]
        if rows is None:
            places = free.copy()
            free += 1
        else:
            # The k-th value of an event goes k positions after its first.
            first = np.searchsorted(rows, every)
            places = free[rows] + (np.arange(len(rows)) - first[rows])
            free += np.bincount(rows, minlength=size)
        code[places] = codes
        attribute[places] = at
    return Pairs(starts, attribute, code)


def _columns(pairs: Pairs, size: int) -> dict[int, Column]:
    rows = np.repeat(np.arange(size, dtype=np.int64), np.diff(pairs.starts))
    order = np.argsort(pairs.attribute, kind="stable")
    attributes, firsts = np.unique(pairs.attribute[order], return_index=True)
    columns: dict[int, Column] = {}
    for at, part in zip(attributes.tolist(), np.split(order, firsts[1:]), strict=False):
        bound = rows[part]
        dense = len(bound) == size and bool((bound == np.arange(size)).all())
        columns[at] = Column(pairs.code[part], None if dense else bound)
    return columns
