"""Compares the answers of Spark jobs with those of the engine, row by row, at a large size.

The papers' workloads, with enough events for millions of pairs. The jobs: files matched by workers
(written, and counted only), `tamis.spark.match` over a DataFrame and over a stream, and
`format("tamis")` over a log.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from tamis import workload
from tamis.engine import Engine
from tamis.errors import TamisError
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.bench.spark.data import SPARK
from tamis.lab.results.records import Figure, Goal
from tamis.match.capabilities import settle
from tamis.model.schema import Schema
from tamis.store import Log, Versions, subscribe
from tamis.workload import Workload
from tamis.workload.tables import conditions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Int64s = NDArray[np.int64]
VARIANTS = ("lesubscribe", "topss-w4", "dexin", "gryphon")
_EVENT = "event_id"
_FILES = 4
_TRIED = 200  # events that estimate the pairs of an event
_AT_ONCE = 4096  # events
_NONE = Goal(0.0, at_most=True)


class _AnswerCase(NamedTuple):
    """A workload in files, and its pairs."""

    made: Workload
    engine: Engine
    folder: Path
    events: pa.Table
    pairs: Int64s  # (event, subscription), in order


def figures(setting: BenchSetting, spark: SparkSession, folder: Path) -> Iterator[Figure | str]:
    """For each workload and each job, the number of pairs that only one side has."""
    for name in VARIANTS:
        title = workload.variant(name).title
        yield f"{title}: data"
        case = _case(setting, name, folder / name)
        for what, run in JOBS.items():
            yield f"{title}: {what}"
            wrong = float(run(spark, case))
            facts = {**case.made.parameters, "events": case.events.num_rows}
            facts["pairs"] = len(case.pairs)
            full = f"{title}, {len(case.engine):,} subscriptions, {len(case.pairs):,} pairs: {what}"
            yield Figure(SPARK, full, wrong, "differ", wrong, wrong, 1, _NONE, facts)
        shutil.rmtree(folder / name)


def _case(setting: BenchSetting, name: str, folder: Path) -> _AnswerCase:
    made = workload.make_variant(name, setting.answers_subscriptions, seed=setting.seed)
    engine = Engine(Schema.from_dict(made.schema))
    engine.subscribe_table(made.subscriptions)
    each = max(engine.match_batch(made.events(_TRIED)).total / _TRIED, 1e-3)
    settle(engine.matcher)
    many = max(_FILES, int(setting.answers_pairs / each))
    drawn = made.events(many)
    events = drawn.append_column(_EVENT, pa.array(np.arange(many)))
    (folder / "events").mkdir(parents=True)
    for file in range(_FILES):
        first, last = many * file // _FILES, many * (file + 1) // _FILES
        part = events.slice(first, last - first)
        parquet.write_table(part, folder / "events" / f"{file}.parquet", row_group_size=1 << 15)
    engine.save(folder / "engine")
    pairs = [np.zeros((0, 2), np.int64)]
    for first in range(0, many, _AT_ONCE):
        found = engine.match_batch(drawn.slice(first, _AT_ONCE))
        pairs.append(np.stack((found.events + first, found.subscriptions), axis=1))
    return _AnswerCase(made, engine, folder, drawn, _in_order(np.concatenate(pairs)))


def _in_order(pairs: Int64s) -> Int64s:
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _differ(case: _AnswerCase, found: pa.Table, first: int = 0) -> int:
    """The number of pairs that only one side has. A pair that occurs twice counts once."""
    columns = [np.asarray(found[name].combine_chunks()) for name in found.column_names[:2]]
    mine = _in_order(np.stack((columns[0] - first, columns[1]), axis=1))
    if mine.shape == case.pairs.shape and bool((mine == case.pairs).all()):
        return 0
    both = np.concatenate((mine, case.pairs))
    _, counts = np.unique(both, axis=0, return_counts=True)
    return int(np.count_nonzero(counts != 2))


# -- the jobs --------------------------------------------------------------------------------------


def _files(spark: SparkSession, case: _AnswerCase) -> int:
    from tamis.spark.jobs.match_files import match_files

    out = case.folder / "files"
    match_files(spark, case.folder / "events", case.folder / "engine", out, id=_EVENT)
    return _differ(case, parquet.read_table(out / "notifications"))


def _counted(spark: SparkSession, case: _AnswerCase) -> int:
    from tamis.spark.jobs.match_files import match_files

    done = match_files(spark, case.folder / "events", case.folder / "engine")
    return abs(done.pairs - len(case.pairs))


def _transformed(spark: SparkSession, case: _AnswerCase) -> int:
    frame = spark.read.parquet(str(case.folder / "events")).transform(_match(case))
    out = case.folder / "batch"
    frame.write.parquet(str(out))
    return _differ(case, parquet.read_table(out))


def _streamed(spark: SparkSession, case: _AnswerCase) -> int:
    events = str(case.folder / "events")
    stream = spark.readStream.schema(spark.read.parquet(events).schema)
    frame = stream.option("maxFilesPerTrigger", 1).parquet(events).transform(_match(case))
    return _differ(case, _written(spark, frame, case.folder / "stream"))


def _logged(spark: SparkSession, case: _AnswerCase) -> int:
    from tamis.spark.jobs.compile_index import compile_log

    there = case.folder
    log = Log.create(there / "log", case.made.schema, ids="int64")
    table = case.made.subscriptions
    log.change(subscribe(table["id"].to_pylist(), conditions(table).to_pylist()))
    compile_log(spark, log, Versions(there / "index"))
    first = log.end
    for at in range(0, case.events.num_rows, 1 << 15):
        log.publish(case.events.slice(at, 1 << 15))
    frame = (
        spark.readStream.format("tamis")
        .option("index", str(there / "index"))
        .load(str(there / "log"))
    )
    return _differ(case, _written(spark, frame, there / "notified"), first)


JOBS: dict[str, Callable[[SparkSession, _AnswerCase], int]] = {
    "files, written": _files,
    "files, counted": _counted,
    "a DataFrame": _transformed,
    "a stream": _streamed,
    "a log": _logged,
}
STEPS = len(VARIANTS) * (1 + 2 * len(JOBS))


def _match(case: _AnswerCase) -> Any:
    from tamis.spark import match

    return match(case.folder / "engine", id=_EVENT)


def _written(spark: SparkSession, frame: DataFrame, out: Path) -> pa.Table:
    """The output of a stream that has read everything."""
    from tamis.replay.manifests import manifests

    query = (
        frame.writeStream.format("tamis_notifications")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out / "found"))
    )
    query.awaitTermination()
    if query.exception() is not None:
        raise TamisError(f"the stream failed: {query.exception()}")
    found = out / "found"
    named = [
        found / part["folder"] / part["name"]
        for manifest in manifests(found)
        for part in manifest["parts"]
        if part["folder"] == "notifications"
    ]
    tables = [parquet.read_table(path) for path in named]
    return pa.concat_tables(tables) if tables else pa.table({_EVENT: [], "subscription": []})
