"""`backtest`: what conditions would have matched, of events that are past.

Workers read the events and count, by subscription and time. What they counted is in files of a
folder for the time of the job, which the driver adds up; pairs never leave the worker.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.engine import Engine
from tamis.errors import SparkError
from tamis.operators.report import Report
from tamis.spark.backtest.count_task import DONE, Trial, leaders
from tamis.spark.backtest.past_events import Past, past
from tamis.spark.backtest.result_tables import (
    counts_table,
    over_time_table,
    reasons_table,
    samples_table,
    subscriptions_table,
    totals_table,
)
from tamis.spark.backtest.tally import Tally
from tamis.spark.backtest.time_axis import WHOLE, Axis, axis
from tamis.spark.jobs.job_subscriptions import engine_folders, taken
from tamis.spark.runtime import operator_reports as reports
from tamis.spark.runtime.job_runner import Progress, numbered, watched
from tamis.spark.runtime.scratch_folder import scratch
from tamis.store.log import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.operators.operator import Operator

BUCKETS, SAMPLES = 60, 5
_COUNTS = 1 << 25  # subscriptions times buckets: 256 MB on the driver, half of that in a worker
_SAMPLES = 1 << 20  # samples in all


class Backtest(NamedTuple):
    """What conditions would have matched.

    All events are either dead or were matched, with pairs or without. The tables:

        counts     subscription, condition, matched (events), share (of all), first, last (seen)
        over_time  subscription, begin, end, matched: buckets in which it matched something
        totals     begin, end, events, matched (by any), dead, pairs: all buckets
        samples    subscription, sequence (the number of an event), and columns of the event
        reasons    reason, events, first: why events are dead, and the first of them

    Time is that of the column that was named, or the number of an event. Where events have none,
    `begin` and `end` of their bucket are null.
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
    axis: Axis
    time: str | None
    files: int
    tasks: int
    seconds: float  # of matching, without what went before
    operators: Report  # what they were asked, and did wrong


