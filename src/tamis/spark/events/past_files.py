"""Past events in parquet files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamis.errors import SparkError
from tamis.model.domain import Timestamp
from tamis.model.schema import Schema
from tamis.replay.event_columns import type_at
from tamis.replay.event_source import RowLayout
from tamis.replay.parquet_events import ParquetEvents, ParquetFiles, RowRange, row_shares
from tamis.spark.events.parquet_columns import layouts, no_column
from tamis.spark.events.past_events import PastEvents, check_sample_columns
from tamis.spark.events.time_axis import EventClock, clock_of
from tamis.spark.events.time_span import TimeSpan, span_of, stated_span
from tamis.spark.runtime.job_runner import Progress, cores
from tamis.spark.runtime.worker_cache import schema_document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
