"""Which columns of parquet files are which attributes, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.errors import SparkError, nearest
from tamis.model.schema import Schema
from tamis.replay.event_source import RowLayout
from tamis.replay.parquet_events import ParquetFiles
from tamis.spark.frames.frame_columns import attribute_sources

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def layouts(
    events: ParquetFiles,
    schema: Schema,
    kept: Sequence[str] | None = (),
    attributes: set[str] | None = None,
    beside: Sequence[str] = (),
) -> tuple[RowLayout, ...]:
    """Where the files have what a job needs; refuses files that lack it.

    `kept` are the columns to hand on, None for all that a file has. Of the attributes, those named
    are read, or all. Columns `beside` are read, but not handed on.
    """
    _check_folders(events, schema)
    found = []
    for number, columns in enumerate(events.schemas):
        file = events.files[events.schema_of.index(number)]
        for name in kept or ():
            if name not in columns.names:
                raise no_column(file, name, columns.names)
        found.append(_layout(file, schema, columns, kept, attributes, beside))
    return tuple(found)


def _check_folders(events: ParquetFiles, schema: Schema) -> None:
    """Refuse values that only names of folders hold (`day=3/`): events would lack them."""
    for file, number in zip(events.files, events.schema_of, strict=True):
        for folder in Path(file).parts[:-1]:
            name, is_, _ = folder.partition("=")
            if is_ and name in schema.attributes and name not in events.schemas[number].names:
                raise SparkError(
                    f"{file}: {name!r} is an attribute, and only the folder {folder!r} has its "
                    "value, which is not read; write it as a column too, or match the DataFrame of "
                    "spark.read.parquet with tamis.spark.match"
                )


def no_column(file: str, name: str, names: Sequence[str]) -> SparkError:
    """The refusal of a column that a file lacks."""
    hint = nearest(name, names) or f"these are {', '.join(names[:12])}"
    return SparkError(f"{file}: there is no column {name!r}; {hint}")


def _layout(
    file: str,
    schema: Schema,
    columns: pa.Schema,
    kept: Sequence[str] | None,
    attributes: set[str] | None,
    beside: Sequence[str],
) -> RowLayout:
    from pyspark.sql.types import StructType

    struct = StructType()
    for field in columns:
        struct.add(
            field.name,
            _spark_type(field.type if _holds_attributes(field.name, schema) else pa.null()),
        )
    try:
        found = attribute_sources(schema, struct, [*(kept or ()), *beside])
    except SparkError as why:
        raise SparkError(f"{file}: {why}") from None
    named = [(".".join(path), path) for path in found]
    # A table without columns has no rows either.
    chosen = [each for each in named if attributes is None or each[0] in attributes] or named[:1]
    handed_on = columns.names if kept is None else kept
    read = dict.fromkeys([*(name for name, _ in chosen), *handed_on, *beside])
    return RowLayout(tuple(chosen), columns=tuple(read))


def _holds_attributes(name: str, schema: Schema) -> bool:
    """Whether a column is an attribute, or a struct that holds some."""
    return name in schema.attributes or any(
        each.startswith(f"{name}.") for each in schema.attributes
    )


def _spark_type(kind: pa.DataType) -> DataType:
    """Spark's type of a column, whatever layout Arrow has for its values.

    NullType for a type that Spark lacks: its values are validated one by one later.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import ArrayType, LongType, NullType, StringType, StructField, StructType

    if isinstance(kind, pa.DictionaryType):
        return _spark_type(kind.value_type)
    if isinstance(kind, pa.StructType):  # Spark may lack the types of some fields
        return StructType([StructField(each.name, _spark_type(each.type)) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return ArrayType(_spark_type(kind.value_type))
    if pa.types.is_unsigned_integer(kind):
        return LongType()
    if pa.types.is_string_view(kind):
        return StringType()
    try:
        return from_arrow_type(kind)
    except PySparkException:
        return NullType()
