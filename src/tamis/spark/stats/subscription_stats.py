"""What a sample of events matches, and what operators answer about it and cost: on Spark.

A task takes some of the events and one shard of the subscriptions. It evaluates all predicates on
operators that could matter to an event, so that each is known by itself; see `engine.warm_start`.
Tasks count by event, by subscription and by predicate, and Spark adds up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from tamis.spark.runtime.engine_folders import SavedSubscriptions, held_folders
from tamis.spark.runtime.job_runner import Progress, cores, run_job, task_frame
from tamis.spark.runtime.scratch_folder import scratch_folder
from tamis.spark.runtime.worker_cache import open_engine, pack_operators
from tamis.store.stats import PredicateStats, Stats, SubscriptionStats, TopSubscription

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.operators.operator import Operator

ASKED = 256  # events that operators are called for, which are expensive
MOST = 10  # subscriptions that are listed
_AT_ONCE = 16  # of these events in a task, so that progress shows
_EVENT, _TEXT, _NUMBER, _PREDICATE = "event", "text", "number", "predicate"  # sorts of rows
_COUNTED = ("seen", "true", "faults", "timed")  # of an event, `seen` are its pairs
_COUNTS = pa.schema(
    [
        ("sort", pa.string()),
        ("name", pa.string()),
        *((name, pa.int64()) for name in _COUNTED),
        ("spent", pa.float64()),
    ]
)
_SAMPLE = "asked.parquet"


def match_sample(
    spark: SparkSession,
    stats: Stats,
    subscriptions: str | os.PathLike[str],
    *,
    operators: Operator | Iterable[Operator] = (),
    asked: int = ASKED,
    work: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Stats:
    """Add to statistics what subscriptions match of the sample.

    If they call operators, at most `asked` events are matched, and the result also has estimates of
    these predicates: how often each is true, and how long a call takes. The other arguments are
    those of `backtest`.
    """
    with ExitStack() as held:
        folders = held.enter_context(held_folders(subscriptions))
        # Here a missing operator is noticed, and checksums are compared.
        known = SavedSubscriptions.open(folders, pack_operators(operators))
        held.callback(known.close)
        events = stats.sample.slice(0, asked) if known.calls else stats.sample
        _check(known.engines[0], events)
        at_once = _AT_ONCE if known.calls else max(1, -(-events.num_rows // cores(spark)))
        starts = tuple(range(0, events.num_rows, at_once))
        with scratch_folder(None if work is None else Path(work).absolute()) as above:
            with (
                os_errors_as(StoreError, f"{above}: cannot be written to"),
                atomic_file(above / _SAMPLE) as file,
            ):
                parquet.write_table(events, file)
            task = _SampleTask(
                known.folders, known.operators, str(above / _SAMPLE), starts, at_once
            )
            rows = task.collected(spark, progress)
        matched, predicates = _summed(rows, known.engines)
        return replace(stats, subscriptions=matched, predicates=predicates)


def _check(engine: Engine, events: pa.Table) -> None:
    valid = validate(engine.encoder, events)
    if valid.refused and not len(valid):
        raise SparkError(
            "the subscriptions are for another schema: none of the sampled events is consistent "
            f"with it; the first: {valid.refused[0].reason}"
        )


class _SampleTask(NamedTuple):
    """What all tasks need. A task is a part of the sample and a shard."""

    folders: tuple[str, ...]  # of shards
    operators: bytes
    events: str  # a file
    starts: tuple[int, ...]  # of the parts
    at_once: int

    def collected(self, spark: SparkSession, progress: Progress | None) -> list[Any]:
        """All events and predicates, and the subscriptions that matched most."""
        tasks = len(self.folders) * len(self.starts)
        if not tasks:
            return []
        counts = task_frame(spark, tasks, self.run, _COUNTS)
        return run_job(spark, _added_up(counts).collect, tasks, progress)

    def run(self, number: int) -> Iterator[pa.RecordBatch]:
        """Counts of a part of the sample, to be added up."""
        shard, part = divmod(number, len(self.starts))
        start, folder = self.starts[part], self.folders[shard]
        engine = open_engine(folder, self.operators, shards=len(self.folders))
        table = parquet.read_table(self.events).slice(start, self.at_once)
        valid = validate(engine.encoder, table)
        if not len(valid):
            return
        found, measured = match_and_measure(engine, valid.batch(engine.encoder))
        names = [str(start + row) for row in valid.rows.tolist()]
        yield _rows(_EVENT, names, np.diff(found.starts))
        _, firsts, counts = np.unique(found.slots, return_index=True, return_counts=True)
        ids = found.subscriptions[firsts].tolist()
        texts = np.array([isinstance(id, str) for id in ids], np.bool_)
        for sort, which in ((_TEXT, texts), (_NUMBER, ~texts)):
            chosen = np.flatnonzero(which)
            yield _rows(sort, [str(ids[at]) for at in chosen.tolist()], counts[chosen])
        yield _rows(_PREDICATE, list(measured), *zip(*measured.values(), strict=True))


def _rows(sort: str, names: list[str], *counts: Any) -> pa.RecordBatch:
    given = [np.asarray(each) for each in counts]
    given += [np.zeros(len(names), np.int64)] * (len(_COUNTED) + 1 - len(given))
    columns = [[sort] * len(names), names, *given]
    arrays = [pa.array(each, kind) for each, kind in zip(columns, _COUNTS.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_COUNTS)


def _added_up(counts: DataFrame) -> DataFrame:
    """The sums by name; only the first few subscriptions."""
    from pyspark.sql import Window, functions

    sums = [functions.sum(name).alias(name) for name in (*_COUNTED, "spent")]
    added = counts.groupBy("sort", "name").agg(*sums)
    order = Window.partitionBy("sort").orderBy(functions.desc("seen"), "name")
    ranked = added.withColumn("rank", functions.row_number().over(order))
    few = functions.col("rank") <= MOST
    return ranked.where(functions.col("sort").isin(_EVENT, _PREDICATE) | few)


def _summed(
    rows: Iterable[Any], engines: Sequence[Engine]
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
    counts = {
        row["name"]: PredicateCounts(**{name: row[name] for name in PredicateCounts._fields})
        for row in sorted(of.get(_PREDICATE, []), key=lambda row: row["name"])
    }
    return matched, _predicates(counts)


def _predicates(counts: Mapping[str, PredicateCounts]) -> dict[str, PredicateStats]:
    """Those that gave an answer, and whose time is known."""
    return {
        text: PredicateStats(each.true / each.seen, each.spent / 1000 / each.timed, each.seen,
                             each.faults)
        for text, each in counts.items()
        if each.seen and each.timed
    }  # fmt: skip


def _condition(engines: Sequence[Engine], id: int | str) -> str | None:
    return next((engine.condition(id) for engine in engines if id in engine), None)
