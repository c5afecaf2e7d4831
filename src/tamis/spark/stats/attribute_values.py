"""The values of attributes: of validated events, as columns, and back from codes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.codes import (
    BooleanCodec,
    Codec,
    DecimalCodec,
    NameCodec,
    TextCodec,
    TimestampCodec,
)
from tamis.encode.encoder import Encoder
from tamis.encode.lines.event_columns import list_column, multiple, placed
from tamis.encode.validation import ValidEvents
from tamis.model.domain import INT_HIGH

Int64s = NDArray[np.int64]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AttributeValues(NamedTuple):
    """All values of an attribute, event by event: codes, or texts; each once for an event.

    Without `rows`, each event has one value; else value j belongs to event `rows[j]`.
    """

    array: pa.Array
    rows: Int64s | None
    bound: int  # events that have any


def attribute_values(encoder: Encoder, events: ValidEvents, name: str) -> AttributeValues | None:
    """The values of an attribute; None where no event binds it."""
    at = encoder.positions[name]
    column = events.columns.get(at)
    if column is None or not len(column.codes):
        return None
    codes, rows = column
    if at in events.elements:
        rows = events.elements[at].rows
        codes = np.zeros(len(rows), np.int64)
    texts: pa.Array | None = None
    if isinstance(encoder.codecs[at], TextCodec):
        kept = events.texts[at]
        # A dictionary that came with the events may have a text twice.
        distinct = pa.array(kept.texts, pa.string()).dictionary_encode()
        texts, codes = distinct.dictionary, np.asarray(distinct.indices)[kept.which]
    if rows is None:
        bound = len(codes)
    else:
        if encoder.codecs[at].domain.hashable:
            codes, rows = _once(codes.astype(np.int64), rows)
        bound = int(np.count_nonzero(np.diff(rows))) + 1
    array = pa.array(codes, pa.int64())
    return AttributeValues(array if texts is None else texts.take(array), rows, bound)


def _once(codes: Int64s, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Without values that an event has twice."""
    if (rows[1:] != rows[:-1]).all():
        return codes, rows
    order = np.lexsort((codes, rows))
    codes, rows = codes[order], rows[order]
    fresh = np.append(True, (codes[1:] != codes[:-1]) | (rows[1:] != rows[:-1]))
    return codes[fresh], rows[fresh]


# -- as columns ------------------------------------------------------------------------------------


def event_table(encoder: Encoder, events: ValidEvents, names: Sequence[str]) -> pa.Table:
    """Events as a table with one type for each attribute, whatever types they came with.

    An opaque attribute, or a list of structs, stays as it came. It has no column if no event binds
    it.
    """
    size, several = events.table.num_rows, multiple(encoder.schema)
    columns: dict[str, Any] = {}
    for name in names:
        codec = encoder.codecs[encoder.positions[name]]
        values = attribute_values(encoder, events, name)
        if not codec.domain.hashable:
            if values is not None:
                columns[name] = events.table[name]
            continue
        none = pa.array([], pa.string() if isinstance(codec, TextCodec) else pa.int64())
        rows = np.zeros(0, np.int64) if values is None else values.rows
        array = _plain(codec, none if values is None else values.array)
        columns[name] = _lists(array, rows, size) if name in several else _each(array, rows, size)
    return pa.table(columns)


def _plain(codec: Codec, array: pa.Array) -> pa.Array:
    """Codes as values."""
    if isinstance(codec, TimestampCodec):
        return array.cast(pa.timestamp("us", "UTC"))
    if isinstance(codec, DecimalCodec):
        return pa.array(_doubles(np.asarray(array)))
    if isinstance(codec, BooleanCodec):
        return array.cast(pa.bool_())
    if isinstance(codec, NameCodec):
        return pa.array(list(codec.codes), pa.string()).take(array)
    return array


def _doubles(codes: Int64s) -> NDArray[np.float64]:
    """The inverse of `decimal_code`."""
    bits = np.where(codes < 0, -codes | ~np.int64(INT_HIGH), codes)
    return bits.astype(np.int64).view(np.float64)


def _each(array: pa.Array, rows: Int64s | None, size: int) -> pa.Array:
    """A value for each event, or null."""
    if rows is None:
        return array
    if not len(rows):
        return pa.nulls(size, array.type)
    column: pa.Array = placed(array, rows, size)
    return column


def _lists(array: pa.Array, rows: Int64s | None, size: int) -> pa.Array:
    """A list for each event, or null."""
    counts = np.ones(size, np.int64) if rows is None else np.bincount(rows, minlength=size)
    return list_column(array, counts, counts == 0)


# -- one value -------------------------------------------------------------------------------------


def value(codec: Codec, code: int | str) -> int | float | str | bool:
    """The value of a code, as JSON has it; a text is itself."""
    if isinstance(code, str):
        return code
    if isinstance(codec, TimestampCodec):
        return (_EPOCH + timedelta(microseconds=code)).isoformat()
    if isinstance(codec, DecimalCodec):
        return float(_doubles(np.array([code], np.int64))[0])
    if isinstance(codec, BooleanCodec):
        return bool(code)
    if isinstance(codec, NameCodec):
        return list(codec.codes)[code]
    return code


def in_order(codec: Codec) -> bool:
    """Whether the least and the greatest value mean anything."""
    return codec.domain.hashable and not isinstance(codec, NameCodec | BooleanCodec)
