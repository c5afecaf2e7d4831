"""Changes of subscriptions as tables: subscribe, update, renew, cancel, expire.

| column | type | |
| --- | --- | --- |
| kind | string | one of the five |
| id | string or int64 | the same type throughout a log; int64: null in a subscribe is its number |
| condition | string | of a subscribe or update; null otherwise |
| until | timestamp, UTC | when the lease of a subscribe, update or renew ends; null: never |
| owner, name | string | who subscribes, and what the owner calls it |
| language | string | of the condition; null: that of tamis |
| request_key | string | by which a repeated request is known |
| sink | string | where notifications go |
| nonce | binary | from which the ticket of the subscription is made |
| key_generation | int64 | which key of the server made the ticket |
| metadata | string | a JSON object that belongs to the owner |

Only the first two must be there. An update is a subscribe of an id that is live already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tamis.encode.arrow_checks import checked_table
from tamis.errors import StoreError, suggestion
from tamis.model.domain import TEXT_LIMIT

SUBSCRIBE, UPDATE, RENEW = "subscribe", "update", "renew"
CANCEL, EXPIRE = "cancel", "expire"
KINDS = (SUBSCRIBE, UPDATE, RENEW, CANCEL, EXPIRE)
COLUMNS = ("kind", "id", "condition", "until")
DETAILS = {
    "owner": pa.string(),
    "name": pa.string(),
    "language": pa.string(),
    "request_key": pa.string(),
    "sink": pa.string(),
    "nonce": pa.binary(),
    "key_generation": pa.int64(),
    "metadata": pa.string(),
}
ALL = (*COLUMNS, *DETAILS)
ID_TYPES = {"text": pa.string(), "int64": pa.int64()}
UNTIL = pa.timestamp("us", "UTC")
Until = datetime | Sequence[datetime | None] | pa.Array | pa.ChunkedArray | None
"""One end of the lease for all, one for each, or None for no lease."""


def change_schema(ids: str, names: Sequence[str] = COLUMNS) -> pa.Schema:
    """Return columns of changes in a log whose ids are "text" or "int64".

    >>> change_schema("text").names
    ['kind', 'id', 'condition', 'until']
    """
    kinds = dict(zip(COLUMNS, (pa.string(), ID_TYPES[ids], pa.string(), UNTIL), strict=True))
    kinds |= DETAILS
    return pa.schema([(name, kinds[name]) for name in names])


def subscribe(ids: Iterable[Any], conditions: Iterable[str], until: Until = None) -> pa.Table:
    """Build changes that add subscriptions, or replace live ones with the same id.

    >>> subscribe(["ann"], ["price < 5"]).to_pylist()
    [{'kind': 'subscribe', 'id': 'ann', 'condition': 'price < 5', 'until': None}]
    """
    return changes_table(SUBSCRIBE, ids, conditions, until)


def renew(ids: Iterable[Any], until: Until) -> pa.Table:
    """Build changes that set a new end for the leases of live subscriptions; None: no end."""
    return changes_table(RENEW, ids, None, until)


def cancel(ids: Iterable[Any]) -> pa.Table:
    """Build changes that end subscriptions on request."""
    return changes_table(CANCEL, ids)


def expire(ids: Iterable[Any]) -> pa.Table:
    """Build changes that end subscriptions whose lease has ended (see `Log.expire`)."""
    return changes_table(EXPIRE, ids)


def changes_table(
    kind: str | Iterable[str],
    ids: Iterable[Any],
    conditions: Iterable[str | None] | None = None,
    until: Until = None,
) -> pa.Table:
    """Build changes of one kind, or of a kind each. Ids are all text or all 64-bit integers."""
    id = _column(ids, None)
    if types.is_null(id.type):
        id = id.cast(pa.string())
    count = len(id)
    kinds = pa.repeat(kind, count) if isinstance(kind, str) else _column(kind, pa.string())
    condition = pa.nulls(count, pa.string()) if conditions is None else _column(conditions, None)
    if until is None or isinstance(until, datetime):
        until = pa.repeat(pa.scalar(until, UNTIL), count)
    columns = (kinds, id, condition, _column(until, None))
    if any(len(column) != count for column in columns):
        lengths = ", ".join(
            f"{len(each)} × {name}" for each, name in zip(columns, COLUMNS, strict=True)
        )
        raise StoreError(f"the columns of changes need the same length: {lengths}")
    return validate(pa.table(list(columns), names=list(COLUMNS)))


def validate(given: Any, ids: str | None = None) -> pa.Table:
    """Return changes with all columns in order and of the right types; an error names a bad row.

    `ids` is the type of the log's ids, "text" or "int64"; without it, both are allowed.
    """
    table = arrow_table(given, "changes")
    for name in table.column_names:
        if name not in ALL:
            raise StoreError(f"unknown column of changes {name!r}{suggestion(name, ALL)}")
    for name in ("kind", "id"):
        if name not in table.column_names:
            raise StoreError(f"the changes lack the column {name!r}; a change has a kind and an id")
    if ids is None:
        ids = "int64" if types.is_integer(table.schema.field("id").type) else "text"
    details = [name for name in DETAILS if name in table.column_names]
    wanted = change_schema(ids, (*COLUMNS, *details))
    table = pa.table([_cast(table, field, ids) for field in wanted], schema=wanted)
    _check_rows(table)
    return table


def numbered(table: pa.Table, first: int) -> pa.Table:
    """Return changes that begin at a sequence number, with ids for those that have none."""
    if not table["id"].null_count:
        return table
    numbers = pa.array(np.arange(first, first + table.num_rows, dtype=np.int64))
    return table.set_column(1, "id", pc.coalesce(table["id"], numbers))


def without_nulls(table: pa.Table) -> pa.Table:
    """Return changes without the details that no row has."""
    kept = [
        name
        for name in table.column_names
        if name not in DETAILS or table[name].null_count < table.num_rows
    ]
    return table.select(kept)


def completed(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Return changes of a log with the wanted columns; those that a segment lacks are null."""
    columns = [
        table[field.name]
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in wanted
    ]
    try:
        return pa.table(columns, schema=wanted)
    except (pa.ArrowException, ValueError, TypeError) as why:
        raise StoreError(f"the changes in the log have other columns than expected: {why}") from why


