"""`gather_stats`: statistics of past events, in one pass.

Workers read and validate the events, and hand the values of each attribute to Spark, whose own
aggregates count them: distinct values (HyperLogLog), quantiles (KLL) and frequent values are
sketches, small however many events there are. Each worker also writes the events that may get into
the sample to a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tamis.encode.encoder import Encoder
from tamis.errors import SparkError
from tamis.model.schema import Schema
from tamis.spark.events.past_events import PastEvents, past_events
from tamis.spark.runtime.job_runner import Progress, cores, run_job, task_frame
from tamis.spark.runtime.scratch_folder import scratch_folder
from tamis.spark.runtime.worker_cache import schema_document
from tamis.spark.stats.attribute_values import in_order, value
from tamis.spark.stats.value_task import ALL, PART, RANK, VALUES, ValueTask, joined_events, tracked
from tamis.store.log import Log
from tamis.store.stats import SHARES, AttributeStats, Stats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE = 4096  # events
FREQUENT = 10  # values that are listed
_SPARE = 4  # candidates for each event of the sample, since some are dead
_HLL = 14  # 2^14 registers: distinct values to within 2 %
_KLL = 1_000  # quantiles to within half a percent of the values
_TRACKED = 10_000  # values whose frequencies are followed
_RANKS = 1 << 64
_QUANTILES = ", ".join(f"{share}D" for share in (0, *SHARES, 1))
# In the order of `_Counted`. Without values there is no sketch to read.
_AGGREGATES = {
    "events": "sum(events)",
    "rest": "sum(rest)",
    "distinct": f"""case when count(code) > 0 then hll_sketch_estimate(hll_sketch_agg(code, {_HLL}))
        when count(text) > 0 then hll_sketch_estimate(hll_sketch_agg(xxhash64(text), {_HLL}))
        end""",  # by hash, as the sketch leaves out texts that are empty
    "quantiles": f"""if(count(code) = 0, null, kll_sketch_get_quantile_bigint(
        kll_sketch_agg_bigint(code, {_KLL}), array({_QUANTILES})))""",
    "low": "min(text)",
    "high": "max(text)",
    "codes": f"approx_top_k(code, {FREQUENT}, {_TRACKED}) filter (where code is not null)",
    "texts": f"approx_top_k(text, {FREQUENT}, {_TRACKED}) filter (where text is not null)",
    "parts": f"collect_list(text) filter (where attribute = {PART})",
}


def gather_stats(
    spark: SparkSession,
    events: str | os.PathLike[str] | Log | PastEvents,
    schema: Schema | None = None,
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    work: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Stats:
    """Statistics of all events of parquet files, or of a log.

    `schema` is that of the events in files; a log has its own. `sample` events are drawn at random,
    the same ones for the same `seed`. The other arguments are those of `backtest`.

    Rows that break a rule of the schema are counted as dead, and are not part of the rest. If more
    than three in four are dead, the sample may be too small. `match_sample` adds which
    subscriptions match it.
    """
    if sample < 1:
        raise SparkError(f"a sample has one event or more, got {sample}")
    there = opened_events(events, schema)
    source = there.shares(cores(spark))
    with scratch_folder(None if work is None else Path(work).absolute()) as above:
        total = sum(source.rows(share) for share in range(len(source.shares)))
        limit = min(_RANKS, _SPARE * sample * _RANKS // max(1, total)) - 1
        task = ValueTask(source, schema_document(there.schema), sample, limit, seed, str(above))
        counted = _aggregated(spark, task, progress)
        drawn = _drawn(above, counted.get(PART, _Counted()).parts, sample)
        every = counted.get(ALL, _Counted())
        first, last = there.ends()
        return Stats(
            of=there.where if isinstance(events, Log | PastEvents) else os.fspath(events),
            schema=there.schema.to_dict(),
            events=every.events,
            dead=every.rest,
            attributes=dict(_attributes(Encoder(there.schema), counted)),
            first=first,
            last=last,
            reason=every.low,
            seed=seed,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            sample=drawn,
        )


def opened_events(
    events: str | os.PathLike[str] | Log | PastEvents, schema: Schema | None
) -> PastEvents:
    """The events; mistakes are refused here, before Spark is started, which takes a while."""
    if isinstance(events, PastEvents):
        return events
    if isinstance(events, Log):
        if schema is not None:
            raise SparkError("schema is for events in files; a log has its own")
        return past_events(events, Schema.from_dict(events.schema))
    if schema is None:
        raise SparkError("events in files need their schema: schema=…")
    found = past_events(events, schema)
    found.sample()  # refuses columns that do not fit
    return found


# -- counts ----------------------------------------------------------------------------------------


class _Counted(NamedTuple):
    """The counts of an attribute, in codes or in texts; or of all events."""

    events: int = 0
    rest: int = 0
    distinct: int = 0
    quantiles: Sequence[int] | None = None  # and the ends
    low: str | None = None
    high: str | None = None
    codes: Sequence[tuple[int, int]] = ()  # the most frequent, and how often each came
    texts: Sequence[tuple[str, int]] = ()
    parts: Sequence[str] = ()


def _aggregated(
    spark: SparkSession, task: ValueTask, progress: Progress | None
) -> dict[int, _Counted]:
    """All counts, by attribute."""
    from pyspark.sql import functions

    tasks = len(task.events.shares)
    if not tasks:
        return {}
    sums = [functions.expr(sql).alias(name) for name, sql in _AGGREGATES.items()]
    counted = task_frame(spark, tasks, task.run, VALUES).groupBy("attribute").agg(*sums)
    _unwarned(spark)
    rows = run_job(spark, counted.collect, None, progress)
    return {row["attribute"]: _Counted(*row[1:]) for row in rows}


def _unwarned(spark: SparkSession) -> None:
    """Swallow the warning about Java after 11 that the library of sketches prints.

    It prints it once, on the terminal of the driver, when it first allocates memory.
    """
    try:
        java: Any = spark._jvm
        terminal = java.System.err
    except Exception:  # noqa: BLE001 - with Spark Connect the server prints it
        return
    java.System.setErr(java.java.io.PrintStream(java.java.io.ByteArrayOutputStream()))
    try:
        java.org.apache.datasketches.memory.WritableMemory.allocate(8)
    finally:
        java.System.setErr(terminal)


def _attributes(
    encoder: Encoder, counted: Mapping[int, _Counted]
) -> Iterator[tuple[str, AttributeStats]]:
    """The statistics of each attribute, in values."""
    events = counted.get(ALL, _Counted()).events
    for at, name in enumerate(tracked(encoder)):
        codec, count = encoder.codecs[encoder.positions[name]], counted.get(at, _Counted())
        stats = AttributeStats(codec.domain.kind, count.events, count.rest)
        if not codec.domain.hashable:
            yield name, stats
            continue
        found = [(value(codec, each), times) for each, times in count.codes or count.texts]
        found.sort(key=lambda each: (-each[1], each[0]))
        frequent = tuple((each, times / events) for each, times in found)
        stats = replace(stats, distinct=count.distinct, frequent=frequent)
        if in_order(codec) and count.events:
            ends = count.quantiles or (count.low or "", count.high or "")
            low, *within, high = (value(codec, each) for each in ends)
            stats = replace(stats, low=low, high=high, quantiles=tuple(within))
        yield name, stats


# -- the sample ------------------------------------------------------------------------------------


def _drawn(work: Path, names: Sequence[str], most: int) -> pa.Table:
    """The events of the lowest ranks of all tasks; by rank, so in random order."""
    tables = [parquet.read_table(work / name) for name in names]
    if not tables:
        return pa.table({})
    table = joined_events(tables)
    ranks = np.asarray(table[RANK])
    order = pa.array(np.argsort(ranks)[:most])
    return table.drop_columns([RANK]).take(order).combine_chunks()
