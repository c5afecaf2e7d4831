"""From conditions to versions of an index: parsing and compiling as a Spark job.

A task makes one shard: an engine with the subscriptions that belong to it, saved into the folder
of a version that nobody sees yet. The driver publishes the version when all shards are there. A
task that is tried again writes the same folder anew.

From a log, a shard is made from that of the version before and what has changed since, if there is
such a version with as many shards; else from all changes of the log.

Where there are statistics of past events, clauses are laid out for these, and schedulers begin with
what they tell of operators. Else a log's last events have to do.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.engine import Engine
from tamis.engine.expecting import lay_out
from tamis.errors import SparkError
from tamis.model.schema import Schema
from tamis.spark import lines
from tamis.spark.files import laid_out
from tamis.spark.filling import fill
from tamis.spark.live import shard_of
from tamis.spark.tasks import JSON
from tamis.spark.watching import watched
from tamis.store.lives import Lives
from tamis.store.log import Log
from tamis.store.stats import Stats
from tamis.store.versions import Shard, Version, Versions, describe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARD = 3_000_000  # subscriptions: about a gigabyte of index
_SAMPLE = 4096  # events by which an engine decides where its clauses lie
_TOLD = 20  # refusals that a shard tells of
Progress = Callable[[int, int], object]


class Compiled(NamedTuple):
    """A version, and what was left out of it."""

    version: Version
    subscriptions: int
    refused: int
    reasons: list[str]  # some of them


class _Made(NamedTuple):
    """What became of a shard."""

    shard: int
    subscriptions: int
    bytes: int
    refused: int
    reasons: list[str]


def compile_log(
    spark: SparkSession,
    log: Log,
    versions: Versions,
    *,
    sequence: int | None = None,
    shards: int | None = None,
    stats: str | os.PathLike[str] | None = None,
    modules: Sequence[str] = (),
    progress: Progress | None = None,
) -> Compiled:
    """A version of all subscriptions that are live at a sequence number, the end of the log.

    `stats` is the folder of statistics of past events, which all workers can see. `modules` are
    those that declare operators which conditions call; workers import them.
    """
    past = _past(stats, Schema.from_dict(log.schema))
    at = log.end if sequence is None else sequence
    before = versions.at(at)
    if before is not None and before.sequence == at and shards in (None, len(before.shards)):
        return _as_is(before)
    if shards is None:
        shards = len(before.shards) if before is not None else _shards(log.counts(0, at)[1])
    again = before is not None and len(before.shards) == shards
    folders = [str(each) for each in before.shard_folders] if again and before else None
    since = before.sequence if again and before else 0

    with versions.publish(at) as draft:
        task = _FromLog(
            str(log.folder), str(draft), since, at, shards, folders, past, tuple(modules)
        )
        made = _made(spark, task, shards, progress)
        _describe(draft, made, at, log.schema, log.ids)
    return _published(versions, at, made)


def compile_conditions(
    conditions: DataFrame,
    versions: Versions,
    schema: Schema,
    *,
    sequence: int = 0,
    shards: int | None = None,
    stats: str | os.PathLike[str] | None = None,
    modules: Sequence[str] = (),
) -> Compiled:
    """A version of the subscriptions of a DataFrame with `id` and `condition`.

    `stats` is the folder of statistics of past events, which all workers can see. `modules` are
    those that declare operators which conditions call; workers import them.
    """
    past = _past(stats, schema)
    ids = _kind(conditions)
    if shards is None:
        shards = _shards(conditions.count())
    with versions.publish(sequence) as draft:
        document = json.dumps(schema.to_dict())
        task = _FromRows(document, str(draft), shards, past, tuple(modules))
        made = task.run(conditions)
        _describe(draft, made, sequence, schema.to_dict(), ids)
    return _published(versions, sequence, made)


def _past(stats: str | os.PathLike[str] | None, schema: Schema) -> str | None:
    """A folder of statistics, tried out on an empty engine: a task would refuse them late."""
    if stats is None:
        return None
    Engine(schema).expect(Stats.open(stats))
    return str(Path(stats).absolute())


def _shards(subscriptions: int) -> int:
    return max(1, -(-subscriptions // SHARD))


def _kind(conditions: DataFrame) -> str:
    from pyspark.sql.types import IntegerType, LongType, StringType

    named = {field.name: field.dataType for field in conditions.schema.fields}
    for name in ("id", "condition"):
        if name not in named:
            raise SparkError(
                f"conditions: expected the columns id and condition, got {', '.join(named)}"
            )
    if not isinstance(named["condition"], StringType):
        raise SparkError(f"condition is text, got {named['condition'].simpleString()}")
    if isinstance(named["id"], StringType):
        return "text"
    if isinstance(named["id"], LongType | IntegerType):
        return "int64"
    raise SparkError(f"id is text or a whole number, got {named['id'].simpleString()}")


def _as_is(version: Version) -> Compiled:
    return Compiled(version, sum(each.subscriptions for each in version.shards), 0, [])


def _published(versions: Versions, sequence: int, made: Sequence[_Made]) -> Compiled:
    version = versions.at(sequence)
    assert version is not None
    return Compiled(
        version,
        sum(each.subscriptions for each in made),
        sum(each.refused for each in made),
        [reason for each in made for reason in each.reasons][:_TOLD],
    )


def _describe(
    draft: Path, made: Sequence[_Made], sequence: int, schema: dict[str, Any], ids: str
) -> None:
    shards = [Shard(_name(each.shard), each.subscriptions, each.bytes) for each in made]
    describe(draft, sequence=sequence, schema=schema, ids=ids, shards=shards)


def _name(shard: int) -> str:
    return f"shard-{shard:04d}"


# -- in tasks --------------------------------------------------------------------------------------

_NOTHING = pa.table({"id": pa.array([], pa.int64()), "condition": pa.array([], pa.string())})
_MADE = "shard int, subscriptions long, bytes long, refused long, reasons array<string>"


class _FromLog(NamedTuple):
    """Makes shards of what a log says."""

    log: str
    draft: str
    since: int
    at: int
    shards: int
    folders: list[str] | None  # of the version before
    past: str | None  # of statistics
    modules: tuple[str, ...]  # that declare operators

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes numbers of shards, gives what became of them."""
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                yield _row(self._shard(shard))

    def _shard(self, shard: int) -> _Made:
        for module in self.modules:
            import_module(module)
        log = Log.open(self.log)
        engine = Engine(Schema.from_dict(log.schema))
        if self.folders is not None:
            engine = Engine.open(self.folders[shard])
        changes = log.changes(self.since, self.at)
        if self.shards > 1:
            mine = [shard_of(id, self.shards) == shard for id in changes["id"].to_pylist()]
            changes = changes.filter(pa.array(mine, pa.bool_()))
        lives = Lives()
        lives.fold(changes)
        if self.folders is not None:
            # Whatever was said of a subscription since then, what was there before has ended,
            # unless only its lease was renewed.
            kinds = np.asarray(changes["kind"].combine_chunks())
            ended = changes.filter(pa.array(kinds != "renew"))
            for id in set(ended["id"].to_pylist()):
                if id in engine:
                    engine.unsubscribe(id)
        rows, draft = lives.table(log.ids), Path(self.draft)
        if self.past is not None:
            return _saved(engine, rows, draft, shard, self.past)
        return _saved(engine, rows, draft, shard, None, _sample(log, self.at))


