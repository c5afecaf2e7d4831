"""Nested columns of a table as columns of attributes, whose names have dots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from tamis.encode.encoder import Encoder
from tamis.encode.tables.view_columns import is_list
from tamis.model.schema import REFUSE


def flat_table(table: pa.Table, encoder: Encoder) -> pa.Table:
    """Flatten structs to dotted columns, except structs that are attributes.

    The columns of a list of structs are lists of the values of all elements, for attributes that
    may have several. In an open schema a struct may be an attribute and hold others.
    """
    schema, done = encoder.schema, set[str]()
    while True:
        names = [
            field.name
            for field in table.schema
            if (types.is_struct(field.type) or (schema.unknown != REFUSE and is_list(field.type)))
            and field.name not in done
            and (schema.is_open or field.name not in encoder.positions)
            and (field.name in schema.stems or schema.unknown == REFUSE)
        ]
        if not names:
            return _without_empty_copies(table)
        keep, made = [], []
        for field, column in zip(table.schema, table.columns, strict=True):
            if field.name in names:
                for name, inner in _fields(field.name, column):
                    if types.is_struct(field.type) or _takes_lists(name, encoder):
                        keep.append(name)
                        made.append(inner)
            if field.name not in names or field.name in encoder.positions:
                keep.append(field.name)
                made.append(column)
        done.update(names)
        table = pa.Table.from_arrays(made, names=keep)


def _without_empty_copies(table: pa.Table) -> pa.Table:
    """The table without columns of nulls whose names others have: a name has many spellings."""
    names = table.column_names
    if len(set(names)) == len(names):
        return table
    kept = [
        at
        for at, name in enumerate(names)
        if names.count(name) == 1 or table.column(at).null_count < table.num_rows
    ]
    return table.select(kept)


def _takes_lists(name: str, encoder: Encoder) -> bool:
    """Whether a column may be lists: of an attribute with several values, or of structs."""
    schema = encoder.schema
    views = [schema.view(())] if schema.is_open else schema.event_types.values()
    return name not in encoder.positions or any(
        name in view and view[name].multiple for view in views
    )


def _fields(name: str, column: pa.ChunkedArray) -> Iterator[tuple[str, Any]]:
    if types.is_struct(column.type):
        inner = pa.table({name: column}).flatten()
        yield from zip(inner.column_names, inner.columns, strict=True)
        return
    lists = column.combine_chunks()
    assert isinstance(lists, pa.ListArray | pa.LargeListArray)
    lengths = np.asarray(lists.value_lengths().fill_null(0)).astype(np.int64)
    items: Any = lists.flatten()
    while is_list(items.type):  # the items of all lists within
        ends = np.concatenate([[0], np.cumsum(lengths)])
        within = np.asarray(items.value_lengths().fill_null(0)).astype(np.int64)
        lengths = np.diff(np.concatenate([[0], np.cumsum(within)])[ends])
        items = items.flatten()
    if not types.is_struct(items.type):
        return
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]))
    for position, inner in enumerate(items.flatten()):
        field = items.type.field(position).name
        yield f"{name}.{field}", pa.LargeListArray.from_arrays(offsets, inner)
