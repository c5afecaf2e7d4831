"""The walk of events through a task: read, validated once, matched, and handed to its end.

Jobs differ at the two ends alone: where chunks of events come from, who matches them, and what
becomes of the answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.encode.arrow import one_chunk
from tamis.encode.arrow_checks import is_readable
from tamis.encode.encoder import Encoder
from tamis.encode.lines.event_columns import schema_encoder
from tamis.encode.lines.json_lines import LineReader
from tamis.encode.validation import Refused, ValidEvents, extends, same_codes, validate
from tamis.engine import Engine
from tamis.errors import EventError
from tamis.match.answers import Matches
from tamis.replay.event_source import READ, EventChunk, Int64s
from tamis.replay.parts import RAW, REASON

# What Arrow and Python raise for values that nobody could have written as an event.
_UNREADABLE = (EventError, pa.ArrowException, ValueError, TypeError, ArithmeticError)
_SHOWN = 500  # characters of an error
_FEWEST = 1 << 10  # events that are matched at once
_PAIRS = 1 << 21  # about how many pairs one step should give


class ReadEvents(NamedTuple):
    """Rows that were read and validated."""

    chunk: EventChunk
    table: pa.Table  # of all rows, a column for each attribute
    valid: ValidEvents

    @property
    def numbers(self) -> Int64s:
        """The numbers of the valid events."""
        valid, numbers = self.valid, self.chunk.numbers
        return numbers[valid.rows] if valid.refused else numbers

    @property
    def moments(self) -> Int64s | None:
        """When the valid events were appended to their log."""
        moments, valid = self.chunk.moments, self.valid
        return moments[valid.rows] if moments is not None and valid.refused else moments

    def refusals(self) -> dict[str, pa.Array]:
        """Why rows were refused, and the rows as they came."""
        reasons = pa.array([reason for _, reason in self.valid.refused], pa.string())
        return {REASON: reasons, RAW: self.raw_texts()}

    def raw_texts(self) -> pa.Array:
        """The refused rows as they came: the line, or the columns as JSON."""
        if self.chunk.lines is not None:
            texts = [_as_text(self.chunk.lines.slice(row, 1)) for row, _ in self.valid.refused]
        else:
            events = self.chunk.layout.events(self.chunk.table)
            texts = [row_as_json(events.slice(row, 1)) for row, _ in self.valid.refused]
        return pa.array(texts, pa.string())


def _as_text(line: pa.Array | pa.ChunkedArray) -> str | None:
    """A line as text, even if it is not text."""
    try:
        _check_offsets(line)
        value = line[0].as_py()
        return value if value is None or isinstance(value, str) else str(_plain(value))
    except UnicodeDecodeError as why:
        return bytes(why.object).decode(errors="replace")
    except (ValueError, ArithmeticError, pa.ArrowException):
        return f"a value of the type {line.type}"


def row_as_json(row: pa.Table) -> str:
    """A row as JSON, as far as its values can be read."""
    found: dict[str, Any] = {}
    for name, column in zip(row.column_names, row.columns, strict=True):
        if not is_readable(column.type):  # it would crash Arrow itself
            found[name] = f"a value of the type {column.type}"
            continue
        try:
            _check_offsets(column)
        except pa.ArrowException:
            found[name] = f"a value of the type {column.type}"
            continue
        try:
            found[name] = column[0].as_py()
        except (ValueError, ArithmeticError, KeyError, pa.ArrowException):
            found[name] = " ".join(str(one_chunk(column)).split())  # as Arrow prints it
    return json.dumps(found, default=_plain, ensure_ascii=False, skipkeys=True)


def _check_offsets(column: pa.Array | pa.ChunkedArray) -> None:
    """Raise `ArrowInvalid` for offsets that lead astray: Arrow would read other memory."""
    kind = column.type
    if pa.types.is_string(kind):
        whole = one_chunk(column) if isinstance(column, pa.ChunkedArray) else column
        column = whole.view(pa.binary())  # what is not UTF-8 can be shown
    column.validate(full=True)


def _plain(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class BatchPace:
    """How many events are matched at once: as many as give a good number of pairs.

    With `first` and `most` the same, it is always that many.
    """

    def __init__(self, first: int = _FEWEST, most: int = READ) -> None:
        self._first, self._most = first, most
        self.step = first

    def note(self, events: int, pairs: int) -> None:
        """Choose the next step by what the last one gave."""
        fitting = int(_PAIRS / max(pairs / events, 1e-9)) // _FEWEST * _FEWEST
        self.step = min(max(fitting, self._first), 4 * self.step, self._most)


def read_events(
    chunks: Iterable[EventChunk],
    encoder: Encoder,
    pace: BatchPace,
    *,
    partial: bool = False,
    for_operators: bool = True,
) -> Iterator[ReadEvents]:
    """Validate the rows of chunks, some at a time: by their own schemas, where chunks name them.

    Without `for_operators`, lines are columns of values even where values are opaque.
    """
    for chunk in chunks:
        at = 0
        while at < len(chunk.numbers):
            some = chunk.slice(at, pace.step)
            at += len(some.numbers)
            for read in _readable(some, encoder, partial, for_operators):
                encoder.count_ignored(read.valid.ignored)
                yield read


def _readable(
    chunk: EventChunk, encoder: Encoder, partial: bool, for_operators: bool
) -> Iterator[ReadEvents]:
    """Validate rows. Those that cannot even be read are refused too, and do not stop the others."""
    try:
        yield _validated(chunk, encoder, partial, for_operators)
    except _UNREADABLE as why:
        many = len(chunk.numbers)
        if many == 1:
            nothing = validate(encoder, pa.table({}))
            refused = replace(nothing, refused=[Refused(0, f"cannot be read: {_first_line(why)}")])
            yield ReadEvents(chunk, chunk.table, refused)
            return
        for half in (chunk.slice(0, many // 2), chunk.slice(many // 2, many)):
            yield from _readable(half, encoder, partial, for_operators)


def encoder_of(chunk: EventChunk, encoder: Encoder) -> Encoder:
    """The encoder to validate a chunk with: the given one, unless its rows have an earlier schema.

    The given one then has an extension of that.
    """
    if chunk.layout.document is None:
        return encoder
    own, later = schema_encoder(chunk.layout.document), encoder.schema
    return encoder if same_codes(own.schema, later) or not extends(later, own.schema) else own


def _validated(
    chunk: EventChunk, encoder: Encoder, partial: bool, for_operators: bool
) -> ReadEvents:
    encoder = encoder_of(chunk, encoder)
    if chunk.lines is not None:
        parsed = LineReader(encoder, for_operators=for_operators).parse(chunk.lines)
        return ReadEvents(chunk, parsed.events, parsed.valid)
    events = chunk.layout.events(chunk.table)
    return ReadEvents(chunk, chunk.table, validate(encoder, events, partial=partial))


def _first_line(why: BaseException) -> str:
    return (str(why).splitlines() or [type(why).__name__])[0][:_SHOWN]


def match_with(
    engine: Engine,
    chunks: Iterable[EventChunk],
    pace: BatchPace,
    *,
    partial: bool = False,
    when: Callable[[ReadEvents], Int64s | int | None] = lambda events: events.moments,
) -> Iterator[tuple[ReadEvents, Matches]]:
    """Validate the rows of chunks and match the events with one engine, some at a time.

    `when` gives the moments of valid events; by default, they are those of their log.
    """
    for events in read_events(chunks, engine.encoder, pace, partial=partial):
        found = engine.match_batch(events.valid.batch(engine.encoder, when(events)))
        pace.note(len(events.chunk.numbers), found.total)
        yield events, found
