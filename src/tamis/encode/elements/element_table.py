"""The elements of a column of lists of structs, as a table of their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.files.arrays import Int64s
from tamis.model.elements.structs import ELEMENT
from tamis.model.schema import EVENT_TYPE, IGNORE


class ElementTable(NamedTuple):
    """All elements, the row of each in the column, and the rows with other values."""

    table: pa.Table
    rows: Int64s
    bad: Int64s


def element_table(
    array: pa.Array, ignored: dict[str, int], name: str, unknown: str
) -> ElementTable:
    """The elements of an attribute with this name; counts values in `ignored`.

    A single struct is a list of one, and a null in a list is nothing.
    """
    rows = np.arange(len(array), dtype=np.int64)
    if isinstance(array, pa.ListArray | pa.LargeListArray) and not isinstance(array, pa.MapArray):
        rows = np.repeat(rows, np.asarray(array.value_lengths().fill_null(0)).astype(np.int64))
        array = array.flatten()
    bound = np.asarray(array.is_valid())
    bad = rows[:0]
    if not isinstance(array, pa.StructArray):
        bad, bound = rows[bound], np.zeros(len(bound), np.bool_)
        array = pa.array([None] * len(rows), pa.struct([]))
    if not bound.all():
        rows, array = rows[bound], array.filter(pa.array(bound))
    names, columns = [EVENT_TYPE], [pa.repeat(ELEMENT, len(rows))]  # which keeps their number
    assert isinstance(array, pa.StructArray)
    for at, column in enumerate(array.flatten()):
        inner = array.type.field(at).name
        if inner != EVENT_TYPE:
            names.append(inner)
            columns.append(column)
        elif unknown == IGNORE:  # an element has no event types
            ignored[f"{name}.{inner}"] = len(rows) - column.null_count
        else:
            bad = np.concatenate([bad, rows[np.asarray(column.is_valid())]])
    return ElementTable(pa.Table.from_arrays(columns, names=names), rows, bad)
