"""Events given as dicts, on the shortest way to their answer.

Most of the time of a single event is not spent on matching. The general way makes an object for the
event, one for the batch, and one for the answer, and passes dozens of small steps in between. Here
an event is encoded by the code of its shape, matched by one call of a kernel, and filtered only if
a candidate asks for it. What is not plain goes the general way: `match` then returns None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.encode.batch import EventBatch, Texts
from tamis.encode.dynamic_codes import key_of
from tamis.encode.shapes.event_shapes import EventShapes, PublishedEvents
from tamis.encode.shapes.open_events import OpenEvents
from tamis.encode.shapes.shape_code import EventShape
from tamis.engine.doors.event_door import current_batch
from tamis.engine.doors.json_door import read_json, read_text
from tamis.engine.ids import Id
from tamis.match.answers import FoundSlots, Matches
from tamis.match.capabilities import MatchesShapes, MatchReader

if TYPE_CHECKING:
    from tamis.engine.engine import Engine


class DictEvents:
    """The shortest way of an engine, for one thread at a time.

    With a `reader`, it matches through that, while other threads match too.
    """

    def __init__(self, engine: Engine, reader: MatchReader | None = None) -> None:
        self._engine, self._reader = engine, reader
        self._shapes = EventShapes(engine.encoder)
        self._open: OpenEvents | None = None
        self._codecs = engine.encoder.codecs  # replaced when the schema changes

    def match(self, event: Any) -> list[Id] | None:
        """The ids that match an event; None if it has to go the general way."""
        if not self._plain():
            return None
        if self._engine.schema.is_open:
            opened = self._current_open()
            shape = None if opened is None else opened.encode(event)
        else:
            shape = self._current_shapes().encode(event)
        return None if shape is None else self._match(shape, event)

    def match_text(self, text: str | bytes) -> list[Id] | None:
        """The same for an event in JSON, under an open schema."""
        opened = self._current_open() if self._plain() else None
        if opened is None:
            return None
        read_text(text)  # the reader does not look at the bytes that it skips
        try:
            shape = opened.encode(opened.decode(text))
        except (ValueError, RecursionError):  # the general way says what is wrong
            shape = None
        return None if shape is None else self._match(shape, text)

    def _plain(self) -> bool:
        """Whether the matcher and the conditions allow the shortest way."""
        if self._reader is not None:
            return True
        engine = self._engine
        if engine.calls or not isinstance(engine.matcher, MatchesShapes):
            return False
        return not (engine.residuals and engine.residuals.timed)

    def _match(self, shape: EventShape, event: Any) -> list[Id] | None:
        engine, reader = self._engine, self._reader
        if reader is None:
            assert isinstance(engine.matcher, MatchesShapes)
            found = engine.matcher.match_shape(shape)
        else:
            found = reader.match_shape(shape)
        if found is None:
            return None
        if len(found) and (
            (engine.patterns and engine.patterns.asks(found).any())
            or (engine.residuals and engine.residuals.asks(found).any())
        ):
            found = self._filtered(event, shape, found)
        if shape.ignored:
            engine.encoder.count_ignored(dict.fromkeys(shape.ignored, 1))
        return engine.slot_table.ids_of(found) if len(found) else []

    def batch(self, events: Any, missing: str | None, moment: int | None) -> EventBatch:
        """Events in any form as a batch; those in a list of dicts take the shortest way."""
        if type(events) is list and missing is None:
            made = self._current_shapes().batch(events, moment)
            if made is not None:
                return made
        return current_batch(self._engine.encoder, events, missing, moment)

    def _current_open(self) -> OpenEvents | None:
        encoder = self._engine.encoder
        if self._open is None or self._codecs is not encoder.codecs:
            self._open, self._codecs = OpenEvents(encoder), encoder.codecs
        return None if encoder.schema.lists else self._open

    def _current_shapes(self) -> EventShapes:
        if self._shapes.encoder is not self._engine.encoder:
            self._shapes = EventShapes(self._engine.encoder)
        return self._shapes

    def _filtered(self, event: Any, shape: EventShape, found: FoundSlots) -> FoundSlots:
        """The candidates whose patterns and residuals hold too."""
        engine, encoder = self._engine, self._engine.encoder
        published = event if isinstance(event, dict) else read_json(event)
        raw = PublishedEvents(encoder.schema, [published])
        texts = {}
        names = [*encoder.schema.attributes]
        for at in encoder.with_patterns():
            values = raw.event(0).get(names[at], ())
            keys = [key_of(each) if at in encoder.dynamic else each for each in values]
            texts[at] = Texts(keys, np.arange(len(keys)), np.zeros(len(keys), np.int64))
        batch = EventBatch(1, pairs=shape.pairs(), texts=texts, stamp=encoder.stamp, raw=raw)
        matches = Matches(np.array([0, len(found)], np.int64), found)
        matches = engine.patterns.filter(batch, matches)
        return engine.residuals.filter(batch, matches, encoder).slots
