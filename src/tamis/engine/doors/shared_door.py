"""Events that are matched while other threads match too.

Each thread has a seat (see `engine_lock`) with all that a match writes to: the shapes of its
events, and a reader of the matcher. All else is only read, or is a cache in which two threads put
the same. What is not, goes the way of one thread at a time: answers are None then. That is so for
operators, for lists of structs, for conditions that mention `now`, for matchers that serve no
readers, and when the matcher has to plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa

from tamis.encode.batch import EventBatch
from tamis.engine.doors.dict_events import DictEvents
from tamis.engine.doors.event_moments import depends_on_now
from tamis.engine.doors.json_door import read_json
from tamis.engine.engine_lock import ALONE, OPEN
from tamis.engine.ids import Id
from tamis.match.answers import Matches
from tamis.match.base import Matcher
from tamis.match.capabilities import MatchReader, ServesReaders
from tamis.model.event import Event

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

_TABLES = (pa.Table, pa.RecordBatch)
_SIZED = frozenset((EventBatch, list, *_TABLES))  # others may run code that uses the engine
_Answer = TypeVar("_Answer")


class _Tools(NamedTuple):
    """What a thread matches with."""

    matcher: Matcher
    reader: MatchReader
    dicts: DictEvents


class SharedDoor:
    """How threads match at once. None: the event or the batch has to come alone."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def match(self, event: Any) -> list[Id] | None:
        """The ids that match an event; as `_seated`, written out, which saves 0.2 µs."""
        lock = self._engine._lock
        if lock.state != OPEN and not self._open():
            return None
        seat = lock.here.seat
        with seat.turn:
            if lock.state != OPEN:
                return None
            tools = seat.tools
            if tools is None or tools.matcher is not self._engine.matcher:
                tools = seat.tools = self._tools()
            found: list[Id] | None = tools.dicts.match(event)
            return self._general(tools, event) if found is None else found

    def match_text(self, text: str | bytes) -> list[Id] | None:
        """The same for an event in JSON, under an open schema."""

        def match(tools: _Tools) -> list[Id] | None:
            found = tools.dicts.match_text(text)
            return self._general(tools, read_json(text)) if found is None else found

        return self._seated(match)

    def match_batch(self, events: Any) -> Matches | None:
        """The matches of each event."""
        if type(events) not in _SIZED:
            return None
        size = events.num_rows if isinstance(events, _TABLES) else len(events)

        def match(tools: _Tools) -> Matches | None:
            if not tools.reader.is_ready(size):
                return None
            return self._found(tools, tools.dicts.batch(events, None, None))

        return self._seated(match)

    def _seated(self, do: Callable[[_Tools], _Answer | None]) -> _Answer | None:
        """Do something with the tools of this thread. None if it has to be alone."""
        lock = self._engine._lock
        if lock.state != OPEN and not self._open():
            return None
        seat = lock.here.seat
        with seat.turn:
            if lock.state != OPEN:
                return None
            if seat.tools is None or seat.tools.matcher is not self._engine.matcher:
                seat.tools = self._tools()
            return do(seat.tools)

    def _open(self) -> bool:
        lock = self._engine._lock
        return lock.state != ALONE and lock.opening(self._in_common)

    def _in_common(self) -> object:
        """What all answers have in common until something changes; None if they may not."""
        engine = self._engine
        if engine.torn or engine.calls or engine.encoder.elements or depends_on_now(engine):
            return None
        if not isinstance(engine.matcher, ServesReaders):
            return None
        return engine.slot_table.current_ids()

    def _tools(self) -> _Tools:
        matcher = self._engine.matcher
        assert isinstance(matcher, ServesReaders)
        reader = matcher.reader()
        return _Tools(matcher, reader, DictEvents(self._engine, reader))

    def _general(self, tools: _Tools, event: Any) -> list[Id] | None:
        """The ids that match an event that is not plain."""
        if not tools.reader.is_ready(1):  # asked first: to encode it twice would count it twice
            return None
        encoder = self._engine.encoder
        found = self._found(tools, encoder.events([Event.of(encoder.schema, event)]))
        return None if found is None else found[0]

    def _found(self, tools: _Tools, batch: EventBatch) -> Matches | None:
        engine, found = self._engine, tools.reader.match(batch)
        if found is None:
            return None
        found = engine.patterns.filter(batch, found)
        found = engine.residuals.filter(batch, found, engine.encoder)
        return engine.slot_table.with_ids(found)
