"""Past events in parquet files: which columns are which attributes is checked before a job runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.encode.lines.event_columns import type_at
from tamis.errors import SparkError, nearest
from tamis.model.domain import Timestamp
from tamis.model.schema import Schema
from tamis.replay.event_source import RowLayout
from tamis.replay.parquet_events import ParquetEvents, ParquetFiles, RowRange, row_shares
from tamis.spark.events.past_events import PastEvents, check_sample_columns
from tamis.spark.events.time_axis import EventClock, clock_of
from tamis.spark.events.time_span import TimeSpan, span_of, stated_span
from tamis.spark.frames.frame_columns import attribute_sources
from tamis.spark.runtime.job_runner import Progress, cores
from tamis.spark.runtime.worker_cache import schema_document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType


class PastFiles(PastEvents):
    """Rows of parquet files, numbered from 0 on."""

    def __init__(self, there: ParquetFiles, schema: Schema) -> None:
        self.there, self.schema, self.files = there, schema, len(there.files)

    @property
    def where(self) -> str:
        return os.path.commonpath(self.there.files)

    def clock(self, time: str | None, columns: Sequence[str] | None = ()) -> EventClock | None:
        """A column, of timestamps, dates or numbers."""
        check_sample_columns(columns, {name for each in self.there.schemas for name in each.names})
        found = None if time is None else self._clock(time)
        layouts(self.there, self.schema, columns, beside=() if time is None else (time,))
        return found

    def _clock(self, time: str) -> EventClock:
        types, there = [], self.there
        read = isinstance(self.schema.attributes.get(time), Timestamp)
        rules = schema_document(self.schema) if read else ""
        for number, columns in enumerate(there.schemas):
            file = there.files[there.schema_of.index(number)]
            kind = type_at(columns, time.split("."))
            if kind is None:
                raise no_column(file, time, columns.names)
            try:
                clock_of(time, [kind], rules)
            except SparkError as why:
                raise SparkError(f"{file}: {why}") from None
            types.append(kind)
        return clock_of(time, types, rules)

    def shares(
        self,
        cores: int,
        columns: Sequence[str] | None = (),
        beside: Sequence[str] = (),
        attributes: set[str] | None = None,
    ) -> ParquetEvents:
        """The rows in shares; of the attributes those named, or all."""
        made = layouts(self.there, self.schema, columns, attributes, beside)
        return self._read(made, row_shares(self.there.groups, cores))

    def sample(self) -> ParquetEvents:
        """A share for each row group."""
        return self._read(layouts(self.there, self.schema), [(each,) for each in self.there.groups])

    def _read(
        self, layouts: tuple[RowLayout, ...], shares: Sequence[tuple[RowRange, ...]]
    ) -> ParquetEvents:
        there = self.there
        return ParquetEvents(tuple(there.files), layouts, tuple(there.schema_of), tuple(shares))

    def numbers(self) -> TimeSpan:
        return TimeSpan(0, self.there.rows - 1) if self.there.rows else TimeSpan()

    def timed_span(
        self, spark: SparkSession, clock: EventClock, progress: Progress | None
    ) -> TimeSpan:
        """By the footers of the files; row groups without statistics are read."""
        stated, silent = stated_span(self.there, clock)
        if silent:
            made = (RowLayout((), columns=(clock.name,)),) * len(self.there.schemas)
            rows = self._read(made, row_shares(silent, cores(spark)))
            stated = stated.joined(span_of(spark, rows, clock, progress))
        return stated


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
