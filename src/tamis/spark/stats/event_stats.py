"""`gather`: statistics of past events, in one pass over them.

Workers read the events, part the good ones from the dead, and hand the values of each attribute to
Spark, whose own aggregates count them: distinct values (HyperLogLog), quantiles (KLL) and frequent
values are sketches, small however many events there are. Each worker also keeps the events that may
get into the sample, and writes them to a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tamis.encode.codes import OpaqueCodec
from tamis.encode.encoder import Encoder
from tamis.errors import SparkError
from tamis.model.schema import Schema
from tamis.replay.event_source import Events, LogEvents, Logged
from tamis.replay.row_groups import found, shares
from tamis.spark.jobs.parquet_columns import dealt, layouts
from tamis.spark.runtime.job_runner import Progress, cores, numbered, watched
from tamis.spark.runtime.scratch_folder import scratch
from tamis.spark.stats.attribute_values import in_order, value
from tamis.spark.stats.value_task import ALL, HANDED, PART, RANK, Gathering, together, tracked
from tamis.spark.stream.log_source import parts
from tamis.store.log import Log
from tamis.store.segments import EVENTS, appended
from tamis.store.stats import SHARES, AttributeStats, LogPosition, Stats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE = 4096  # events
FREQUENT = 10  # values that are told of
_TASKS = 4  # a core: the last ones to end leave the others idle for a short while only
_SPARE = 4  # times as many events as the sample has are looked at, since some are dead
_HLL = 14  # 2^14 registers: distinct values to within 2 %
_KLL = 1_000  # quantiles to within half a percent of the values
_TRACKED = 10_000  # values whose frequencies are followed
_RANKS = 1 << 64
_QUANTILES = ", ".join(f"{share}D" for share in (0, *SHARES, 1))
# In the order of `_Counted`. Of no values at all there is no sketch that could be read.
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


def gather(
    spark: SparkSession,
    events: str | os.PathLike[str] | Log,
    schema: Schema | None = None,
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    work: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Stats:
    """Statistics of all events of parquet files, or of a log.

    Args:
        spark: the session, classic or of Connect.
        events: a folder of parquet files, a pattern that names them, or one file; or a log.
        schema: of the events in files; a log has its own.
        sample: so many events are drawn at random, the same ones for the same `seed`.
        seed: another one draws other events.
        work: a folder that all workers can write to, for the time of the job; on one machine any.
        progress: is called with how many tasks are done, and how many there are.

    Rows that break a rule of the schema are counted as dead, and have no part in the rest. Where
    more than three in four are dead, the sample may be smaller than it should be. `asking.ask` adds
    what subscriptions match of it.
    """
    if sample < 1:
        raise SparkError(f"a sample has one event or more, got {sample}")
    check_given(events, schema)
    known, dealt_out = _dealt(spark, events, schema)
    with scratch(None if work is None else Path(work).absolute()) as above:
        total = sum(dealt_out.rows(share) for share in range(len(dealt_out.shares)))
        limit = min(_RANKS, _SPARE * sample * _RANKS // max(1, total)) - 1
        document = json.dumps(known.to_dict())
        job = Gathering(dealt_out, document, sample, limit, seed, str(above))
        counted = _aggregated(spark, job, progress)
        drawn = _drawn(above, counted.get(PART, _Counted()).parts, sample)
        every = counted.get(ALL, _Counted())
        first, last = _span(events) if isinstance(events, Log) else (None, None)
        return Stats(
            of=str(events.folder) if isinstance(events, Log) else os.fspath(events),
            schema=known.to_dict(),
            events=every.events,
            dead=every.rest,
            attributes=dict(_attributes(Encoder(known), counted)),
            first=first,
            last=last,
            reason=every.low,
            seed=seed,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            sample=drawn,
        )


def check_given(events: str | os.PathLike[str] | Log, schema: Schema | None) -> None:
    """Refuse what can be seen to be wrong before Spark is started, which takes a while."""
    if isinstance(events, Log):
        if schema is not None:
            raise SparkError("schema is for events in files; a log has its own")
    elif schema is None:
        raise SparkError("events in files need their schema: schema=…")
    else:
        layouts(found(events), schema)


def _dealt(
    spark: SparkSession, events: str | os.PathLike[str] | Log, schema: Schema | None
) -> tuple[Schema, Events]:
    """The schema, and the events in shares."""
    if isinstance(events, Log):
        tasks = _TASKS * cores(spark)
        layout = Logged(json.dumps(events.schema), ())
        ranges = tuple(parts(events, 0, events.end, tasks))
        return Schema.from_dict(events.schema), LogEvents(str(events.folder), layout, ranges)
    assert schema is not None
    there = found(events)
    return schema, dealt(there, layouts(there, schema), shares(there.groups, cores(spark)))


def _span(log: Log) -> tuple[LogPosition | None, LogPosition | None]:
    """The first and the last event of a log."""
    segments = [each for each in log.boundaries() if each.kind == EVENTS]
    if not segments:
        return None, None
    ends = []
    for sequence in (segments[0].first, segments[-1].end - 1):
        _, table = next(log.events(sequence, sequence + 1))
        ends.append(LogPosition(sequence, appended(table).isoformat()))
    return ends[0], ends[1]


# -- what Spark counts -----------------------------------------------------------------------------


class _Counted(NamedTuple):
    """What Spark counted of an attribute, in codes or in texts; or of all events."""

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
    spark: SparkSession, job: Gathering, progress: Progress | None
) -> dict[int, _Counted]:
    """All that was counted, by attribute."""
    from pyspark.sql import functions

    if not job.tasks:
        return {}

    sums = [functions.expr(sql).alias(name) for name, sql in _AGGREGATES.items()]
    counted = numbered(spark, job.tasks, job.run, HANDED).groupBy("attribute").agg(*sums)
    _unwarned(spark)
    rows = watched(spark, counted.collect, None, progress)
    return {row["attribute"]: _Counted(*row[1:]) for row in rows}


def _unwarned(spark: SparkSession) -> None:
    """Have the library of sketches say to nobody what it says of every Java after 11.

    It says so once, on the terminal of whoever runs the driver, when memory is first asked for.
    """
    try:
        java: Any = spark._jvm
        terminal = java.System.err
    except Exception:  # noqa: BLE001 - with Spark Connect it is said on the server
        return
    java.System.setErr(java.java.io.PrintStream(java.java.io.ByteArrayOutputStream()))
    try:
        java.org.apache.datasketches.memory.WritableMemory.allocate(8)
    finally:
        java.System.setErr(terminal)


def _attributes(
    encoder: Encoder, counted: Mapping[int, _Counted]
) -> Iterator[tuple[str, AttributeStats]]:
    """What was counted of each attribute, in values."""
    events = counted.get(ALL, _Counted()).events
    for at, name in enumerate(tracked(encoder)):
        codec, told = encoder.codecs[encoder.positions[name]], counted.get(at, _Counted())
        stats = AttributeStats(codec.domain.kind, told.events, told.rest)
        if isinstance(codec, OpaqueCodec):
            yield name, stats
            continue
        found = [(value(codec, each), count) for each, count in told.codes or told.texts]
        found.sort(key=lambda each: (-each[1], each[0]))
        frequent = tuple((each, count / events) for each, count in found)
        stats = replace(stats, distinct=told.distinct, frequent=frequent)
        if in_order(codec) and told.events:
            ends = told.quantiles or (told.low or "", told.high or "")
            low, *within, high = (value(codec, each) for each in ends)
            stats = replace(stats, low=low, high=high, quantiles=tuple(within))
        yield name, stats


# -- the sample ------------------------------------------------------------------------------------


def _drawn(work: Path, names: Sequence[str], most: int) -> pa.Table:
    """The events of the lowest ranks of all tasks, by rank, which is to say in no order."""
    tables = [parquet.read_table(work / name) for name in names]
    if not tables:
        return pa.table({})
    table = together(tables)
    ranks = np.asarray(table[RANK])
    order = pa.array(np.argsort(ranks)[:most])
    return table.drop_columns([RANK]).take(order).combine_chunks()
