"""Jobs of numbered tasks: started, watched, and refused in plain words.

Spark's own progress bar and ours would write over each other, and its errors are pages of Java. A
person wants to know how many tasks are done, and the last line of the trouble.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from tamis.errors import SparkError
from tamis.spark.runtime.error_text import error_text
from tamis.spark.runtime.sessions import gone, java_ended

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[int, int], object]  # tasks that are done, and all tasks
TaskRows = Iterable[Mapping[str, Any] | pa.RecordBatch]
_Result = TypeVar("_Result")
_EVERY = 0.2  # seconds between two looks


def run_job(
    spark: SparkSession,
    run: Callable[[], _Result],
    tasks: int | None = None,
    progress: Progress | None = None,
) -> _Result:
    """The result of `run`. An error of Spark becomes a `SparkError`.

    `progress` is called with the number of tasks that are done, and of all tasks; where that is not
    given, of those that Spark has started so far.
    """
    from pyspark.errors import PySparkException

    java: Any = import_module("py4j.protocol").Py4JError  # which has no types

    try:
        if progress is None:
            return run()
        watch = _classic if _context(spark) is not None else _connect
        with watch(spark, tasks, progress):
            found = run()
        progress(tasks or 1, tasks or 1)
        return found
    except (PySparkException, java, ConnectionError) as why:
        raise gone() if java_ended() else SparkError(error_text(why)) from None


def task_frame(
    spark: SparkSession, tasks: int, run: Callable[[int], TaskRows], columns: pa.Schema
) -> DataFrame:
    """The rows of so many tasks. Each is called with its number, and gives rows or batches."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def of_numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for row in run(number):
                    if isinstance(row, pa.RecordBatch):
                        yield row
                    else:
                        yield pa.RecordBatch.from_pylist([row], columns)

    numbers = spark.range(tasks, numPartitions=tasks)
    return numbers.mapInArrow(of_numbers, from_arrow_schema(columns))


def run_tasks(
    spark: SparkSession,
    tasks: int,
    run: Callable[[int], TaskRows],
    columns: pa.Schema,
    progress: Progress | None = None,
) -> list[Any]:
    """Run so many tasks, and collect their rows."""
    if not tasks:
        return []
    return run_job(spark, task_frame(spark, tasks, run, columns).collect, tasks, progress)


def cores(spark: SparkSession) -> int:
    """How many tasks run side by side."""
    context = _context(spark)
    if context is not None:
        return max(1, int(context.defaultParallelism))
    # Spark Connect does not say, but cuts a range into as many parts.
    parts = spark.range(1 << 16).selectExpr("spark_partition_id() as part").distinct().count()
    return max(1, parts)


def _context(spark: SparkSession) -> Any:
    try:
        return spark.sparkContext
    except Exception:  # noqa: BLE001 - Connect has none, and its refusal is a class of its own
        return None


@contextmanager
def _classic(spark: SparkSession, tasks: int | None, progress: Progress) -> Iterator[None]:
    context = spark.sparkContext
    tracker, group = context.statusTracker(), f"tamis-{uuid.uuid4().hex}"
    over = threading.Event()

    def look() -> None:
        with suppress(Exception):  # Java may have ended, which the job raises
            follow()

    def follow() -> None:
        while not over.wait(_EVERY):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            found = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            stages = [stage for stage in found if stage is not None]
            done = sum(stage.numCompletedTasks for stage in stages)
            _report(progress, done, tasks or sum(stage.numTasks for stage in stages))

    watcher = threading.Thread(target=look, name="tamis-watch", daemon=True)
    context.setJobGroup(group, "tamis", interruptOnCancel=True)
    watcher.start()
    try:
        yield
    except BaseException:  # Ctrl-C ends the waiting, not the tasks
        with suppress(Exception):
            context.cancelJobGroup(group)
        raise
    finally:
        over.set()
        watcher.join()
        with suppress(Exception):
            context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
            context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


@contextmanager
def _connect(spark: SparkSession, tasks: int | None, progress: Progress) -> Iterator[None]:
    def heard(
        stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        known = list(stages or ())
        ended = sum(stage.num_completed_tasks for stage in known)
        _report(progress, ended, tasks or sum(stage.num_tasks for stage in known))

    handler: Any = heard
    tag = f"tamis-{uuid.uuid4().hex}"
    spark.registerProgressHandler(handler)
    spark.addTag(tag)
    try:
        yield
    except KeyboardInterrupt:  # which ends the waiting, not the tasks
        with suppress(Exception):
            spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)
        spark.removeProgressHandler(handler)


def _report(progress: Progress, done: int, tasks: int) -> None:
    if tasks:
        progress(min(done, tasks), tasks)
