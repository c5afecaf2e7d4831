"""`backtest`: which past events conditions would have matched.

Workers read the events and count by subscription and time. Their tallies are files in a folder that
lives as long as the job, and the driver adds them up; pairs never leave a worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.engine import Engine
from tamis.engine.doors.event_moments import depends_on_now
from tamis.errors import SparkError, counted
from tamis.operators.report import Report
from tamis.spark.backtest.count_task import COUNTED, CountTask, leading_slots
from tamis.spark.backtest.result_tables import (
    counts_table,
    over_time_table,
    reasons_table,
    samples_table,
    subscriptions_table,
    totals_table,
)
from tamis.spark.events.past_events import PastEvents, past_events
from tamis.spark.events.time_axis import TIME, WHOLE, EventClock, TimeAxis, axis
from tamis.spark.events.time_span import TimeSpan
from tamis.spark.runtime import operator_reports as reports
from tamis.spark.runtime.engine_folders import engine_folders, held_subscriptions
from tamis.spark.runtime.job_runner import Progress, cores, run_tasks
from tamis.spark.runtime.scratch_folder import scratch_folder
from tamis.store.log import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.operators.operator import Operator

BUCKETS, SAMPLES = 60, 5
_COUNTS = 1 << 25  # subscriptions times buckets: 256 MB on the driver, half of that in a worker
_SAMPLES = 1 << 20  # samples in all


class Backtest(NamedTuple):
    """What conditions would have matched.

    An event is either dead or was matched, with pairs or without. The tables:

        counts     subscription, condition, matched (events), share (of all), first, last (seen)
        over_time  subscription, begin, end, matched: buckets in which it matched something
        totals     begin, end, events, matched (by any), dead, pairs: all buckets
        samples    subscription, sequence (the number of an event), and columns of the event
        reasons    reason, events, first: why events are dead, and the first one

    Time is the named column, or the number of an event. `begin` and `end` are null for the bucket
    of events without a time.
    """

    events: int
    matched: int  # events with a pair
    pairs: int
    dead: int
    counts: pa.Table
    over_time: pa.Table
    totals: pa.Table
    samples: pa.Table
    reasons: pa.Table
    grid: NDArray[np.int64]  # matched events by subscription (rows) and bucket; the last: no time
    axis: TimeAxis
    time: str | None
    files: int
    tasks: int
    seconds: float  # of matching alone
    operators: Report  # their calls and faults


def backtest(
    spark: SparkSession,
    events: str | os.PathLike[str] | Log | PastEvents,
    subscriptions: str | os.PathLike[str] | Engine,
    *,
    time: str | None = None,
    buckets: int | None = None,
    samples: int | None = None,
    columns: Sequence[str] | None = None,
    operators: Operator | Iterable[Operator] = (),
    work: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    looking: Progress | None = None,
) -> Backtest:
    """Match past events with subscriptions and count, no matter who was live at the time.

    Args:
        spark: the session, classic or of Connect.
        events: a folder of parquet files, a pattern that names them, or one file; or a log, of
            which all events are taken. In files, a column with the name of an attribute is that
            attribute.
        subscriptions: an engine; or the folder of an index (its latest version), of a version, or
            of a saved engine.
        time: the column with the time of an event: timestamps, dates or numbers; of a log, an
            attribute. The default is the event's number. It is also what `now` means in conditions;
            without a column of times, that is when the log got the event.
        buckets: at most; their length is a round one. [60]
        samples: events of each subscription; the same events give the same samples. [5]
        columns: of the events, for samples; the default is all.
        operators: those that conditions call, if they are not registered.
        work: a folder that all workers can write to, for scratch files; on one machine any.
        progress: is called with the tasks that are done, and all tasks; `looking` likewise while
            events are read for their times, where files do not state them.
    """
    if buckets is not None and buckets < 1:
        raise SparkError(f"buckets are 1 or more, got {buckets}")
    if samples is not None and samples < 0:
        raise SparkError(f"samples are 0 or more of each subscription, got {samples}")
    given = events if isinstance(events, Log | PastEvents) else os.fspath(events)
    columns = [] if samples == 0 else columns
    with (
        scratch_folder(None if work is None else Path(work).absolute()) as above,
        held_subscriptions(
            subscriptions,
            above,
            lambda schema: past_events(given, schema).sample(),
            operators,
            given.schema_at() if isinstance(given, Log) else None,
        ) as now,
    ):
        there = past_events(given, now.schema)
        clock = there.clock(time, columns)
        _check_moments(there, clock, now.engines)
        slots = [leading_slots(engine) for engine in now.engines]
        firsts = tuple(accumulate(map(len, slots), initial=0))
        most, each = _fitting(firsts[-1], buckets, samples)
        counts = above / "counts"
        counts.mkdir()
        beside = () if clock is None else (clock.name,)
        task = CountTask(
            there.shares(cores(spark), columns, beside),
            now.folders,
            firsts,
            now.operators,
            clock,
            _axis(there, clock, there.span(spark, clock, looking), most),
            each,
            None if columns is None else tuple(columns),
            str(counts),
        )
        begun = perf_counter()
        rows = run_tasks(spark, len(task.events.shares), task.run, COUNTED, progress)
        rows.sort(key=lambda row: row["task"])
        tally, axis = task.tally(), task.axis
        for row in rows:
            tally.add(counts / row["file"])
            (counts / row["file"]).unlink()
        seconds = perf_counter() - begun
        known, grid = subscriptions_table(now, slots), tally.grid
        number = int(tally.events.sum())
        return Backtest(
            number,
            int(tally.matched.sum()),
            int(grid.sum()),
            int(tally.dead.sum()),
            counts_table(tally, axis, known, number),
            over_time_table(tally, axis, known),
            totals_table(tally, axis),
            samples_table(tally, known),
            reasons_table(tally),
            grid,
            axis,
            None if clock is None else clock.name,
            there.files,
            len(task.events.shares),
            seconds,
            reports.total_of(row["operators"] for row in rows),
        )


def check_given(
    events: str | os.PathLike[str] | Log | PastEvents,
    subscriptions: str | os.PathLike[str] | Engine,
    *,
    time: str | None = None,
    columns: Sequence[str] | None = None,
) -> None:
    """Refuse mistakes that show before Spark is started, which takes a while."""
    with ExitStack() as opened:
        if not isinstance(subscriptions, Engine):
            saved = Engine.open(engine_folders(subscriptions)[0], verify=False)
            subscriptions = opened.enter_context(saved)
        there = past_events(events, subscriptions.schema)
        _check_moments(there, there.clock(time, columns), (subscriptions,))


def _check_moments(there: PastEvents, clock: EventClock | None, engines: Iterable[Engine]) -> None:
    """Refuse conditions that mention now if events have no time."""
    if there.appended or (clock is not None and clock.kind == TIME):
        return
    if any(map(depends_on_now, engines)):
        raise SparkError(
            f"{there.where}: a condition mentions now, which is the time of each event: say which "
            "column has it (time=…, or --time), one of timestamps or dates"
        )


def _fitting(subscriptions: int, buckets: int | None, samples: int | None) -> tuple[int, int]:
    """The numbers of buckets and samples; by default fewer where there are many subscriptions."""
    many = max(1, subscriptions)
    most, each = _COUNTS // many - 1, _SAMPLES // many  # a bucket more is for events without time
    if most < 1 or (buckets is not None and buckets > most):
        raise SparkError(
            f"{counted(subscriptions, 'subscription')} can be counted in "
            f"{counted(max(0, most), 'bucket')} at most"
            + ("" if most < 1 else f", not in {buckets:,}")
        )
    if samples is not None and samples > each:
        raise SparkError(
            f"{counted(subscriptions, 'subscription')} can have {counted(each, 'sample')} each, "
            f"not {samples:,}"
        )
    return (
        min(most, BUCKETS) if buckets is None else buckets,
        min(each, SAMPLES) if samples is None else samples,
    )


def _axis(there: PastEvents, clock: EventClock | None, span: TimeSpan, most: int) -> TimeAxis:
    low, high = span
    nothing = low > high
    if clock is None:
        return axis(WHOLE, 0 if nothing else low, 0 if nothing else high, most)
    if nothing:
        raise SparkError(
            f"{there.where}: no event has a value of {clock.name!r} that is a time"
            + (", in ISO 8601 such as 2026-01-31T12:00:00Z" if clock.schema else "")
            + "; name another column, or none to count events in their order"
        )
    return axis(clock.kind, low, high, most, zone=clock.zone, days=clock.days)
