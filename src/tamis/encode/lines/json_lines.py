"""Lines of JSON to events, thousands at a time; other lines are refused with a reason.

Arrow's reader parses a block of lines at once, with the types of the schema. It is stricter than an
event (5.0 is an integer to us) and stops at the first line that it dislikes. So a block that fails
is cut there, and the culprit is read alone, by the rules of a single event. These rules alone
decide: a line that the quick way refuses is read again by them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import json as arrow_json

from tamis.encode.arrow import one_chunk
from tamis.encode.columns import column_codes
from tamis.encode.encoder import Encoder
from tamis.encode.json_events import has_dynamic
from tamis.encode.lines.event_columns import (
    arrow_types,
    list_column,
    list_rows,
    multiple,
    nested,
    placed,
    with_spellings,
    without_spellings,
)
from tamis.encode.validation import Refused, ValidEvents, validate, validate_events
from tamis.errors import EventError
from tamis.model.domain import Opaque
from tamis.model.dynamic import Dynamic
from tamis.model.event import Event
from tamis.model.schema import EVENT_TYPE, IGNORE, Schema

Rows = NDArray[np.int64]

JSON = "json"  # the only column of events of a log that came as text
_LINES = 16384  # of a block; a call of Arrow costs as much as hundreds of lines
_NEXT_LINES = 4096  # of a block after a culprit: the rest is passed again for each further one
_FEW = 32  # lines: fewer are not worth another try of Arrow's reader
_BYTES = 1 << 28  # of a block; Arrow counts in 32 bits
_EXACT = 2.0**53  # from here on a whole number may have no double
_ROW = re.compile(r"in row (\d+)")
_TIME = pa.timestamp("us", "UTC")
_NO_ROWS: Rows = np.zeros(0, np.int64)


class ParsedLines(NamedTuple):
    """The events of some lines, and why the other lines are refused."""

    valid: ValidEvents  # its rows are lines
    lines: int

    @property
    def events(self) -> pa.Table:
        """A row for each line, with null in all columns where the line is refused."""
        valid = self.valid
        if len(valid) == self.lines:
            return valid.table
        table: pa.Table = placed(valid.table.combine_chunks(), valid.rows, self.lines)
        return table

    @property
    def reasons(self) -> pa.Array:
        """Why a line is refused; null for an event."""
        return reason_column(self.valid.refused, self.lines)


def reason_column(refused: Sequence[Refused], rows: int) -> pa.Array:
    """Reasons as a column of so many rows, null where a row is not refused."""
    if not refused:
        return pa.nulls(rows, pa.string())
    known = {each.row: each.reason for each in refused}
    return pa.array([known.get(row) for row in range(rows)], pa.string())


class _Block(NamedTuple):
    """Lines that Arrow read at once, and which lines they are."""

    table: pa.Table
    rows: Rows


class LineReader:
    """Reads lines of JSON as events of one schema.

    With `for_operators`, opaque values stay what they are in JSON, for the operators that read
    them. In a table they are text.
    """

    def __init__(self, encoder: Encoder, *, for_operators: bool = False) -> None:
        self._encoder, self._schema = encoder, encoder.schema
        domains = self._schema.attributes.values()
        opaque = for_operators and any(isinstance(each, Opaque) for each in domains)
        self._as_they_came = opaque or has_dynamic(self._schema)
        several = multiple(self._schema)
        self.types = arrow_types(self._schema)
        self._kinds = {
            name: kind.value_type if name in several else kind for name, kind in self.types.items()
        }
        lists = [self._kinds[name] for name in self._schema.lists]
        self._quick = not any(_has_times(kind) for kind in lists)

    def parse(self, lines: pa.Array | pa.ChunkedArray) -> ParsedLines:
        """The events of lines, which are text, or bytes of UTF-8."""
        whole = one_chunk(lines) if isinstance(lines, pa.ChunkedArray) else lines
        texts, reasons = _texts(whole)
        if self._as_they_came:
            return self._parse_one_by_one(texts, reasons)
        trimmed = pc.ascii_trim(texts, characters=" \t\r\n")
        # With these two, no object can begin in one line and end in another: see _read.
        likely = pc.and_(pc.starts_with(trimmed, "{"), pc.ends_with(trimmed, "}"))
        quick = np.flatnonzero(np.asarray(likely.fill_null(False))) if self._quick else _NO_ROWS
        blocks = [_Block(self._table([]), _NO_ROWS), *self._blocks(trimmed, quick)]
        rows = np.concatenate([block.rows for block in blocks])
        valid = validate(self._encoder, pa.concat_tables([block.table for block in blocks]))
        rows = rows[valid.rows]
        left = np.ones(len(texts), np.bool_)
        left[rows] = False
        plain: dict[int, Event] = {}
        for row in np.flatnonzero(left).tolist():
            if row not in reasons:
                read = _read_line(texts[row].as_py())
                event = read if isinstance(read, str) else _event(self._schema, read)
                if isinstance(event, str):
                    reasons[row] = event
                else:
                    plain[row] = event
        if plain:
            every = np.concatenate([rows, np.fromiter(plain, np.int64, len(plain))])
            order = np.argsort(every)
            table = pa.concat_tables([valid.table, self._table(list(plain.values()))])
            valid = validate(self._encoder, table.combine_chunks().take(pa.array(order)))
            every = every[order]
            reasons |= {int(every[row]): reason for row, reason in valid.refused}
            rows = every[valid.rows]
        refused = [Refused(row, reasons[row]) for row in sorted(reasons)]
        return ParsedLines(replace(valid, rows=rows, refused=refused), len(texts))

    def _parse_one_by_one(self, texts: pa.Array, reasons: dict[int, str]) -> ParsedLines:
        """Lines whose values have kinds that differ from line to line, or that are opaque."""
        events: list[Any] = []
        plain: list[Event | None] = []
        for row, line in enumerate(texts.to_pylist()):
            read = reasons.get(row) or _read_line(line)
            found = read if isinstance(read, str) else _event(self._schema, read)
            if isinstance(found, str):
                reasons[row] = found
            events.append(None if isinstance(read, str) else read.value)
            plain.append(None if isinstance(found, str) else found)
        table = self._table(plain)
        return ParsedLines(validate_events(self._encoder, events, table, reasons), len(texts))

    # -- many lines at once ------------------------------------------------------------------------

    def _blocks(self, lines: pa.Array, rows: Rows) -> Iterator[_Block]:
        """What Arrow's reader can read of lines, in blocks, in the order of the lines."""
        stack = _last_first(rows, _LINES)
        while stack:
            rows = stack.pop()
            if not len(rows):
                continue
            part = lines if len(rows) == len(lines) else lines.take(pa.array(rows))
            read = self._read(part) if part.nbytes <= _BYTES else len(rows) // 2
            if isinstance(read, pa.Table):
                yield self._typed(read, rows)
            elif len(rows) > _FEW:
                # The lines before the culprit are good; a few of them are not worth another try.
                stack += _last_first(rows[read + 1 :], _NEXT_LINES)
                stack.append(rows[:read] if read > _FEW else rows[:0])

    def _read(self, lines: pa.Array) -> pa.Table | int:
        """A row for each line; or, where Arrow's reader does not like one, which one, or a guess.

        Its reader does not know of lines, only of objects one after the other. But each line begins
        with { and ends with }; a newline within a text is refused, and within an object no { may
        follow on }. So none goes on in the next line, and where there are as many objects as lines,
        each has its own.
        """
        listed = self._listed(lines[0].as_py())
        offsets = pa.array([0, len(lines)], pa.int32())
        joined = pc.binary_join(pa.ListArray.from_arrays(offsets, lines), "\n").buffers()[2]
        assert joined is not None  # no line is empty
        try:
            table = arrow_json.read_json(
                pa.BufferReader(joined),
                arrow_json.ReadOptions(use_threads=False, block_size=max(1 << 16, joined.size + 1)),
                arrow_json.ParseOptions(
                    explicit_schema=self._explicit(listed),
                    unexpected_field_behavior=(
                        "ignore" if self._schema.unknown == IGNORE else "error"
                    ),
                ),
            )
        except pa.ArrowException as why:
            row = _ROW.search(str(why))
            return min(int(row[1]) if row else len(lines) // 2, len(lines) - 1)
        return table if table.num_rows == len(lines) else len(lines) // 2

    def _listed(self, line: str) -> frozenset[str]:
        """The attributes that are lists in the first line, and likely in the others."""
        several = {name for name, kind in self.types.items() if kind != self._kinds[name]}
        if not several:
            return frozenset()
        try:
            found = _flat(json.loads(line))
        except (ValueError, RecursionError, AttributeError):
            found = {}
        return frozenset(each for each in several if isinstance(found.get(each, []), list))

    def _explicit(self, listed: frozenset[str]) -> pa.Schema:
        # Times are read as text, by our own rules.
        kinds = {name: pa.string() if kind == _TIME else kind for name, kind in self._kinds.items()}
        kinds |= {name: pa.list_(kinds[name]) for name in listed}
        types = nested(kinds, lambda below: pa.struct(list(below.items())))
        return pa.schema(with_spellings(pa.schema(list(types.items()))))

    def _typed(self, table: pa.Table, rows: Rows) -> _Block:
        """A block with the right types, without lines whose values Arrow may have changed."""
        table = without_spellings(table)
        odd = np.zeros(len(rows), np.bool_)
        columns: dict[str, pa.Array] = {}
        for name, kind in self.types.items():
            column = one_chunk(table.column(name))
            if self._kinds[name] == _TIME:
                column, wrong = self._times(name, column)
                odd[wrong] = True
            else:
                odd[_inexact(column)] = True
            if isinstance(kind, pa.ListType) and not isinstance(column.type, pa.ListType):
                column = _wrapped(column)
            if name == EVENT_TYPE and self._schema.default_event_type is not None:
                column = _with_default(column, self._schema.default_event_type)
            columns[name] = column.cast(kind)
        table = pa.table(columns)
        if not odd.any():
            return _Block(table, rows)
        return _Block(table.filter(pa.array(~odd)), rows[~odd])

    def _times(self, name: str, column: pa.Array) -> tuple[pa.Array, Rows]:
        """Texts as points in time, and the rows of other texts."""
        values = column.flatten() if isinstance(column, pa.ListArray) else column
        bound = values.drop_null()
        codes, wrong, _ = column_codes(self._encoder, self._encoder.positions[name], bound)
        valid = np.asarray(values.is_valid())
        every = np.zeros(len(values), np.int64)
        every[valid] = codes
        times = pa.array(every, mask=~valid).cast(_TIME)
        at = np.flatnonzero(valid)[np.flatnonzero(wrong) if wrong is not None else slice(0)]
        if not isinstance(column, pa.ListArray):
            return times, at
        lengths = np.asarray(column.value_lengths().fill_null(0))
        absent = np.asarray(column.is_null())
        return list_column(times, lengths, absent), list_rows(column)[at]

    # -- one line after the other ------------------------------------------------------------------

    def _table(self, events: list[Event | None]) -> pa.Table:
        rows = [{} if event is None else _row(event) for event in events]
        return pa.table(
            {name: pa.array([row.get(name) for row in rows], k) for name, k in self.types.items()}
        )


def _last_first(rows: Rows, size: int) -> list[Rows]:
    """Rows in blocks of so many, the last block first."""
    return [rows[at : at + size] for at in range(0, len(rows), size)][::-1]


def _row(event: Event) -> dict[str, Any]:
    """The values of an event, as a row of a table has them."""
    schema, found = event.schema, dict[str, Any](event.values)
    several = multiple(schema)
    for name, values in event.values.items():
        if name in event.elements:
            found[name] = [_element(each) for each in event.elements[name]]
            continue
        as_text = isinstance(schema.attributes[name], Opaque | Dynamic)
        written = tuple(map(_written, values)) if as_text else values
        found[name] = written if name in several else written[0]
    return found


def _element(event: Event) -> dict[str, Any]:
    flat = _row(event)
    flat.pop(EVENT_TYPE, None)
    return flat if event.schema.is_open else nested(flat, lambda below: below)


class _Line(NamedTuple):
    """What a line has."""

    value: Any


def _read_line(line: str | None) -> _Line | str:
    """The value of one line, or why it cannot be read."""
    if line is None:
        return "there is no text"
    try:
        return _Line(json.loads(line))
    except json.JSONDecodeError as why:
        return f"not JSON: {why}"
    except (ValueError, RecursionError) as why:  # a number of ten thousand digits, or too deep
        return f"not JSON that can be read: {why}"


def _event(schema: Schema, line: _Line) -> Event | str:
    """The event of one line, or why it is refused."""
    try:
        return Event.of(schema, line.value)
    except EventError as why:
        return str(why)


def _written(value: Any) -> str:
    """An opaque value as text. JSON can write half of a surrogate pair, and UTF-8 cannot."""
    if isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value):
        return value
    return json.dumps(value)


