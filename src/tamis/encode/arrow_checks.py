"""Arrow data from outside is checked before any kernel reads it.

Offsets that lead out of a buffer crash whoever follows them. So do some types, with every value in
order: Arrow itself crashes on encodings within encodings, such as a dictionary of nulls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from tamis.encode.tables.frames import ABSENT, is_frame, nan_as_null, without_index
from tamis.encode.tables.view_columns import without_views
from tamis.errors import TamisError
from tamis.files.arrays import Int64s

_NESTING = 32
_UNKNOWN = (21, 22)  # ids of intervals in months and in days, which Python does not know
_LONG = 4096  # rows from which on texts are looked at here
_ROWS = 1 << 20  # rows that a table may have in almost no bytes, for example as one long run


def checked_table(
    given: Any, expected: str, error: type[TamisError], missing: str | None = None
) -> pa.Table:
    """Any Arrow data as a table, checked; raises `error` for anything else.

    If missing values are absent, NaN becomes null. By default they are in DataFrames only.
    """
    table = without_views(_arrow_table(given, expected, error))
    if is_frame(given):
        table = without_index(table)
        missing = missing or ABSENT
    return nan_as_null(table) if missing == ABSENT else table


def _arrow_table(given: Any, expected: str, error: type[TamisError]) -> pa.Table:
    if isinstance(given, pa.RecordBatch):
        check_table(given, error)  # first: a damaged map would end the process here
        return pa.Table.from_batches([given])
    try:
        table = given if isinstance(given, pa.Table) else pa.table(given)
    except (TypeError, ValueError, ArithmeticError, pa.ArrowException) as why:
        raise error(f"expected {expected}: {why}") from None
    check_table(table, error)
    return table


def check_table(table: pa.Table | pa.RecordBatch, error: type[TamisError]) -> None:
    """Raise `error` if a table is damaged, or has a column of a type that cannot be read."""
    try:
        for name, kind in zip(table.schema.names, table.schema.types, strict=True):
            if not is_readable(kind):
                raise error(f"the column {name!r} is {kind}, a type that is not read")
        _validate(table)
    except (pa.ArrowException, UnicodeDecodeError) as damage:  # names need not be UTF-8 either
        raise error(f"the table is damaged: {damage}") from None
    if table.num_rows > _ROWS and table.num_rows > 8 * table.get_total_buffer_size():
        raise error(
            f"the table has {table.num_rows:,} rows in {table.get_total_buffer_size():,} bytes; "
            f"split it into tables of {_ROWS:,} rows"
        )


def _validate(table: pa.Table | pa.RecordBatch) -> None:
    """`table.validate(full=True)`, which takes ten times as long for long columns of ASCII."""
    if table.num_rows < _LONG:
        table.validate(full=True)
        return
    table.validate()
    for column in table.columns:
        for array in column.chunks if isinstance(column, pa.ChunkedArray) else (column,):
            if not _is_ascii(array):
                array.validate(full=True)


def _is_ascii(array: pa.Array) -> bool:
    """Whether an array has texts of ASCII only, no nulls, and offsets that lead nowhere else.

    Buffers are as long as the array needs: `validate` has looked at that.
    """
    width = 4 if types.is_string(array.type) else 8 if types.is_large_string(array.type) else 0
    if not width or not len(array):
        return False
    valid, offsets, content = array.buffers()
    if valid is not None or offsets is None or content is None:
        return False
    begin, integer = array.offset * width, np.dtype(f"i{width}")
    starts: Int64s = np.frombuffer(memoryview(offsets), integer, len(array) + 1, begin)
    first, last = int(starts[0]), int(starts[-1])
    if not 0 <= first < last <= content.size or (starts[1:] < starts[:-1]).any():
        return False
    return bool(np.frombuffer(memoryview(content), np.int8, last - first, first).min() >= 0)


def is_readable(kind: Any, depth: int = 0) -> bool:
    """Whether values of a type can be read: an encoding holds plain values only."""
    if depth > _NESTING:
        return False
    if isinstance(kind, pa.BaseExtensionType):
        storage = kind.storage_type
        return not isinstance(storage, pa.BaseExtensionType) and is_readable(storage, depth + 1)
    if types.is_map(kind) and types.is_null(kind.key_type):
        return False
    if types.is_union(kind) or kind.id in _UNKNOWN:
        return False  # within a struct, a union ends the process
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        value = kind.value_type
        return not (
            types.is_null(value) or isinstance(value, pa.BaseExtensionType) or any(_inner(value))
        )
    return all(is_readable(each, depth + 1) for each in _inner(kind))


def _inner(kind: Any) -> Iterator[pa.DataType]:
    """The types within a type."""
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        yield kind.value_type
    elif types.is_nested(kind):
        for at in range(kind.num_fields):
            _ = kind.field(at).name  # raises if it is not text
            yield kind.field(at).type