class _FromRows(NamedTuple):
    """Makes shards of the rows of a DataFrame."""

    schema: str
    draft: str
    shards: int
    past: str | None  # of statistics
    modules: tuple[str, ...]  # that declare operators

    def run(self, conditions: DataFrame) -> list[_Made]:
        """All shards."""
        from pyspark.sql.pandas.functions import arrow_udf
        from pyspark.sql.types import IntegerType

        shards = self.shards

        def shard(ids: pa.Array) -> pa.Array:
            return pa.array([shard_of(id, shards) for id in ids.to_pylist()], pa.int32())

        made_of: Any = arrow_udf  # what sort of function it is, it reads from the type hints
        numbered = made_of(shard, IntegerType())("id").alias("shard")
        grouped = conditions.select("id", "condition", numbered).groupBy("shard")
        task = self

        # Spark counts the parameters of what it is given, and would count `self` of a method.
        def one(table: pa.Table) -> pa.Table:
            return task.shard(table)

        rows = grouped.applyInArrow(one, _MADE).collect()
        made = {row["shard"]: _Made(**row.asDict()) for row in rows}
        # One that nobody belongs to is made here.
        schema = Schema.from_dict(json.loads(self.schema))
        for empty in set(range(shards)) - set(made):
            made[empty] = _saved(Engine(schema), _NOTHING, Path(self.draft), empty, self.past)
        return [made[each] for each in range(shards)]

    def shard(self, table: pa.Table) -> pa.Table:
        """One shard, of its rows."""
        for module in self.modules:
            import_module(module)
        engine = Engine(Schema.from_dict(json.loads(self.schema)))
        shard = table["shard"][0].as_py()
        rows = table.select(["id", "condition"])
        made = _saved(engine, rows, Path(self.draft), shard, self.past)
        return pa.Table.from_batches([_row(made)])


