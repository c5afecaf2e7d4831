"""`PastEvents`: where a job takes events from, and when they were.

Parquet files and logs are known by their paths. Any other source is a subclass in one file, of
which an instance goes wherever such a path does.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tamis.errors import SparkError
from tamis.model.schema import Schema
from tamis.replay.event_source import EventSource
from tamis.replay.parquet_events import parquet_files
from tamis.replay.parts import SEQUENCE, SUBSCRIPTION
from tamis.spark.events.time_axis import EventClock
from tamis.spark.events.time_span import TimeSpan, span_of
from tamis.spark.runtime.job_runner import Progress, cores
from tamis.store.log import Log
from tamis.store.stats import LogPosition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_TAKEN = {SEQUENCE, SUBSCRIPTION}


class PastEvents(ABC):
    """Events of one schema, numbered, which tasks read in shares."""

    schema: Schema
    files = 0  # how many files hold the events
    appended = False  # whether chunks say when their events were appended

    @property
    @abstractmethod
    def where(self) -> str:
        """Where they are, for messages."""

    @abstractmethod
    def clock(self, time: str | None, columns: Sequence[str] | None = ()) -> EventClock | None:
        """The clock of the events; None if their numbers are the time.

        Refuses a time and columns (None: all) that the events do not have.
        """

    @abstractmethod
    def shares(
        self, cores: int, columns: Sequence[str] | None = (), beside: Sequence[str] = ()
    ) -> EventSource:
        """All events, in shares for so many cores, with columns to hand on and others to read."""

    @abstractmethod
    def numbers(self) -> TimeSpan:
        """The first and the last number."""

    def sample(self) -> EventSource:
        """Events that are cheap to look at."""
        return self.shares(1)

    def ends(self) -> tuple[LogPosition | None, LogPosition | None]:
        """The first and the last event, where the source knows when they came."""
        return None, None

    def span(
        self, spark: SparkSession, clock: EventClock | None, progress: Progress | None
    ) -> TimeSpan:
        """From when to when the events are."""
        return self.numbers() if clock is None else self.timed_span(spark, clock, progress)

    def timed_span(
        self, spark: SparkSession, clock: EventClock, progress: Progress | None
    ) -> TimeSpan:
        """The span by a clock: all events are read, unless the source knows better."""
        return span_of(spark, self.shares(cores(spark), beside=(clock.name,)), clock, progress)


def past_events(given: str | os.PathLike[str] | Log | PastEvents, schema: Schema) -> PastEvents:
    """The events of a log, of parquet files, or of another source."""
    from tamis.spark.events.past_files import PastFiles
    from tamis.spark.events.past_log import PastLog

    if isinstance(given, PastEvents):
        return given
    if isinstance(given, Log):
        return PastLog(given, schema)
    return PastFiles(parquet_files(given), schema)


def check_names(columns: Sequence[str] | None, taken: Collection[str], what: str) -> None:
    """Refuse columns for the output if two of them would have the same name."""
    for at, name in enumerate(columns or ()):
        if name in taken or name in (columns or ())[:at]:
            raise SparkError(
                f"{what} would have two columns {name!r}; name it once, and give no other that name"
            )


def check_sample_columns(columns: Sequence[str] | None, every: Collection[str]) -> None:
    """Refuse columns whose names samples have anyway."""
    check_names(columns, _TAKEN, "samples")
    if columns is None and (taken := sorted(_TAKEN & set(every))):
        raise SparkError(
            f"samples have a column {taken[0]!r}, and so have the events: say which columns of the "
            "events samples are to have"
        )