def arrow_table(given: Any, what: str) -> pa.Table:
    """Return `given` as a valid Arrow table whose columns have different names."""
    table = checked_table(given, f"an Arrow table of {what}", StoreError)
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise StoreError(f"the {what} have two columns named {name!r}")
    return table


def _column(given: Any, kind: pa.DataType | None) -> pa.Array | pa.ChunkedArray:
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        return given
    try:
        return pa.array(given if isinstance(given, (list, np.ndarray)) else list(given), kind)
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as why:
        raise StoreError(f"these values cannot be a column of changes: {why}") from None


def _cast(table: pa.Table, field: pa.Field, ids: str) -> pa.Array | pa.ChunkedArray:
    if field.name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    column = table.column(field.name)
    kind = column.type.value_type if isinstance(column.type, pa.DictionaryType) else column.type
    if field.name == "until":
        fits = types.is_timestamp(kind)
    elif types.is_int64(field.type):
        fits = types.is_integer(kind)
    elif types.is_binary(field.type):
        fits = types.is_binary(kind)
    else:
        fits = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if not (fits or types.is_null(kind) or not table.num_rows):
        log = f", because the ids of the log are {ids}" if field.name == "id" else ""
        raise StoreError(f"the column {field.name!r} is {kind}, expected {field.type}{log}")
    try:
        return column.cast(field.type)
    except pa.ArrowException as why:
        raise StoreError(f"the column {field.name!r} does not fit {field.type}: {why}") from None


def _check_rows(table: pa.Table) -> None:
    kind, id, condition, until = (table[name] for name in COLUMNS)
    known = pc.is_in(kind, value_set=pa.array(KINDS))
    for row in _first(pc.invert(known)):
        written = kind[row].as_py()
        raise StoreError(f"change {row}: the kind is {written!r}; expected {', '.join(KINDS)}")
    adds = pc.is_in(kind, value_set=pa.array((SUBSCRIBE, UPDATE)))
    # A subscribe without an id gets its sequence number, where ids are numbers.
    unnamed = pc.and_(pc.equal(kind, SUBSCRIBE), types.is_integer(id.type))
    for row in _first(pc.and_not(pc.is_null(id), unnamed)):
        raise StoreError(f"change {row}: the id is null")
    if types.is_string(id.type):
        size = pc.binary_length(id)
        for row in _first(pc.equal(size, 0)):
            raise StoreError(f"change {row}: the id is an empty text")
        for row in _first(pc.greater(size, TEXT_LIMIT)):
            raise StoreError(f"change {row}: the id is longer than {TEXT_LIMIT} bytes")
    for row in _first(pc.and_(adds, pc.is_null(condition))):
        raise StoreError(
            f"change {row}: the {kind[row].as_py()} of {id[row].as_py()!r} has no condition"
        )
    for row in _first(pc.and_not(pc.is_valid(condition), adds)):
        raise StoreError(
            f"change {row}: a {kind[row].as_py()} has a condition; only a subscribe or update has "
            "one"
        )
    leases = pc.or_(adds, pc.equal(kind, RENEW))
    for row in _first(pc.and_not(pc.is_valid(until), leases)):
        raise StoreError(
            f"change {row}: a {kind[row].as_py()} has a lease; only a subscribe, update or renew "
            "has one"
        )


def _first(wrong: Any) -> list[int]:
    """Return the first row that is wrong, if there is one."""
    at = pc.index(wrong, pa.scalar(True)).as_py()
    return [] if at < 0 else [at]
