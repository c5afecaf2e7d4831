"""Which columns of parquet files are which attributes, and which others are read besides."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.errors import SparkError, nearest
from tamis.model.schema import Schema
from tamis.replay.event_source import FileEvents, Layout
from tamis.replay.row_groups import Found, Rows
from tamis.spark.frames.frame_columns import Source, sources

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def dealt(
    events: Found, layouts: tuple[Layout, ...], shares: Sequence[tuple[Rows, ...]]
) -> FileEvents:
    """The files as tasks read them, in shares."""
    return FileEvents(tuple(events.files), layouts, tuple(events.schema_of), tuple(shares))


def every_group(events: Found, schema: Schema) -> FileEvents:
    """The attributes of all rows, a share for each row group: to look at some of them."""
    return dealt(events, layouts(events, schema), [(rows,) for rows in events.groups])


def layouts(
    events: Found,
    schema: Schema,
    kept: Sequence[str] | None = (),
    attributes: set[str] | None = None,
    beside: Sequence[str] = (),
) -> tuple[Layout, ...]:
    """Where the files have what is needed; refuses what could not be matched or handed on.

    `kept` are the columns to hand on, None for all that a file has; of the attributes, those named
    are read, or all; `beside` is read, but not handed on.
    """
    _check_folders(events, schema)
    found = []
    for number, columns in enumerate(events.schemas):
        file = events.files[events.schema_of.index(number)]
        for name in kept or ():
            if name not in columns.names:
                raise absent(file, name, columns.names)
        found.append(_layout(file, schema, columns, kept, attributes, beside))
    return tuple(found)


def _check_folders(events: Found, schema: Schema) -> None:
    """Refuse values that only the names of folders tell (`day=3/`): events would lack them."""
    for file, number in zip(events.files, events.schema_of, strict=True):
        for folder in Path(file).parts[:-1]:
            name, is_, _ = folder.partition("=")
            if is_ and name in schema.attributes and name not in events.schemas[number].names:
                raise SparkError(
                    f"{file}: {name!r} is an attribute, and only the folder {folder!r} tells its "
                    "value, which is not read; write it as a column too, or match the DataFrame "
                    "that spark.read.parquet gives, with tamis.spark.match"
                )


def absent(file: str, name: str, names: Sequence[str]) -> SparkError:
    """That a file has no such column."""
    hint = nearest(name, names) or f"these are {', '.join(names[:12])}"
    return SparkError(f"{file}: there is no column {name!r}; {hint}")


def check_once(kept: Sequence[str], taken: Collection[str], what: str = "pairs") -> None:
    """Refuse columns to hand on of which two would have one name."""
    for at, name in enumerate(kept):
        if name in taken or name in kept[:at]:
            raise SparkError(
                f"{what} would have two columns {name!r}; name it once, and no other so"
            )


def _layout(
    file: str,
    schema: Schema,
    columns: pa.Schema,
    kept: Sequence[str] | None,
    attributes: set[str] | None,
    beside: Sequence[str],
) -> Layout:
    from pyspark.sql.types import StructType

    struct = StructType()
    for field in columns:
        struct.add(field.name, _spark_type(field.type if _asked(field.name, schema) else pa.null()))
    try:
        found = sources(schema, struct, [*(kept or ()), *beside])
    except SparkError as why:
        raise SparkError(f"{file}: {why}") from None
    read = [each for each in found if attributes is None or each.attribute in attributes]
    # A table without columns has no rows either.
    chosen = tuple(map(_way, read or found[:1]))
    return Layout(chosen, tuple(columns.names if kept is None else kept), tuple(beside))


def _way(source: Source) -> tuple[str, tuple[str, ...]]:
    return source.attribute, source.path


def _asked(name: str, schema: Schema) -> bool:
    """Whether a column is an attribute, or a struct that holds some."""
    return name in schema.attributes or any(
        each.startswith(f"{name}.") for each in schema.attributes
    )


def _spark_type(kind: pa.DataType) -> DataType:
    """What Spark would call a column, whatever way Arrow has of holding its values.

    Of what Spark has no name for, nothing is said here: values are looked at one by one later.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import ArrayType, LongType, NullType, StringType, StructField, StructType

    if isinstance(kind, pa.DictionaryType):
        return _spark_type(kind.value_type)
    if isinstance(kind, pa.StructType):  # of which Spark may know some fields, and some not
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