def _saved(
    engine: Engine,
    table: pa.Table,
    draft: Path,
    shard: int,
    past: str | None,
    sample: pa.Table | None = None,
) -> _Made:
    """Fill an engine and save it, in the place of what a task that died may have left.

    An engine that has seen no event has not decided where its clauses lie. Each worker would then
    do so for itself, and share nothing; so a sample of events goes through it before.
    """
    refused = fill(engine, table)
    if past is not None:
        engine.expect(Stats.open(past))
    elif sample is not None and not laid_out(engine):
        lay_out(engine, sample)
    folder = draft / _name(shard)
    shutil.rmtree(folder, ignore_errors=True)
    engine.save(folder)
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    reasons = [f"{table['id'][row].as_py()!r}: {reason}" for row, reason in refused[:_TOLD]]
    return _Made(shard, len(engine), size, len(refused), reasons)


def _sample(log: Log, end: int) -> pa.Table | None:
    """Some of the last events before a sequence number, as columns; None where there are none."""
    start = max(0, end - 4 * _SAMPLE)
    tables = [table for _, table in log.events(start, end)]
    found: list[pa.Table] = []
    for table in reversed(tables):
        found.append(table)
        if table.column_names == [JSON]:
            parsed = lines.reader(json.dumps(log.schema)).parse(table[JSON])
            found[-1] = parsed.events.filter(parsed.dead.is_null())
        if sum(each.num_rows for each in found) >= _SAMPLE:
            break
    if not found:
        return None
    return pa.concat_tables(found, promote_options="permissive").slice(0, _SAMPLE)


def _made(
    spark: SparkSession, task: _FromLog, shards: int, progress: Progress | None
) -> list[_Made]:
    numbers = spark.range(shards, numPartitions=shards)

    def run() -> list[_Made]:
        found = []
        rows = numbers.mapInArrow(task.run, _MADE).toLocalIterator(prefetchPartitions=True)
        for row in rows:
            found.append(_Made(**row.asDict()))
            if progress is not None:
                progress(len(found), shards)
        return sorted(found)

    return watched(spark, run)


def _row(made: _Made) -> pa.RecordBatch:
    types = pa.schema(
        [
            ("shard", pa.int32()),
            ("subscriptions", pa.int64()),
            ("bytes", pa.int64()),
            ("refused", pa.int64()),
            ("reasons", pa.list_(pa.string())),
        ]
    )
    return pa.RecordBatch.from_pylist([made._asdict()], types)
