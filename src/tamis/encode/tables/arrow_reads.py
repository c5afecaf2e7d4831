"""The values of an Arrow table as operators read them: some rows of one column at a time.

To read a row as an event takes a tenth of a millisecond, since Arrow slices every column. Operators
read one or two attributes, of many events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from tamis.encode.batch import Column
from tamis.model.domain import Boolean, Decimal, Integer, Opaque, Text, Timestamp
from tamis.model.event import Event, distinct_values
from tamis.model.named_domains import Enumerated, Hierarchy
from tamis.model.schema import EVENT_TYPE, Schema

_Values = tuple[Any, ...]
# Of these, the value of an event is that of its cell.
_KINDS = (Boolean, Decimal, Enumerated, Hierarchy, Integer, Opaque, Text, Timestamp)


class TableReads:
    """Reads a table that was validated; `columns` are its codes, by position."""

    def __init__(self, table: pa.Table, schema: Schema, columns: Mapping[int, Column]) -> None:
        self._table, self._schema, self._columns = table, schema, columns
        self._at = {name: at for at, name in enumerate(schema.attributes)}

    def event(self, row: int) -> Mapping[str, _Values]:
        """The values of one row, by attribute."""
        (values,) = self._table.slice(row, 1).to_pylist()
        # A table has a place for every attribute: null is absent.
        bound = {name: value for name, value in values.items() if value is not None}
        return Event.of(self._schema, bound).values

    def column(self, name: str, rows: list[int]) -> list[_Values]:
        """The values of one attribute in some rows."""
        codes = self._columns.get(self._at.get(name, -1))
        if codes is None:  # or the schema of the events does not have it yet
            return [()] * len(rows)
        domain = self._schema.attributes[name]
        if name == EVENT_TYPE or name not in self._table.column_names:
            return self._one_by_one(name, rows)
        column = self._table.column(name)
        listed = types.is_nested(column.type) and not types.is_struct(column.type)
        if type(domain) not in _KINDS or (isinstance(domain, Opaque) and listed):
            return self._one_by_one(name, rows)
        bound = [True] * len(rows)
        if codes.rows is not None:  # ascending
            at = np.searchsorted(codes.rows, rows)
            bound = (codes.rows.take(at, mode="clip") == rows).tolist()
        try:
            raw = column.take(pa.array(rows, pa.int64())).to_pylist()
        except (pa.ArrowException, ValueError):  # not every type can be gathered
            return self._one_by_one(name, rows)
        if listed:
            return [
                distinct_values(domain, each) if has else ()
                for each, has in zip(raw, bound, strict=True)
            ]
        value = domain.value
        return [(value(each),) if has else () for each, has in zip(raw, bound, strict=True)]

    def _one_by_one(self, name: str, rows: list[int]) -> list[_Values]:
        return [self.event(row).get(name, ()) for row in rows]
