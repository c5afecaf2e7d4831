"""Arrow data from outside is checked before any kernel reads it.

Offsets that lead out of a buffer crash whoever follows them. So do some types, with every value in
order: Arrow itself crashes on encodings within encodings, such as a dictionary of nulls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import types

from tamis.encode.tables.frames import ABSENT, is_frame, nan_as_null, without_index
from tamis.encode.tables.view_columns import without_views
from tamis.errors import TamisError

_NESTING = 32
_UNKNOWN = (21, 22)  # ids of intervals in months and in days, which Python does not know
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
        table.validate(full=True)
    except (pa.ArrowException, UnicodeDecodeError) as damage:  # names need not be UTF-8 either
        raise error(f"the table is damaged: {damage}") from None
    if table.num_rows > _ROWS and table.num_rows > 8 * table.get_total_buffer_size():
        raise error(
            f"the table has {table.num_rows:,} rows in {table.get_total_buffer_size():,} bytes; "
            f"split it into tables of {_ROWS:,} rows"
        )


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
