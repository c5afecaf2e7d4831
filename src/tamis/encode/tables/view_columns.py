"""Text in views, as polars has it, in the plain layout that all functions of Arrow take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types


def without_views(table: pa.Table) -> pa.Table:
    """A table with plain texts; columns without views are not copied."""
    for at, column in enumerate(table.columns):
        if has_views(column.type):
            plain = [plain_array(chunk) for chunk in column.chunks]
            made = pa.chunked_array(plain) if plain else pa.chunked_array([pa.nulls(0)])
            table = table.set_column(at, table.schema.names[at], made)
    return table


def has_views(kind: pa.DataType) -> bool:
    """Whether a type is a view, or has views in structs and lists."""
    if types.is_string_view(kind) or kind == pa.binary_view():
        return True
    if not (types.is_struct(kind) or is_list(kind) or types.is_fixed_size_list(kind)):
        return False
    return any(has_views(kind.field(at).type) for at in range(kind.num_fields))


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list with offsets."""
    return types.is_list(kind) or types.is_large_list(kind)


def plain_array(array: Any) -> Any:
    """An array without views."""
    kind = array.type
    if not has_views(kind):
        return array
    if types.is_struct(kind):
        inner = [plain_array(array.field(at)) for at in range(kind.num_fields)]
        fields = [kind.field(at).with_type(each.type) for at, each in enumerate(inner)]
        return pa.StructArray.from_arrays(inner, fields=fields, mask=array.is_null())
    if types.is_fixed_size_list(kind):
        return plain_array(array.cast(pa.list_(kind.value_type)))
    if is_list(kind):
        return list_of_items(array, plain_array(array.flatten()))
    wide = pa.large_string() if types.is_string_view(kind) else pa.large_binary()
    return null_views_cleared(array).cast(wide)


def list_of_items(lists: Any, items: Any) -> Any:
    """Lists as they are, with other items."""
    lengths = np.asarray(lists.value_lengths().fill_null(0)).astype(np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]))
    return pa.LargeListArray.from_arrays(offsets, items, mask=lists.is_null())


def null_views_cleared(array: pa.Array) -> pa.Array:
    """Texts whose nulls lead nowhere: a cast follows them, and nobody has checked them."""
    if not array.null_count:
        return array
    bound = np.asarray(array.is_valid())
    _, views, *texts = array.buffers()
    assert views is not None
    many = 2 * len(array)
    start = 16 * array.offset
    found = np.frombuffer(memoryview(views), np.int64, many, start).reshape(-1, 2).copy()
    found[~bound] = 0
    bits = pa.py_buffer(np.packbits(bound, bitorder="little"))
    return pa.Array.from_buffers(array.type, len(array), [bits, pa.py_buffer(found), *texts])
