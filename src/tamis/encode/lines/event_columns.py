"""Columns of events: where an attribute is in a table, and which have several values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.encode.encoder import Encoder
from tamis.model.domain import Boolean, Decimal, Domain, Integer, Timestamp
from tamis.model.elements.structs import Structs
from tamis.model.schema import EVENT_TYPE, Schema

_Leaf = TypeVar("_Leaf")
_TYPES: dict[type[Domain], pa.DataType] = {
    Integer: pa.int64(),
    Decimal: pa.float64(),
    Boolean: pa.bool_(),
    Timestamp: pa.timestamp("us", "UTC"),
}


def arrow_types(schema: Schema) -> dict[str, Any]:
    """The type of each attribute's column: a list where events may have several values."""
    several = multiple(schema)
    kinds = {name: _arrow_type(each) for name, each in schema.attributes.items()}
    return {name: pa.list_(kind) if name in several else kind for name, kind in kinds.items()}


def _arrow_type(domain: Domain) -> pa.DataType:
    if not isinstance(domain, Structs):
        return _TYPES.get(type(domain), pa.string())
    kinds = arrow_types(domain.element)
    del kinds[EVENT_TYPE]
    if domain.element.is_open:  # may have `b` and `b.c`, which cannot be nested
        return pa.struct(list(kinds.items()))
    return pa.struct(list(nested(kinds, lambda below: pa.struct(list(below.items()))).items()))


def nested(
    flat: Mapping[str, _Leaf], join: Callable[[dict[str, _Leaf]], _Leaf]
) -> dict[str, _Leaf]:
    """Values by names with dots as those of the outermost names, joined from the inside out."""
    found: dict[str, Any] = {}
    for name, value in flat.items():
        outer, dot, inner = name.partition(".")
        if dot:
            found.setdefault(outer, {})[inner] = value
        else:
            found[outer] = value
    return {
        name: join(nested(below, join)) if isinstance(below, dict) else below
        for name, below in found.items()
    }


def with_spellings(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """The fields of objects, and the other spellings of those within them, with the type null.

    `{"a": {"b": 1}}` may also come as `{"a.b": 1}`. Arrow's reader would leave that key out where
    it ignores what it does not know. With the type null, it stops at the line.
    """
    found: list[pa.Field] = []
    for field in fields:
        found.append(field.with_type(_spelled(field.type)))
        found += [pa.field(f"{field.name}.{name}", pa.null()) for name in _within(field.type)]
    return found


def _spelled(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.ListType):
        return pa.list_(_spelled(kind.value_type))
    return pa.struct(with_spellings(kind)) if isinstance(kind, pa.StructType) else kind


def _within(kind: pa.DataType) -> Iterator[str]:
    """The names of the fields within a struct, and of those further within."""
    for field in kind if isinstance(kind, pa.StructType) else ():
        yield field.name
        yield from (f"{field.name}.{name}" for name in _within(field.type))


def without_spellings(table: pa.Table) -> pa.Table:
    """The columns of a table that was read with such fields, structs as columns of their own."""
    while True:
        kept = [at for at, field in enumerate(table.schema) if field.type != pa.null()]
        table = table.select(kept)
        if not any(pa.types.is_struct(field.type) for field in table.schema):
            return table
        table = table.flatten()


def column_at(table: pa.Table, path: Sequence[str]) -> Any:
    """A column, or a field of a struct; None where the table lacks it."""
    name = ".".join(path)
    if name in table.column_names:
        return table[name]
    if type_at(table.schema, path) is None:
        return None
    found = table[path[0]]
    for part in path[1:]:
        found = pc.struct_field(found, part)
    return found


def type_at(columns: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """The type of a column, or of a field of a struct; None where there is no such column."""
    if ".".join(path) in columns.names:
        return columns.field(".".join(path)).type
    if path[0] not in columns.names:
        return None
    found = columns.field(path[0]).type
    for part in path[1:]:
        if not isinstance(found, pa.StructType) or found.get_field_index(part) < 0:
            return None
        found = found.field(part).type
    return found


def list_rows(column: pa.Array) -> NDArray[np.int64]:
    """The row of each value of a column of lists."""
    return np.asarray(pc.list_parent_indices(column)).astype(np.int64)


def list_column(values: pa.Array, lengths: NDArray[Any], absent: NDArray[np.bool_]) -> pa.Array:
    """Values as lists of these lengths; null where a list is absent."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    mask = pa.array(absent) if absent.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask)


def placed(values: Any, rows: NDArray[np.int64], size: int) -> Any:
    """A column or a table of `size` rows: values in their rows, null in all others."""
    place, absent = np.zeros(size, np.int64), np.ones(size, np.bool_)
    place[rows], absent[rows] = np.arange(len(rows)), False
    return values.take(pa.array(place, mask=absent))


def multiple(schema: Schema) -> set[str]:
    """The attributes that may have several values in one event."""
    if schema.is_open:
        return set(schema.attributes)
    several = {
        name for uses in schema.event_types.values() for name, use in uses.items() if use.multiple
    }
    return several | {EVENT_TYPE} if len(schema.event_types) > 1 else several


@lru_cache(maxsize=16)
def schema_encoder(document: str) -> Encoder:
    """The encoder of a schema, given as JSON; it validates events, and holds no subscriptions.

    It is kept, because it is costly to make, and every task needs it.
    """
    return Encoder(Schema.from_dict(json.loads(document)))
