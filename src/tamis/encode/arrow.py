"""Arrow tables to event batches: a column at a time, without a Python object per event.

The rules R1 to R3 are checked on whole columns. A row that breaks one is then read again as a
single event, which raises the same error as that event alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tamis.encode.arrow_checks import checked_table, is_readable
from tamis.encode.batch import Column, EventBatch, Texts
from tamis.encode.columns import column_codes
from tamis.encode.elements.element_table import element_table
from tamis.encode.encoded_events import Elements, EncodedEvents
from tamis.encode.encoder import Encoder
from tamis.encode.json_events import encode_events, rows_of
from tamis.encode.tables.nested_columns import flat_table
from tamis.encode.tables.view_columns import plain_array
from tamis.errors import EventError
from tamis.files.arrays import Bools, Int64s
from tamis.model.domain import Opaque
from tamis.model.event import Event
from tamis.model.schema import EVENT_TYPE, IGNORE, REFUSE, View

Rows = Int64s
# What Arrow raises for types that it cannot convert.
_UNREADABLE = (pa.ArrowException, ValueError, TypeError, ArithmeticError)


EXPECTED = "a list of events, an Arrow table or a DataFrame"


class _ReadColumn(NamedTuple):
    column: Column
    texts: Texts | None
    bad: Rows  # rows with a value outside the domain


class EncodedTable(NamedTuple):
    """A table in codes, and the rows that may be invalid.

    `refusals` decides whether a suspect row is invalid. If there are suspects, the codes cannot be
    used as a batch.
    """

    table: pa.Table  # without structs
    columns: dict[int, Column]
    texts: dict[int, Texts]
    elements: dict[int, Elements]
    certain: Rows  # rows with a value outside its domain; may repeat
    suspect: Rows  # rows that break a rule, judging by presence only; may repeat
    ignored: dict[str, int]  # values that the schema does not know, by name
    stamp: int

    @property
    def events(self) -> EncodedEvents:
        """All rows, of which none may be invalid."""
        return EncodedEvents(self.table, self.columns, self.texts, self.elements, self.stamp)


class RefusedRow(NamedTuple):
    """An invalid row, and the error of that event alone."""

    row: int
    why: EventError


def events_from_arrow(
    encoder: Encoder, table: Any, moments: Int64s | int | None = None
) -> EventBatch:
    """A batch from a table, record batch, or anything with the Arrow stream interface.

    The data may come from anywhere, so everything is checked first.
    """
    return events_from_table(encoder, checked_table(table, EXPECTED, EventError), moments)


def events_from_table(
    encoder: Encoder, table: pa.Table, moments: Int64s | int | None = None
) -> EventBatch:
    """A batch from a table that was checked."""
    if encoder.schema.is_open and encoder.elements:  # their attributes have no columns
        return encode_events(encoder, rows_of(table), moments)
    try:
        encoded = encode(encoder, table)
    except _UNREADABLE as refusal:
        raise EventError(f"the table cannot be read: {refusal}") from None
    for row, why in refusals(encoder, encoded):
        raise why.at_row(row)
    encoder.count_ignored(encoded.ignored)
    return encoded.events.batch(encoder, moments=moments)


def encode(encoder: Encoder, table: Any, *, every_text: bool = False) -> EncodedTable:
    """Encode a table, and find the rows that may be invalid.

    Raw texts are kept for attributes with patterns; with `every_text`, for every text attribute.
    """
    table, stamp = as_table(table), encoder.stamp
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if not is_readable(kind):  # it would crash Arrow itself
            raise EventError(f"the column {name!r} is {kind}, a type that is not read")
    table = flat_table(table, encoder)
    size = table.num_rows
    columns: dict[int, Column] = {}
    texts: dict[int, Texts] = {}
    elements: dict[int, Elements] = {}
    certain: dict[int, Rows] = {}
    suspect = [np.zeros(0, np.int64)]
    ignored: dict[str, int] = {}
    for name, chunked in zip(table.column_names, table.columns, strict=True):
        array = _one(chunked)
        if array.null_count == size:
            continue
        at = encoder.positions.get(name)
        if at is None and encoder.schema.unknown != REFUSE:
            if not encoder.schema.is_open:
                ignored[name] = size - array.null_count
            continue
        if at is None:
            suspect.append(np.flatnonzero(np.asarray(array.is_valid())))
            continue
        if at in columns:
            raise EventError(f"two columns are named {name!r}", attribute=name, rule="R2")
        if at in encoder.elements:
            structs, rows, bad = element_table(array, ignored, name, encoder.schema.unknown)
            inner = encode(encoder.elements[at].encoder, structs, every_text=every_text)
            certain[at] = np.concatenate([bad, rows[inner.certain]])
            suspect.append(rows[inner.suspect])
            if len(rows) or len(bad):
                bound = np.unique(np.concatenate([rows, bad]))
                columns[at] = Column(np.zeros(len(bound), np.int64), bound)
                elements[at] = Elements(inner.events, rows)
            for each, many in inner.ignored.items():
                ignored[f"{name}.{each}"] = many
            continue
        wanted = every_text or encoder.patterned[at] > 0
        read = _read(encoder, at, array, wanted)
        certain[at] = read.bad
        if len(read.column.codes):
            columns[at] = read.column
            if read.texts is not None and wanted:
                texts[at] = read.texts
    for view, members in list(_views(encoder, columns, size)):
        if view is None:
            suspect.append(np.flatnonzero(members))
            continue
        if encoder.schema.unknown == IGNORE:
            outside = (name for name in encoder.schema.attributes if name not in view)
            for name in outside:
                at = encoder.positions[name]
                if at in columns and name != EVENT_TYPE:
                    many = _drop(at, columns, texts, certain, members)
                    if at in elements:
                        elements[at] = elements[at].of_events(~members)
                    ignored[name] = ignored.get(name, 0) + many
        suspect.append(_breaks(encoder, columns, view, members, size))
    bad = np.concatenate([suspect[0], *certain.values()])
    every = np.concatenate(suspect)
    return EncodedTable(table, columns, texts, elements, bad, every, ignored, stamp)


def refusals(encoder: Encoder, encoded: EncodedTable) -> Iterator[RefusedRow]:
    """The invalid rows, in order; each suspect is validated as a single event."""
    certain = np.unique(encoded.certain)
    rows = np.union1d(certain, encoded.suspect)
    sure = np.isin(rows, certain, assume_unique=True)
    for row, is_sure in zip(rows.tolist(), sure.tolist(), strict=True):
        why = _refused(encoder, encoded.table, row)
        if why is None and is_sure:
            why = EventError("a value is not in the domain of its attribute", rule="R2")
        if why is not None:
            yield RefusedRow(row, why)


def _refused(encoder: Encoder, table: pa.Table, row: int) -> EventError | None:
    try:
        (plain,) = rows_of(table.slice(row, 1))
    except (ValueError, ArithmeticError, KeyError, pa.ArrowException) as why:
        return EventError(f"a value cannot be read: {why}", rule="R2")
    try:
        Event.of(encoder.schema, plain)
    except EventError as why:
        return why
    return None


def as_table(given: Any) -> pa.Table:
    """Any Arrow data as a table."""
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    try:
        return pa.table(given)
    except (TypeError, ValueError, pa.ArrowException) as why:
        raise EventError(f"expected {EXPECTED}: {why}") from None


def _one(chunked: pa.ChunkedArray) -> pa.Array:
    """One array in a plain layout: no extension, run-end, fixed-size or view types."""
    array = one_chunk(chunked)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if isinstance(array, pa.FixedSizeListArray):
        array = array.cast(pa.list_(array.values.type))
    elif types.is_list_view(array.type) or types.is_large_list_view(array.type):
        # A cast loses the items of a view: rebuild it from lengths and items.
        lengths = np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        array = pa.LargeListArray.from_arrays(pa.array(ends), pc.list_flatten(array))
    return array


def one_chunk(chunked: pa.ChunkedArray) -> pa.Array:
    """The chunks of a column as one array; copied only if there are several."""
    if chunked.num_chunks == 1:
        return chunked.chunk(0)
    combined = chunked.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _read(encoder: Encoder, at: int, array: pa.Array, texts_wanted: bool) -> _ReadColumn:
    rows: Rows | None = None
    unread = opaque = isinstance(encoder.codecs[at].domain, Opaque)
    if opaque:  # a list may be several values
        name, views = list(encoder.schema.attributes)[at], encoder.schema.event_types.values()
        opaque = not all(view[name].multiple for view in views if name in view)
    empty = False  # whether some rows have a list without values, which means absent
    if isinstance(array, pa.ListArray | pa.LargeListArray) and not isinstance(array, pa.MapArray):
        lengths = np.asarray(array.value_lengths().fill_null(0)).astype(np.int64)
        empty = opaque and not lengths.all()
    if isinstance(array, pa.ListArray | pa.LargeListArray) and not (
        opaque or isinstance(array, pa.MapArray)
    ):
        rows = np.repeat(np.arange(len(array), dtype=np.int64), lengths)
        array = array.flatten()
    array = plain_array(array)  # few functions take views
    if isinstance(array, pa.DictionaryArray) and array.dictionary.null_count:
        array = array.dictionary_decode()  # the dictionary itself may contain a null
    if array.null_count or empty:
        bound = np.flatnonzero(lengths if empty else np.asarray(array.is_valid()))
        rows = bound if rows is None else rows[bound]
        # Arrow cannot filter every type; of opaque values only the count matters.
        array = array.slice(0, len(bound)) if unread else array.drop_null()
    codes, wrong, texts = column_codes(encoder, at, array, texts=texts_wanted)
    bad = np.zeros(0, np.int64) if wrong is None else np.flatnonzero(wrong)
    if rows is not None:
        bad = rows[bad]
    kept = None if texts is None else Texts(texts[0], texts[1], rows)
    return _ReadColumn(Column(codes, rows), kept, bad)


def _views(
    encoder: Encoder, columns: dict[int, Column], size: int
) -> Iterator[tuple[View | None, Bools]]:
    """The views of rows, each with its rows; None for rows without an event type (R1).

    Binds the default event type where rows leave it out.
    """
    schema, default = encoder.schema, encoder.schema.default_event_type
    kinds = list(schema.event_types)
    at = encoder.positions[EVENT_TYPE]
    every = np.ones(size, np.bool_)
    if size == 0:
        return
    if schema.is_open:
        yield schema.view(()), every
        return
    if at not in columns:
        if default is None:
            yield None, every
        else:
            columns[at] = Column(np.full(size, kinds.index(default), np.int64))
            yield schema.view([default]), every
        return
    if default is not None and columns[at].rows is not None:
        columns[at] = _filled(columns[at], kinds.index(default), size)
    codes, rows = columns[at]
    values: list[tuple[int, ...]] = [(code,) for code in range(len(kinds))]
    group = codes
    if rows is not None:
        group, values = _group(codes, rows, size)
    for number, combination in enumerate(values):
        members = group == number
        if members.any():
            known = [kinds[code] for code in combination if code < len(kinds)]
            yield schema.view(known) if combination else None, members


def _drop(
    at: int,
    columns: dict[int, Column],
    texts: dict[int, Texts],
    certain: dict[int, Rows],
    members: Bools,
) -> int:
    """Drop the values of an attribute in some rows; how many there were."""
    codes, rows = columns[at]
    rows = np.arange(len(members)) if rows is None else rows
    kept = ~members[rows]
    columns[at] = Column(codes[kept], rows[kept])
    certain[at] = certain[at][~members[certain[at]]]
    if at in texts:
        texts[at] = Texts(texts[at].texts, texts[at].which[kept], rows[kept])
    return int(len(kept) - np.count_nonzero(kept))


def _filled(column: Column, code: int, size: int) -> Column:
    """A column with `code` for the events that have no value."""
    codes, rows = column
    assert rows is not None
    absent = np.flatnonzero(np.bincount(rows, minlength=size) == 0)
    every = np.concatenate([rows, absent])
    order = np.argsort(every, kind="stable")
    filled = np.concatenate([codes, np.full(len(absent), code, np.int64)])[order]
    return Column(filled, None if len(every) == size else every[order])


def _group(codes: Rows, rows: Rows, size: int) -> tuple[Rows, list[tuple[int, ...]]]:
    """Number the combinations of event types; return the number of each event."""
    few = int(codes.max(initial=0)) < 62
    if few:  # a combination is a set of bits
        bits = np.zeros(size, np.int64)
        np.bitwise_or.at(bits, rows, np.int64(1) << codes)
        distinct, group = np.unique(bits, return_inverse=True)
        return group.astype(np.int64), [
            tuple(code for code in range(62) if mask >> code & 1) for mask in distinct.tolist()
        ]
    bounds = np.searchsorted(rows, np.arange(size + 1))
    numbers: dict[tuple[int, ...], int] = {}
    group = np.empty(size, np.int64)
    for row in range(size):  # more event types than bits in a word
        run = tuple(codes[bounds[row] : bounds[row + 1]].tolist())
        group[row] = numbers.setdefault(run, len(numbers))
    return group, list(numbers)


def _breaks(
    encoder: Encoder, columns: dict[int, Column], view: View, members: Bools, size: int
) -> Rows:
    """The members that break R2 or R3 under a view, judging by presence only."""
    wrong = np.zeros(size, np.bool_)
    uses = {encoder.positions[name]: use for name, use in view.items()}
    for at, (_, rows) in columns.items():
        if at == encoder.positions[EVENT_TYPE]:
            continue
        use = uses.pop(at, None)
        if use is None:
            wrong[slice(None) if rows is None else rows] = True
            continue
        if rows is None:
            continue
        if use.mandatory:
            absent = np.ones(size, np.bool_)
            absent[rows] = False
            wrong |= absent
        if not use.multiple and len(rows) > 1:
            wrong[rows[1:][rows[1:] == rows[:-1]]] = True
    if any(use.mandatory for use in uses.values()):
        wrong[:] = True  # a mandatory attribute has no column
    return np.flatnonzero(wrong & members)
