"""`match_files`: events in parquet files against subscriptions in a folder, both read by workers.

Only the shares of rows and the numbers of pairs go through Spark. Pairs are written to parts in a
folder, in the layout of `format("tamis_notifications")`; the driver names all parts in one manifest
at the end. A task that is tried again writes parts of another name.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import SparkError
from tamis.model.schema import Schema
from tamis.model.times.moments import clock, read_moment
from tamis.replay.manifests import manifests, sweep
from tamis.replay.parquet_events import parquet_files
from tamis.replay.parts import SEQUENCE, SUBSCRIPTION
from tamis.spark.events.past_events import check_names
from tamis.spark.events.past_files import PastFiles
from tamis.spark.jobs.match_task import MATCHED, MatchTask
from tamis.spark.runtime import operator_reports as reports
from tamis.spark.runtime.engine_folders import engine_folders, held_subscriptions
from tamis.spark.runtime.job_runner import Progress, cores, run_tasks
from tamis.spark.runtime.scratch_folder import scratch_folder, scratch_folders
from tamis.spark.stream.notification_sink import WrittenParts, commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.operators.operator import Operator
    from tamis.operators.report import Report


class MatchedFiles(NamedTuple):
    """The result of a job. An event is either dead or was matched, with pairs or without."""

    events: int
    matched: int  # events with a pair
    pairs: int
    dead: int
    files: int
    tasks: int
    seconds: float  # of matching alone
    operators: Report = reports.NOTHING  # their calls and faults


def match_files(
    spark: SparkSession,
    events: str | os.PathLike[str],
    subscriptions: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    id: str | None = None,
    columns: Iterable[str] = (),
    operators: Operator | Iterable[Operator] = (),
    trusted: bool = False,
    append: bool = False,
    now: datetime | str | None = None,
    progress: Progress | None = None,
) -> MatchedFiles:
    """Match all events of parquet files, and write the pairs to a folder.

    Args:
        out: where pairs go; without it they are counted only.
        id: the column that identifies events. The default is an event's number, as `sequence`:
            from 0 on, in the order of the files' names.
        columns: of the events that pairs have too.
        trusted: events are known to be consistent, as after `tamis.spark.validate`: only
            attributes that some subscription mentions are read.
        now: the moment of all events, for conditions that mention it; the default is the present.
        append: add to the pairs of an earlier job in `out`, instead of refusing the folder.

    The other arguments are those of `tamis.spark.backtest.backtest_job.backtest`.
    Events that break a rule of the schema are written to `dead`, with the reason.
    """
    moment = clock() if now is None else read_moment(now)
    files = parquet_files(events)
    kept = [*([] if id is None else [id]), *columns]
    check_names(kept, [SEQUENCE, SUBSCRIPTION] if id is None else [SUBSCRIPTION], "pairs")
    folder = None if out is None else _ready(Path(out).absolute(), append)
    with (
        scratch_folder(folder) as above,
        held_subscriptions(
            subscriptions, above, lambda schema: PastFiles(files, schema).sample(), operators
        ) as saved,
    ):
        if folder is not None and not append:
            _clear(folder, above)
        there = PastFiles(files, saved.schema)
        attributes = saved.mentioned if trusted and not saved.calls else None
        job = MatchTask(
            there.shares(cores(spark), kept, attributes=attributes),
            saved.folders,
            saved.operators,
            saved.texts,
            id,
            tuple(kept),
            attributes is not None,
            None if folder is None else str(folder),
            uuid.uuid4().hex,
            moment,
        )
        begun = perf_counter()
        try:
            made = run_tasks(spark, job.tasks, job.run, MATCHED, progress)
        except BaseException:
            _discard(job)
            raise
        counted = _counted(job, there.files, made, perf_counter() - begun)
    if folder is not None:
        facts: dict[str, Any] = {
            "query": None,
            "batch": None,
            "events": counted.events,
            "matched": counted.matched,
        }
        if len(counted.operators):
            facts |= reports.report_document(counted.operators)
        parts = [part.asDict() for row in made for part in row["parts"]]
        commit(folder, job.name, facts, [WrittenParts(parts)])
    return counted


def check_given(
    events: str | os.PathLike[str],
    subscriptions: str | os.PathLike[str],
    out: str | os.PathLike[str] | None,
    append: bool = False,
) -> None:
    """Refuse mistakes that show before Spark is started, which takes a while."""
    parquet_files(events)
    engine_folders(subscriptions)
    if out is not None:
        _ready(Path(out).absolute(), append)


def read_files(
    spark: SparkSession,
    events: str | os.PathLike[str],
    schema: Schema,
) -> MatchedFiles:
    """The same job without matching: how fast a machine reads, and so the most it could match."""
    there = PastFiles(parquet_files(events), schema)
    job = MatchTask(there.shares(cores(spark)), ())
    begun = perf_counter()
    made = run_tasks(spark, job.tasks, job.run, MATCHED)
    return _counted(job, there.files, made, perf_counter() - begun)


def _counted(job: MatchTask, files: int, made: Sequence[Any], seconds: float) -> MatchedFiles:
    events, matched, pairs, dead = (
        sum(row[name] for row in made) for name in ("events", "matched", "pairs", "dead")
    )
    if len(job.shards) > 1:  # an event may have matched in several
        matched = 0
        share_of: dict[int, int] = {}
        for row in made:
            share, bits = row["task"] % len(job.events.shares), int.from_bytes(row["bits"], "big")
            share_of[share] = share_of.get(share, 0) | bits
        matched = sum(bits.bit_count() for bits in share_of.values())
    calls = reports.total_of(row["operators"] for row in made)
    return MatchedFiles(events, matched, pairs, dead, files, job.tasks, seconds, calls)


def _ready(out: Path, append: bool) -> Path:
    if out.exists() and not out.is_dir():
        raise SparkError(f"{out}: is a file, and not a folder for pairs")
    if manifests(out) and not append:  # refuses damaged ones
        raise SparkError(
            f"{out}: holds notifications already; name another folder, or append to it"
        )
    return out


def _clear(out: Path, mine: Path) -> None:
    """Remove parts of killed jobs, which readers without manifests would see.

    No manifest is here yet, but another job may be at work on its first parts.
    """
    if (out / "lock").exists():  # of a stream, which may be at its first batch
        return
    if scratch_folders(out) == [mine]:
        sweep(out, 0.0)


def _discard(job: MatchTask) -> None:
    """Remove the parts of a job that failed: no manifest names them."""
    if job.out is not None:
        for part in Path(job.out).glob(f"*/part-{job.name}-*.parquet"):
            part.unlink(missing_ok=True)
