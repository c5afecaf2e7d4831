"""DataFrames as Arrow tables: a missing value is a null, and an unnamed index is left out.

Neither pandas nor polars is imported: a DataFrame of theirs brings its own way to Arrow. pandas
has several missing values (NaN, NaT, NA, None) and no way to say which one a null was.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tamis.errors import EventError
from tamis.model.frame_values import UNNAMED_INDEX

ABSENT, REFUSE = "absent", "refuse"
MISSING = (ABSENT, REFUSE)
_PANDAS, _POLARS = "pandas", "polars"


def is_frame(given: object) -> bool:
    """Whether it is a DataFrame of pandas or polars."""
    return _library(given) in (_PANDAS, _POLARS) and hasattr(given, "__arrow_c_stream__")


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
                at, table.field(at).with_nullable(True), pa.chunked_array(cleared, column.type)
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
        return pa.StructArray.from_arrays(cleared, fields=list(kind), mask=array.is_null())
    if (types.is_list(kind) or types.is_large_list(kind)) and types.is_floating(kind.value_type):
        flat = array.flatten()
        if _cleared(flat) is not flat:  # rare
            lists = array.to_pylist()
            return pa.array([_finite(each) for each in lists], kind)
    return array


def _finite(values: list[Any] | None) -> list[Any] | None:
    return None if values is None else [each for each in values if each == each]


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


def frame_rows(frame: Any) -> list[dict[str, Any]] | None:
    """The rows of a DataFrame of pandas, whose columns may mix types; None for anything else."""
    if _library(frame) != _PANDAS or not hasattr(frame, "to_dict"):
        return None
    rows: list[dict[str, Any]] = frame.to_dict("records")
    return rows
