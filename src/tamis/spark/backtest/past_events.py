"""Events that are past, in files or in a log: what they are, and when they were."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tamis.errors import SchemaError, SparkError, nearest
from tamis.model.domain import Decimal, Integer, Timestamp
from tamis.model.schema import Schema
from tamis.replay.event_columns import multiple, type_at
from tamis.replay.event_source import Events, LogEvents, Logged
from tamis.replay.parts import SEQUENCE, SUBSCRIPTION
from tamis.replay.row_groups import Found, found, shares
from tamis.spark.backtest import time_span
from tamis.spark.backtest.time_axis import DECIMAL, TIME, WHOLE, Clock, clock
from tamis.spark.backtest.time_span import Span
from tamis.spark.jobs.parquet_columns import (
    absent,
    check_once,
    dealt,
    every_group,
    layouts,
)
from tamis.spark.runtime.job_runner import Progress, cores
from tamis.spark.runtime.worker_cache import document
from tamis.spark.stream.log_source import parts
from tamis.store.log import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TAKEN = {SEQUENCE, SUBSCRIPTION}
_SHARES = 4  # tasks a core
_LARGEST = 1 << 20  # events of a task


class PastFiles(NamedTuple):
    """Rows of parquet files, numbered from 0 on in the order of the files' names."""

    there: Found
    schema: Schema
    clock: Clock | None
    columns: Sequence[str] | None  # that samples have; None: all

    @property
    def files(self) -> int:
        """How many there are."""
        return len(self.there.files)

    @property
    def where(self) -> str:
        """The file, or the folder that all of them are in."""
        return os.path.commonpath(self.there.files)

    def some(self, schema: Schema) -> Events:
        """To look at a few of them."""
        return every_group(self.there, schema)

    def dealt(self, spark: SparkSession) -> Events:
        """In shares, with all that a back-test needs."""
        beside = () if self.clock is None else (self.clock.name,)
        made = layouts(self.there, self.schema, self.columns, beside=beside)
        return dealt(self.there, made, shares(self.there.groups, cores(spark)))

    def span(self, spark: SparkSession, progress: Progress | None) -> Span:
        """From when to when they are."""
        if self.clock is None:
            return Span(0, self.there.rows - 1) if self.there.rows else Span()
        return time_span.of_files(spark, self.there, self.clock, progress)


class PastLog(NamedTuple):
    """Events of a log, up to where it ended when this was asked."""

    log: Log
    end: int
    clock: Clock | None
    columns: Sequence[str] | None

    @property
    def files(self) -> int:
        """A log is none."""
        return 0

    @property
    def where(self) -> str:
        """The folder of the log."""
        return str(self.log.folder)

    def some(self, schema: Schema) -> Events:
        """To look at a few of them."""
        return self._dealt(3)

    def dealt(self, spark: SparkSession) -> Events:
        """In shares, with all that a back-test needs."""
        events = self.log.counts(0, self.end)[0]
        return self._dealt(max(_SHARES * cores(spark), -(-events // _LARGEST)))

    def _dealt(self, most: int) -> LogEvents:
        columns = None if self.columns is None else tuple(self.columns)
        layout = Logged(document(Schema.from_dict(self.log.schema)), columns)
        ranges = tuple(parts(self.log, 0, self.end, most))
        return LogEvents(str(self.log.folder), layout, ranges)

    def span(self, spark: SparkSession, progress: Progress | None) -> Span:
        """From when to when they are."""
        if self.clock is not None:
            return time_span.of_events(spark, self.dealt(spark), self.clock, progress)
        for first, _ in self.log.events(0, self.end):
            return Span(first, self.end - 1)
        return Span()


Past = PastFiles | PastLog


def past(
    events: str | os.PathLike[str] | Log,
    schema: Schema,
    time: str | None = None,
    columns: Sequence[str] | None = None,
) -> Past:
    """Events to test conditions of a schema with; refuses what could not be done with them.

    `time` names what tells when an event was, `columns` what samples are to have.
    """
    if isinstance(events, Log):
        return _log(events, schema, time, columns)
    there = found(events)
    _check_columns(columns, {name for each in there.schemas for name in each.names})
    told = None if time is None else _clock(there, schema, time)
    layouts(there, schema, columns, beside=() if time is None else (time,))
    return PastFiles(there, schema, told, columns)


def _check_columns(columns: Sequence[str] | None, every: Collection[str]) -> None:
    """Refuse columns whose names samples have otherwise."""
    if columns is not None:
        check_once(columns, _TAKEN, "samples")
    elif taken := sorted(_TAKEN & set(every)):
        raise SparkError(
            f"samples have a column {taken[0]!r}, and so have the events: say which columns of "
            "theirs samples are to have"
        )


def _clock(there: Found, schema: Schema, time: str) -> Clock:
    types, read = [], isinstance(schema.attributes.get(time), Timestamp)
    rules = document(schema) if read else ""
    for number, columns in enumerate(there.schemas):
        file = there.files[there.schema_of.index(number)]
        kind = type_at(columns, time.split("."))
        if kind is None:
            raise absent(file, time, columns.names)
        try:
            clock(time, [kind], rules)
        except SparkError as why:
            raise SparkError(f"{file}: {why}") from None
        types.append(kind)
    return clock(time, types, rules)


def _log(log: Log, schema: Schema, time: str | None, columns: Sequence[str] | None) -> PastLog:
    try:
        schema.check_extends(Schema.from_dict(log.schema))
    except SchemaError as why:
        raise SparkError(
            f"{log.folder}: its events are of another schema than the subscriptions: {why}"
        ) from None
    names = list(schema.attributes)
    for name in (*(columns or ()), *([] if time is None else [time])):
        if name not in names:
            hint = nearest(name, names)
            raise SparkError(
                f"{log.folder}: the events have no attribute {name!r}"
                + (f"; {hint}" if hint else "")
            )
    _check_columns(columns, names)
    return PastLog(log, log.end, None if time is None else _attribute(schema, time), columns)


def _attribute(schema: Schema, time: str) -> Clock:
    """Of a log, an attribute tells the time: by the rules of its domain."""
    kinds = {Timestamp: TIME, Integer: WHOLE, Decimal: DECIMAL}
    domain = schema.attributes[time]
    kind = kinds.get(type(domain))
    if kind is None or time in multiple(schema):
        what = f"is {domain.kind}" if kind is None else "may have several values"
        raise SparkError(
            f"the attribute {time!r} {what}, which tells no time: expected one timestamp or number"
        )
    timed = kind == TIME
    return Clock(tuple(time.split(".")), kind, timed, False, document(schema) if timed else "")