def backtest(
    spark: SparkSession,
    events: str | os.PathLike[str] | Log,
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
    """Match past events with subscriptions, and count, whoever was subscribed when they came.

    Args:
        spark: the session, classic or of Connect.
        events: a folder of parquet files, a pattern that names them, or one file; or a log, of
            which all events are taken. In files, a column with the name of an attribute is that
            attribute.
        subscriptions: an engine; or the folder of an index (its latest version), of a version, or
            of a saved engine.
        time: the column that tells when an event was, attribute or not: timestamps, dates or
            numbers; of a log, an attribute. Without it an event's number does.
        buckets: so many at most; they are of a length that is easy to read. [60]
        samples: so many events of each subscription; the same events give the same samples. [5]
        columns: of the events that samples are to have; all without it.
        operators: those that conditions call, if they are not registered.
        work: a folder that all workers can write to, for the time of the job; on one machine any.
        progress: is called with how many tasks are done, and how many there are; `looking` likewise
            while all events are looked at for their time, where files do not say from when to when
            theirs are.
    """
    _check_numbers(buckets, samples)
    given = events if isinstance(events, Log) else os.fspath(events)
    columns = [] if samples == 0 else columns
    with (
        scratch(None if work is None else Path(work).absolute()) as above,
        taken(
            subscriptions,
            above,
            lambda schema: past(given, schema, time, columns).some(schema),
            operators,
        ) as now,
    ):
        there = past(given, now.schema, time, columns)
        slots = [leaders(engine) for engine in now.engines]
        firsts = tuple(accumulate(map(len, slots), initial=0))
        most, each = _fitting(firsts[-1], buckets, samples)
        counts = above / "counts"
        counts.mkdir()
        trial = Trial(
            there.dealt(spark),
            now.folders,
            firsts,
            now.operators,
            there.clock,
            _axis(spark, there, most, looking),
            each,
            str(counts),
        )
        begun = perf_counter()
        rows = _run(spark, trial, progress)
        tally = _added(trial, [row["file"] for row in rows])
        seconds = perf_counter() - begun
        asked = reports.total(reports.read(json.loads(row["operators"])) for row in rows)
        known = subscriptions_table(now, slots)
        return _made(trial, tally, known, there, asked)._replace(seconds=seconds)


def check_given(
    events: str | os.PathLike[str] | Log,
    subscriptions: str | os.PathLike[str] | Engine,
    *,
    time: str | None = None,
    columns: Sequence[str] | None = None,
) -> None:
    """Refuse what can be seen to be wrong before Spark is started, which takes a while."""
    if not isinstance(subscriptions, Engine):
        with Engine.open(engine_folders(subscriptions)[0], verify=False) as engine:
            past(events, engine.schema, time, columns)
    else:
        past(events, subscriptions.schema, time, columns)


def _check_numbers(buckets: int | None, samples: int | None) -> None:
    if buckets is not None and buckets < 1:
        raise SparkError(f"there is one bucket at least, got {buckets}")
    if samples is not None and samples < 0:
        raise SparkError(f"samples are 0 or more of each subscription, got {samples}")


def _fitting(subscriptions: int, buckets: int | None, samples: int | None) -> tuple[int, int]:
    """How many buckets and samples there are to be; fewer of many subscriptions, if not told."""
    many = max(1, subscriptions)
    most, each = _COUNTS // many - 1, _SAMPLES // many  # a bucket more is for events without time
    if most < 1 or (buckets is not None and buckets > most):
        raise SparkError(
            f"{subscriptions:,} subscriptions can be counted in {max(0, most):,} buckets at most"
            + ("" if most < 1 else f", not in {buckets:,}")
        )
    if samples is not None and samples > each:
        raise SparkError(
            f"{subscriptions:,} subscriptions can have {each:,} samples each, not {samples:,}"
        )
    return (
        min(most, BUCKETS) if buckets is None else buckets,
        min(each, SAMPLES) if samples is None else samples,
    )


def _axis(spark: SparkSession, there: Past, most: int, looking: Progress | None) -> Axis:
    clock, (low, high) = there.clock, there.span(spark, looking)
    nothing = low > high
    if clock is None:
        return axis(WHOLE, 0 if nothing else low, 0 if nothing else high, most)
    if nothing:
        raise SparkError(
            f"{there.where}: no event has a value of {clock.name!r} that tells the time"
            + (", in ISO 8601 such as 2026-01-31T12:00:00Z" if clock.schema else "")
            + "; name another column, or none to have events counted in their order"
        )
    return axis(clock.kind, low, high, most, zone=clock.zone, days=clock.days)


def _run(spark: SparkSession, trial: Trial, progress: Progress | None) -> list[Any]:
    """What became of tasks, in their order."""
    tasks = len(trial.events.shares)
    if not tasks:
        return []

    rows = watched(spark, numbered(spark, tasks, trial.run, DONE).collect, tasks, progress)
    return sorted(rows, key=lambda row: row["task"])


def _added(trial: Trial, files: Iterable[str]) -> Tally:
    """What all tasks have counted."""
    tally = trial.tally()
    for file in files:
        tally.add(Path(trial.folder) / file)
        (Path(trial.folder) / file).unlink()
    return tally


def _made(trial: Trial, tally: Tally, known: pa.Table, there: Past, asked: Report) -> Backtest:
    grid, axis = tally.grid, trial.axis
    events, matched, dead = (int(each.sum()) for each in (tally.events, tally.matched, tally.dead))
    return Backtest(
        events,
        matched,
        int(grid.sum()),
        dead,
        counts_table(tally, grid, axis, known, events),
        over_time_table(tally, axis, known),
        totals_table(tally, grid, axis),
        samples_table(tally, known),
        reasons_table(tally),
        grid,
        axis,
        None if there.clock is None else there.clock.name,
        there.files,
        len(trial.events.shares),
        0.0,
        asked,
    )