def _texts(lines: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Lines as text, null where a line is not UTF-8, with the reasons."""
    try:
        texts = lines.cast(pa.string())
        texts.validate(full=True)  # Spark does not look at what it reads as text
        return texts, {}
    except pa.ArrowInvalid:
        pass
    found: list[str | None] = []
    reasons: dict[int, str] = {}
    content = lines.cast(pa.binary())
    content.validate(full=True)  # offsets that lead astray
    for row, line in enumerate(content.to_pylist()):
        try:
            found.append(None if line is None else line.decode())
        except UnicodeDecodeError as why:
            found.append(None)
            reasons[row] = f"not UTF-8: {why.reason} at byte {why.start}"
    return pa.array(found, pa.string()), reasons


def _flat(given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": below for inner, below in _flat(value).items()}
        else:
            found[name] = value
    return found


def _inexact(column: pa.Array) -> Rows:
    """Rows with a number that Arrow may have rounded instead of refusing it."""
    if isinstance(column, pa.ListArray):
        return list_rows(column)[_inexact(column.flatten())]
    if isinstance(column, pa.StructArray):
        return np.concatenate([_NO_ROWS, *map(_inexact, column.flatten())])
    if not pa.types.is_floating(column.type):
        return _NO_ROWS
    values = np.asarray(column.fill_null(0.0))
    return np.flatnonzero(~(np.abs(values) < _EXACT))


def _has_times(kind: Any) -> bool:
    """Whether elements have times, which are read as text, by our own rules."""
    inner = kind.value_type if isinstance(kind, pa.ListType) else kind
    if isinstance(inner, pa.StructType):
        return any(_has_times(inner.field(at).type) for at in range(inner.num_fields))
    return bool(inner == _TIME)


def _with_default(column: pa.Array, default: str) -> pa.Array:
    """Event types, with the default for lines that name none."""
    if not isinstance(column, pa.ListArray):
        return column.fill_null(default)
    named = np.asarray(pc.list_parent_indices(column))[np.asarray(column.flatten().is_valid())]
    absent = np.bincount(named, minlength=len(column)) == 0
    return pc.if_else(pa.array(absent), pa.scalar([default], column.type), column)


def _wrapped(column: pa.Array) -> pa.Array:
    """Single values as lists of one; null stays null."""
    bound = np.asarray(column.is_valid())
    return list_column(column.drop_null(), bound, ~bound)
