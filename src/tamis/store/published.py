"""Events as publishers send them. The form of a table is checked before it enters a log.

| column | type | |
| --- | --- | --- |
| an attribute | any | its value or values |
| json | string | the whole event, if there are no attribute columns |
| $source, $id | string | who published the event, and under which name |
| $time | timestamp, UTC | when it happened, as the publisher says |
| $envelope | string | other context attributes, a JSON object |

The last four columns are reserved. They may stand next to attributes or next to `json`. Attributes
cannot have these names.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types

from tamis.errors import StoreError, suggestion
from tamis.store.changes import arrow_table

JSON = "json"
RESERVED = {
    "$source": pa.string(),
    "$id": pa.string(),
    "$time": pa.timestamp("us", "UTC"),
    "$envelope": pa.string(),
}


def validate(events: Any) -> pa.Table:
    """Return events as a table whose columns readers can read; an error names the bad column."""
    table = arrow_table(events, "events")
    names = table.column_names
    if not [name for name in names if name not in RESERVED]:
        raise StoreError("the events have no columns; expected one for each attribute")
    for field in table.schema:
        _check_kind(field, alone=len([name for name in names if name not in RESERVED]) == 1)
    return table


def without_reserved(table: pa.Table) -> pa.Table:
    """The columns that belong to the events themselves."""
    return table.select([name for name in table.column_names if name not in RESERVED])


def _check_kind(field: pa.Field, *, alone: bool) -> None:
    name, kind = field.name, field.type
    if name.startswith("$"):
        wanted = RESERVED.get(name)
        if wanted is None:
            raise StoreError(
                f"the column {name!r} is unknown{suggestion(name, RESERVED)}; names with '$' are "
                "reserved"
            )
        if kind != wanted:
            raise StoreError(f"the column {name!r} is {kind}, expected {wanted}")
    elif name == JSON and alone and not _is_text(kind):
        raise StoreError(f"the column 'json' is {kind}, expected texts, each a JSON object")


def _is_text(kind: pa.DataType) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
