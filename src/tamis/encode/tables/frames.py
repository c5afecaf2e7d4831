"""DataFrames as Arrow tables: a missing value is a null, and an unnamed index is left out.

Neither pandas nor polars is imported: a DataFrame of theirs brings its own way to Arrow. pandas
has several missing values (NaN, NaT, NA, None) and no way to say which one a null was.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tamis.encode.tables.view_columns import is_list, list_of_items
from tamis.errors import EventError
from tamis.model.frame_values import UNNAMED_INDEX, without_nulls

ABSENT, REFUSE = "absent", "refuse"
MISSING = (ABSENT, REFUSE)
_PANDAS, _POLARS = "pandas", "polars"


def is_frame(given: object) -> bool:
    """Whether it is a DataFrame of pandas or polars."""
    return _library(given) in (_PANDAS, _POLARS) and type(given).__name__ == "DataFrame"


def _library(given: object) -> str:
    return type(given).__module__.partition(".")[0]


def check_missing(missing: str | None) -> None:
    """Refuse a word that does not say what a missing value means."""
    if missing is not None and missing not in MISSING:
        raise EventError(f"missing is one of {', '.join(map(repr, MISSING))}, got {missing!r}")


def without_index(table: pa.Table) -> pa.Table:
    """A table of pandas without the columns of an unnamed index."""
    return table.select([name for name in table.column_names if not UNNAMED_INDEX.fullmatch(name)])


def nan_as_null(table: pa.Table) -> pa.Table:
    """A table with nulls in the place of NaN; columns without NaN are not copied."""
    for at, column in enumerate(table.columns):
        cleared = [_cleared(chunk) for chunk in column.chunks]
        if any(new is not old for new, old in zip(cleared, column.chunks, strict=True)):
            table = table.set_column(
                at, table.schema.names[at], pa.chunked_array(cleared, cleared[0].type)
            )
    return table


def _cleared(array: Any) -> Any:
    kind = array.type
    if types.is_floating(kind):
        wide = array.cast(pa.float32()) if types.is_float16(kind) else array
        nan = pc.is_nan(wide).fill_null(False)
        return pc.if_else(nan, pa.scalar(None, kind), array) if pc.any(nan).as_py() else array
    if types.is_struct(kind):
        inner = array.flatten()
        cleared = [_cleared(each) for each in inner]
        if all(new is old for new, old in zip(cleared, inner, strict=True)):
            return array
        fields = [kind.field(at).with_type(each.type) for at, each in enumerate(cleared)]
        return pa.StructArray.from_arrays(cleared, fields=fields, mask=array.is_null())
    if types.is_fixed_size_list(kind):
        return _cleared(array.cast(pa.list_(kind.value_type))) if _may_be_nan(kind) else array
    if is_list(kind) and _may_be_nan(kind):
        items = array.flatten()
        cleared = _cleared(items)
        return array if cleared is items else list_of_items(array, cleared)
    return array


def _may_be_nan(kind: pa.DataType) -> bool:
    """Whether a type has floating numbers, itself or within."""
    if not types.is_nested(kind):
        return bool(types.is_floating(kind))
    return any(_may_be_nan(kind.field(at).type) for at in range(kind.num_fields))


def missing_cells(frame: Any) -> dict[int, str]:
    """The rows of a DataFrame with NaN, NaT or NA, each with a reason. None is an ordinary null."""
    if _library(frame) != _PANDAS:
        return {}  # NaN is a value in polars; it is refused as such
    found: dict[int, str] = {}
    for name in frame.columns:
        column = frame[name]
        for row in column.isna().to_numpy().nonzero()[0].tolist():
            value = column.iloc[row]
            if value is not None:
                found.setdefault(row, f"{name!r}: {value} is a missing value; {_ADVICE}")
    return found


_ADVICE = "leave the attribute out, or pass missing='absent'"


def has_objects(frame: Any) -> bool:
    """Whether a DataFrame of polars has Python objects, which Arrow would see as bytes."""
    frames = is_frame(frame) and _library(frame) == _POLARS
    return frames and any(str(each) == "Object" for each in frame.dtypes)


def frame_rows(frame: Any) -> list[dict[str, Any]] | None:
    """The rows of a DataFrame whose columns Arrow does not have; None for anything else.

    Columns of pandas may mix types, and polars has integers of 128 bits.
    """
    if not is_frame(frame) or len(set(frame.columns)) < len(frame.columns):
        return None
    if _library(frame) == _POLARS:
        return [without_nulls(row) for row in frame.to_dicts()]
    rows = frame.to_dict("records")
    return [without_nulls({name: _listed(each) for name, each in row.items()}) for row in rows]


def _listed(value: Any) -> Any:
    """A value, or the list that an array of NumPy holds."""
    return value.tolist() if getattr(value, "ndim", 0) else value
