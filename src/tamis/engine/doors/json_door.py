"""Events come in as JSON in text: one, several, or lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encode.lines.json_lines import LineReader
from tamis.encode.validation import Refused
from tamis.engine.doors.event_door import BAD, REFUSE_ALL, REPORT, GoodEvents
from tamis.engine.doors.event_moments import GivenMoment, moment_of_call
from tamis.errors import EventError
from tamis.match.answers import Matches
from tamis.model.event import Event

if TYPE_CHECKING:
    from tamis.engine.engine import Engine
    from tamis.engine.ids import Id

Text = str | bytes
_KEEP = "surrogatepass"  # what is not text becomes bytes that are not UTF-8, which are refused


class JsonDoor:
    """What an engine does with JSON."""

    @overload
    def match_json(self, events: Text, *, now: GivenMoment = None) -> list[Id]: ...

    @overload
    def match_json(
        self, events: list[str] | list[bytes], *, bad: str = "refuse", now: GivenMoment = None
    ) -> Matches: ...

    def match_json(
        self,
        events: Text | list[str] | list[bytes],
        *,
        bad: str = "refuse",
        now: GivenMoment = None,
    ) -> list[Id] | Matches:
        """The ids of all subscriptions that match an event, which is JSON in text.

        Of a list of texts, the matches of each, as in `match_batch`. Without a schema, only the
        parts of a single event that some condition mentions are read. The others are skipped: they
        must be JSON, but a number of thousands of digits goes unnoticed there.
        """
        engine = cast("Engine", self)
        if isinstance(events, list):
            return match_texts(engine, events, bad, now)
        if now is None and engine.schema.is_open:
            found = engine._shared.match_text(events)
            if found is None:
                with engine._lock.mutex:
                    engine._ready()
                    found = engine._dicts.match_text(events)
            if found is not None:
                return found
        return engine.match(read_json(events), now=now)

    def match_lines(self, lines: Text, *, bad: str = "refuse", now: GivenMoment = None) -> Matches:
        """The matches of events that are lines of JSON; see `match_batch` for `bad`.

        Names that the schema ignores are not counted.
        """
        content = lines.encode(errors=_KEEP) if isinstance(lines, str) else lines
        if not isinstance(content, bytes):
            raise EventError(f"expected lines in text, str or bytes, got {type(lines).__name__}")
        return _match_array(cast("Engine", self), _lines(content.rstrip()), None, bad, now)


def match_texts(engine: Engine, texts: Sequence[Text], bad: str, now: GivenMoment) -> Matches:
    """The matches of events in text; see `Engine.match_batch` for `bad`."""
    try:
        every = [t.encode(errors=_KEEP) if isinstance(t, str) else t for t in texts]
        lines = pa.array(every, pa.binary())
    except (pa.ArrowException, TypeError) as why:
        raise EventError(f"expected events in text, a list of str or bytes: {why}") from None
    return _match_array(engine, lines, texts, bad, now)


def _lines(content: bytes) -> pa.Array:
    """The lines of a text; Arrow makes no object for each."""
    if not content:
        return pa.array([], pa.binary())
    if len(content) >= 1 << 31:  # Arrow counts in 32 bits
        return pa.array(content.split(b"\n"), pa.binary())
    lines: pa.Array = pc.list_flatten(pc.split_pattern(pa.array([content], pa.binary()), "\n"))
    return lines


def _match_array(
    engine: Engine, lines: pa.Array, texts: Sequence[Text] | None, bad: str, now: GivenMoment
) -> Matches:
    """The matches of texts in an array; they may also be there as they came."""
    if bad not in BAD:
        raise EventError(f"bad is one of {', '.join(map(repr, BAD))}, got {bad!r}")
    with engine._lock.mutex:
        engine._ready()
        moment = moment_of_call(engine, now)
        if engine.schema.is_open:  # only what conditions mention is looked at
            given = lines.to_pylist() if texts is None else texts
            good = _open_events(engine, given, moment, bad)
            return good.spread(engine.match_batch(good.batch), bad)
        valid = LineReader(engine.encoder, for_operators=bool(engine.calls)).parse(lines).valid
        if valid.refused and bad == "refuse":
            row, reason = valid.refused[0]
            raise EventError(reason).at_row(row)
        engine.encoder.count_ignored(valid.ignored)
        found = engine.match_batch(valid.batch(engine.encoder, moment))
    if not valid.refused:
        return found
    counts = np.zeros(len(lines), np.int64)
    counts[valid.rows] = np.diff(found.starts)
    return found.spread(counts, tuple(valid.refused) if bad == REPORT else ())


def _open_events(engine: Engine, texts: Sequence[Text], moment: int | None, bad: str) -> GoodEvents:
    """The events of an open schema in texts, each read as a single one."""
    encoder = engine.encoder
    events: list[Event] = []
    rows: list[int] = []
    refused: list[Refused] = []
    for row, text in enumerate(texts):
        try:
            events.append(Event.of(encoder.schema, read_json(text)))
            rows.append(row)
        except EventError as why:
            if bad == REFUSE_ALL:
                raise why.at_row(row) from None
            refused.append(Refused(row, str(why)))
    batch = encoder.events(events, moment)
    return GoodEvents(batch, np.array(rows, np.int64), len(texts), refused)


def read_text(text: Any) -> str:
    """The text of a `str` or of bytes in UTF-8; anything else raises an `EventError`."""
    if isinstance(text, str):
        return text
    if not isinstance(text, bytes | bytearray):
        raise EventError(f"expected an event in text, str or bytes, got {type(text).__name__}")
    try:
        return text.decode()
    except UnicodeDecodeError as why:
        raise EventError(f"not UTF-8: {why.reason} at byte {why.start}") from None


def read_json(text: Text) -> Any:
    """The value of a text in JSON; any other text raises an `EventError`."""
    try:
        return json.loads(read_text(text))
    except (ValueError, RecursionError) as why:  # also a number of ten thousand digits
        raise EventError(f"not JSON: {why}") from None
