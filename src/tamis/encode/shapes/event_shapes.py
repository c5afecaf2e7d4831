"""Events in dicts, encoded by code that is generated for their shape.

Publishers send many events with the same names in the same order: the *shape* of an event. A shape
that comes again gets a function of its own (see `shape_code`), which takes a tenth of the time of
the general way.

A shape knows plain values only. Everything else goes the general way, which also explains what is
wrong: a list, a nested object, a number of NumPy, a value outside its domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tamis.encode.batch import EventBatch, Pairs, RawValues, Texts
from tamis.encode.codes import Codec
from tamis.encode.encoder import Encoder
from tamis.encode.shapes.shape_code import NamedShape, shape_of, signed
from tamis.errors import EventError
from tamis.files.arrays import Int32s, UInt8s, offsets
from tamis.model.domain import NAME_LIMIT
from tamis.model.event import Event
from tamis.model.schema import EVENT_TYPE, Schema

_MOST = 256  # shapes with generated code
_FEW = 8  # events of a batch that may go the general way, and a quarter of the others
_SEEN = 4096  # shapes that are remembered until they come again
_LONG = 1024  # names in an event: publishers choose them, and code for more takes long to make


class PublishedEvents:
    """The values of events, validated when somebody reads them first."""

    def __init__(self, schema: Schema, events: list[dict[str, Any] | Event]) -> None:
        self._schema, self._events = schema, events

    def event(self, row: int) -> Mapping[str, tuple[Any, ...]]:
        """All values of an event."""
        event = self._events[row]
        if not isinstance(event, Event):
            event = self._events[row] = Event.of(self._schema, event)
        return event.values

    def column(self, name: str, rows: list[int]) -> list[tuple[Any, ...]]:
        """The values of one attribute in some events."""
        return [self.event(row).get(name, ()) for row in rows]


class EventShapes:
    """The shapes of the events that an encoder has met.

    `Engine.encode` takes no lock. So what belongs to one state of the schema is in one object: a
    thread that is late puts a shape of the earlier state where nobody looks any more.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._known = _KnownShapes(encoder.codecs)

    def __len__(self) -> int:
        return len(self._known.shapes)

    def encode(self, event: Any) -> NamedShape | None:
        """The shape of an event, with the event's codes in it; None for the general way."""
        found = self._find(event)
        if found is None:
            return None
        shape, codes, _ = found
        shape.take(codes)
        return shape

    def batch(self, events: Sequence[Any], moments: int | None) -> EventBatch | None:
        """A batch of events; None if all have to go the general way.

        A few that have to are encoded that way, one by one. If one is bad, all go.
        """
        encoder, stamp = self.encoder, self.encoder.stamp
        if not events or encoder.schema.is_open or encoder.schema.lists:
            return None
        made = _BatchParts(encoder.with_patterns())
        others = 0
        for row, event in enumerate(events):
            found = self._find(event)
            if found is not None:
                made.add_shape(row, *found)
                continue
            others += 1
            if others > _FEW + row // 4:
                return None
            try:
                made.add_event(row, encoder, Event.of(encoder.schema, event))
            except EventError:
                return None
        encoder.count_ignored(made.ignored)
        raw = PublishedEvents(encoder.schema, made.bound)
        return made.batch(stamp, raw, moments)

    def _find(self, event: Any) -> tuple[NamedShape, tuple[Any, ...], dict[str, Any]] | None:
        """The shape of an event, its codes, and what it binds; None for the general way."""
        if type(event) is not dict or len(event) > _LONG:
            return None
        key: tuple[Any, ...] = tuple(event)
        if EVENT_TYPE in event:
            named = event[EVENT_TYPE]
            if type(named) is not str:
                return None
            key = (named, *key)
        known, codecs = self._known, self.encoder.codecs
        if known.codecs is not codecs:
            known = self._known = _KnownShapes(codecs)
        shape = known.shapes.get(key)
        if shape is None:
            if key in known.shapes or not _short(key) or not known.again(key):
                return None
            shape = known.shapes[key] = shape_of(self.encoder, event)
            if shape is None:
                return None
        codes = shape.codes(event)
        return self._without_nulls(event) if codes is None else (shape, codes, event)

    def _without_nulls(
        self, event: dict[str, Any]
    ) -> tuple[NamedShape, tuple[Any, ...], dict[str, Any]] | None:
        """The same for an event with null, which means absent; but null may be dynamic."""
        bound = {name: raw for name, raw in event.items() if raw is not None}
        if len(bound) == len(event) or self.encoder.dynamic:
            return None
        return self._find(bound)


