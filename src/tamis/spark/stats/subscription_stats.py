"""What a sample of events matches, and what operators answer about it and cost: on Spark.

A task takes some of the events, and one shard of the subscriptions. All predicates on operators are
evaluated that could matter to an event, so that each is known by itself; see `engine.warm_start`.
Tasks tell of each event, of each subscription that matched, and of each predicate; Spark adds up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tamis.encode.validation import validate
from tamis.engine import Engine
from tamis.engine.warm_start import match_and_measure
from tamis.errors import SparkError, StoreError
from tamis.files.atomic import atomic_file
from tamis.files.os_errors import os_errors_as
from tamis.schedule.exhaustive import PredicateCounts
from tamis.spark.jobs.job_subscriptions import used_folders
from tamis.spark.runtime.job_runner import Progress, cores, numbered, watched
from tamis.spark.runtime.scratch_folder import scratch
from tamis.spark.runtime.worker_cache import opened, packed, unpacked
from tamis.store.stats import PredicateStats, Stats, SubscriptionStats, TopSubscription

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.operators.operator import Operator

ASKED = 256  # events that operators are asked about, which are dear
MOST = 10  # subscriptions that are told of
_AT_ONCE = 16  # of these events are a task's, so that one sees how far it is
_EVENT, _TEXT, _NUMBER, _PREDICATE = "event", "text", "number", "predicate"  # sorts of rows
_COUNTS = ("seen", "true", "faults", "timed")  # of events the pairs are what is seen
_TOLD = "sort string, name string, seen long, true long, faults long, timed long, spent double"
_SAMPLE = "asked.parquet"


def ask(
    spark: SparkSession,
    stats: Stats,
    subscriptions: str | os.PathLike[str],
    *,
    operators: Operator | Iterable[Operator] = (),
    asked: int = ASKED,
    work: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Stats:
    """Statistics, and with them what subscriptions match of the sample.

    Args:
        spark: the session, classic or of Connect.
        stats: of events.
        subscriptions: the folder of an index (its latest version), of a version, or of a saved
            engine. Where they call operators, it is also told what each of these predicates comes
            to: how often it is true, and what a call takes.
        operators: those that conditions call, if they are not registered.
        asked: where subscriptions call operators, no more events than these are matched.
        work: a folder that all workers can read, for the time of the job; on one machine any.
        progress: is called with how many tasks are done, and how many there are.
    """
    given = packed(operators)
    with ExitStack() as held:
        folders = [str(folder) for folder in held.enter_context(used_folders(subscriptions))]
        # Checksums are compared here, once; and an operator that is missing is missed here.
        engines = [Engine.open(folder, operators=unpacked(given)) for folder in folders]
        for engine in engines:
            held.callback(engine.close)
        calls = any(len(engine.calls) for engine in engines)
        events = stats.sample.slice(0, asked) if calls else stats.sample
        _check(engines[0], events)
        at_once = _AT_ONCE if calls else max(1, -(-events.num_rows // cores(spark)))
        starts = tuple(range(0, events.num_rows, at_once))
        with scratch(None if work is None else Path(work).absolute()) as above:
            with (
                os_errors_as(StoreError, f"{above}: cannot be written to"),
                atomic_file(above / _SAMPLE) as file,
            ):
                parquet.write_table(events, file)
            job = _Asking(tuple(folders), given, str(above / _SAMPLE), starts, at_once)
            rows = job.collected(spark, progress)
        matched, predicates = _summed(rows, engines)
        return replace(stats, subscriptions=matched, predicates=predicates)


def _check(engine: Engine, events: pa.Table) -> None:
    validated = validate(engine.encoder, events)
    if validated.refused and not len(validated.rows):
        raise SparkError(
            "the subscriptions are for another schema: not one of the sampled events is an event "
            f"of theirs; the first: {validated.refused[0].reason}"
        )


class _Asking(NamedTuple):
    """All that tasks have to know."""

    folders: tuple[str, ...]  # of shards
    operators: bytes
    events: str  # a file
    starts: tuple[int, ...]  # of what tasks take of it
    at_once: int

    def collected(self, spark: SparkSession, progress: Progress | None) -> list[Any]:
        """All events and predicates, and the subscriptions that matched most."""
        tasks = len(self.folders) * len(self.starts)
        if not tasks:
            return []
        told = numbered(spark, tasks, self.run, _TOLD)
        return watched(spark, _added_up(told).collect, tasks, progress)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes numbers of tasks, gives what is to be added up."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                shard, part = divmod(number, len(self.starts))
                yield from self._task(self.folders[shard], self.starts[part])

    def _task(self, folder: str, start: int) -> Iterator[pa.RecordBatch]:
        engine = opened(folder, self.operators, shards=len(self.folders))
        table = parquet.read_table(self.events).slice(start, self.at_once)
        validated = validate(engine.encoder, table)
        if not len(validated.rows):
            return
        found, told = match_and_measure(engine, validated.good)
        names = [str(start + row) for row in validated.rows.tolist()]
        yield _rows(_EVENT, names, np.diff(found.starts))
        _, firsts, counts = np.unique(found.slots, return_index=True, return_counts=True)
        ids = found.subscriptions[firsts].tolist()
        texts = np.array([isinstance(id, str) for id in ids], np.bool_)
        for sort, which in ((_TEXT, texts), (_NUMBER, ~texts)):
            chosen = np.flatnonzero(which)
            yield _rows(sort, [str(ids[at]) for at in chosen.tolist()], counts[chosen])
        yield _rows(_PREDICATE, list(told), *zip(*told.values(), strict=True))


def _rows(sort: str, names: list[str], *counts: Any) -> pa.RecordBatch:
    none = np.zeros(len(names), np.int64)
    given = [np.asarray(each) for each in counts]
    given += [none] * (len(_COUNTS) + 1 - len(given))
    return pa.RecordBatch.from_pydict(
        {
            "sort": pa.array([sort] * len(names), pa.string()),
            "name": pa.array(names, pa.string()),
            **dict(zip(_COUNTS, (pa.array(each, pa.int64()) for each in given), strict=False)),
            "spent": pa.array(given[-1], pa.float64()),
        }
    )


def _added_up(told: DataFrame) -> DataFrame:
    """The sums of each name; of subscriptions only the first few."""
    from pyspark.sql import Window, functions

    sums = [functions.sum(name).alias(name) for name in (*_COUNTS, "spent")]
    added = told.groupBy("sort", "name").agg(*sums)
    order = Window.partitionBy("sort").orderBy(functions.desc("seen"), "name")
    ranked = added.withColumn("rank", functions.row_number().over(order))
    few = functions.col("rank") <= MOST
    return ranked.where(functions.col("sort").isin(_EVENT, _PREDICATE) | few)


def _summed(
    rows: Iterable[Any], engines: list[Engine]
) -> tuple[SubscriptionStats, dict[str, PredicateStats]]:
    of: dict[str, list[Any]] = {}
    for row in rows:
        of.setdefault(row["sort"], []).append(row)
    events = [row["seen"] for row in of.get(_EVENT, [])]
    best: list[tuple[int, int | str]] = [
        *((row["seen"], row["name"]) for row in of.get(_TEXT, [])),
        *((row["seen"], int(row["name"])) for row in of.get(_NUMBER, [])),
    ]
    best.sort(key=lambda each: (-each[0], str(each[1])))
    matched = SubscriptionStats(
        subscriptions=sum(len(engine) for engine in engines),
        events=len(events),
        pairs=sum(events),
        matched=sum(pairs > 0 for pairs in events),
        most=tuple(
            TopSubscription(id, seen / len(events), _condition(engines, id))
            for seen, id in best[:MOST]
        ),
    )
    told = {
        row["name"]: PredicateCounts(**{name: row[name] for name in PredicateCounts._fields})
        for row in sorted(of.get(_PREDICATE, []), key=lambda row: row["name"])
    }
    return matched, _predicates(told)


def _predicates(told: Mapping[str, PredicateCounts]) -> dict[str, PredicateStats]:
    """Those that answered at all, and were waited for."""
    return {
        text: PredicateStats(each.true / each.seen, each.spent / 1000 / each.timed, each.seen,
                             each.faults)
        for text, each in told.items()
        if each.seen and each.timed
    }  # fmt: skip


def _condition(engines: list[Engine], id: int | str) -> str | None:
    return next((engine.condition(id) for engine in engines if id in engine), None)