def _short(key: tuple[Any, ...]) -> bool:
    """Whether all names may be names of attributes: the others are too long to keep."""
    return all(type(name) is str and len(name) <= NAME_LIMIT for name in key)


class _KnownShapes:
    """The shapes for one state of a schema: `codecs` is replaced when the schema changes."""

    def __init__(self, codecs: list[Codec]) -> None:
        self.codecs = codecs
        self.shapes: dict[tuple[Any, ...], NamedShape | None] = {}
        self._seen: set[int] = set()  # hashes, since names may be long

    def again(self, key: tuple[Any, ...]) -> bool:
        """Whether a shape has come before, so that code for it will be used."""
        if len(self.shapes) >= _MOST:
            return False
        number = hash(key)
        if number in self._seen:
            self._seen.discard(number)
            return True
        if len(self._seen) >= _SEEN:
            self._seen.clear()
        self._seen.add(number)
        return False


class _BatchParts:
    """The events of a batch, as far as they are encoded."""

    def __init__(self, patterned: list[int]) -> None:
        self.bound: list[dict[str, Any] | Event] = []
        self.ignored: Counter[str] = Counter()
        self._attributes: list[Int32s] = []
        self._decimals: list[UInt8s] = []
        self._codes: list[bytes] = []
        self._patterned = patterned
        self._texts: dict[int, dict[str, int]] = {at: {} for at in patterned}  # numbered
        self._which: dict[int, list[int]] = {at: [] for at in patterned}
        self._rows: dict[int, list[int]] = {at: [] for at in patterned}

    def add_shape(
        self, row: int, shape: NamedShape, codes: tuple[Any, ...], event: dict[str, Any]
    ) -> None:
        """Add an event of a shape."""
        self.bound.append(event.copy())
        self._attributes.append(shape.attribute)
        self._decimals.append(shape.decimal)
        self._codes.append(shape.pack(*codes))
        if shape.ignored:
            self.ignored.update(shape.ignored)
        for at in self._patterned:
            text = shape.text(at, event)
            if text is not None:
                self._add_text(at, text, row)

    def add_event(self, row: int, encoder: Encoder, event: Event) -> None:
        """Add an event that went the general way."""
        self.bound.append(event)
        self.ignored.update(event.ignored)
        alone = encoder.events([Event(event.values, event.schema)])
        self._attributes.append(alone.pairs.attribute)
        self._decimals.append(np.zeros(len(alone.pairs.code), np.uint8))
        self._codes.append(alone.pairs.code.tobytes())
        for at in self._patterned:
            if at in alone.texts:
                texts, which, _ = alone.texts[at]
                for each in which.tolist():
                    self._add_text(at, texts[each], row)

    def _add_text(self, at: int, text: str, row: int) -> None:
        distinct = self._texts[at]
        self._which[at].append(distinct.setdefault(text, len(distinct)))
        self._rows[at].append(row)

    def batch(self, stamp: int, raw: RawValues, moments: int | None) -> EventBatch:
        """The batch."""
        code = np.frombuffer(b"".join(self._codes), np.int64)
        return EventBatch(
            len(self.bound),
            pairs=Pairs(
                offsets([len(each) for each in self._attributes]),
                np.concatenate(self._attributes),
                signed(code, np.concatenate(self._decimals)),
            ),
            texts={
                at: Texts([*texts], np.array(which, np.int64), np.array(rows, np.int64))
                for (at, texts), which, rows in zip(
                    self._texts.items(), self._which.values(), self._rows.values(), strict=True
                )
            },
            stamp=stamp,
            raw=raw,
            moments=moments,
        )
