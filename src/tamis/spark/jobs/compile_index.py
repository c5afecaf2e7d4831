"""From conditions to versions of an index: parsing and compiling as a Spark job.

A task compiles one shard: an engine with the subscriptions of the shard, saved into the draft of a
version under a name of its own. The driver renames the shards that count, and publishes the version
when all of them are there.

From a log, a shard is compiled from that of the previous version and the changes since, if there
is a previous version with as many shards and the same modules; else from all changes of the log.
Refused conditions are kept beside the shard, and tried again for the next version. A condition is
read by the schema of its number, and a version has the schema of its own.

With statistics of past events, clauses are placed for these, and schedulers start from their
estimates. Otherwise the last events of the log are used.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine import Engine
from tamis.errors import SparkError, counted
from tamis.model.schema import Schema
from tamis.spark.jobs.compile_shard import (
    COMPILED,
    NO_SHARD,
    SHOWN,
    CompiledShard,
    LogShardTask,
    RowShardTask,
    shard_name,
)
from tamis.spark.runtime.job_runner import Progress, run_job, task_frame
from tamis.store.changes import RENEW, SUBSCRIBE, UPDATE
from tamis.store.log import Log
from tamis.store.stats import Stats
from tamis.store.version import OF, Shard, Version, describe
from tamis.store.versions import Versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SHARD = 3_000_000  # subscriptions: about a gigabyte of index
_REASONS = 5  # that an error shows
_MORE, _LESS = 2, 4  # times as many or as few: then all shards are compiled anew


class CompiledIndex(NamedTuple):
    """A version, and the conditions that it refused."""

    version: Version
    subscriptions: int
    refused: int
    reasons: list[str]  # some of them


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
    strict: bool = False,
    some: bool = False,
) -> CompiledIndex:
    """A version of all subscriptions that are live at a sequence number, by default the log's end.

    `stats` is a folder of statistics of past events that all workers can see. Workers import
    `modules`, which declare the operators that conditions call. If a condition is wrong, `strict`
    publishes nothing; if all are wrong, so does `some`.
    """
    versions.check_log(log)
    at = log.end if sequence is None else sequence
    schema = log.schema_at(at)
    where = _stats_folder(stats, schema)
    before = versions.at(at)
    if before is not None and before.sequence == at:
        _check_same(before, shards, stats, modules)
        return _published(versions, at)
    asked = shards is not None
    if shards is None:
        shards = shards_at(log, at, before)
    base = before if before is not None and _goes_on(before, shards, modules) else None
    folders = None if base is None else [str(each) for each in base.shard_folders]
    since = 0 if base is None else base.sequence
    how = {
        "modules": sorted(modules),
        "asked": asked or (before is not None and bool(before.made.get("asked"))),
        "log": base is None or bool(base.made.get("log", True)),
        OF: log.identity,
    }
    with versions.publish(at, new=asked or stats is not None) as draft:
        task = LogShardTask(
            str(log.folder), str(draft), since, at, shards, folders, where, tuple(modules)
        )
        compiled = _made(spark, task, shards, progress)
        _check_refusals(compiled, strict=strict, some=some)
        _describe(draft, compiled, at, schema.to_dict(), log.ids, how)
    return _published(versions, at)


def compile_conditions(
    conditions: DataFrame,
    versions: Versions,
    schema: Schema,
    *,
    sequence: int = 0,
    shards: int | None = None,
    stats: str | os.PathLike[str] | None = None,
    modules: Sequence[str] = (),
    strict: bool = False,
) -> CompiledIndex:
    """A version of the subscriptions of a DataFrame with `id`, `condition` and perhaps `language`.

    `stats` is a folder of statistics of past events that all workers can see. Workers import
    `modules`, which declare the operators that conditions call. Rows without an id are refused. So
    is a sequence number that has a version already. If all conditions are wrong, nothing is
    published; if one is, `strict` publishes nothing.
    """
    where = _stats_folder(stats, schema)
    ids = _kind(conditions)
    if shards is None:
        shards = shards_of(conditions.count())
    how = {"modules": sorted(modules), "asked": True, "log": False}
    with versions.publish(sequence, new=True) as draft:
        document = json.dumps(schema.to_dict())
        task = RowShardTask(document, str(draft), shards, where, tuple(modules))
        compiled = task.run(conditions)
        _check_refusals(compiled, strict=strict, some=True)
        _describe(draft, compiled, sequence, schema.to_dict(), ids, how)
    return _published(versions, sequence)


def _check_refusals(made: Sequence[CompiledShard], *, strict: bool, some: bool) -> None:
    """Raise if conditions were refused and therefore nothing is to be published."""
    refused, left = sum(each.refused for each in made), sum(each.subscriptions for each in made)
    if refused and (strict or (some and not left)):
        of = f"of {counted(refused + left, 'condition')}"
        lines = [f"nothing was published: {counted(refused, f'{of} is', f'{of} are')} wrong"]
        lines += [f"  {reason}" for each in made for reason in each.reasons][:_REASONS]
        if refused > _REASONS:
            lines.append(f"  and {refused - _REASONS:,} more")
        raise SparkError("\n".join(lines))


def _stats_folder(stats: str | os.PathLike[str] | None, schema: Schema) -> str | None:
    """A folder of statistics, tried on an empty engine: a task would refuse it late."""
    if stats is None:
        return None
    Engine(schema).expect(Stats.open(stats))
    return str(Path(stats).absolute())


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


def _goes_on(before: Version, shards: int, modules: Sequence[str]) -> bool:
    """Whether a version can be compiled from the previous one.

    Not if that had other operators, unless there is no log to compile from.
    """
    if len(before.shards) != shards:
        return False
    return not before.made.get("log", True) or before.made.get("modules") == sorted(modules)


def _check_same(
    version: Version,
    shards: int | None,
    stats: str | os.PathLike[str] | None,
    modules: Sequence[str],
) -> None:
    """Refuse a version that exists already, if it differs from the version that is wanted."""
    made, refused, wish = version.made, int(version.made.get("refused", 0)), None
    if stats is not None:
        wish = "laid out for statistics"
    elif shards not in (None, len(version.shards)):
        wish = f"in {counted(shards or 0, 'shard')}, instead of {len(version.shards)}"
    elif refused and made.get("modules") != sorted(modules):
        many = counted(refused, "condition was refused", "conditions were refused")
        wish = f"with other modules: {many} with those it knew"
    if wish is not None:
        raise SparkError(
            f"{version.folder}: there is a version of sequence number {version.sequence} already, "
            f"and it cannot be made again {wish}; name another folder for it, remove the version, "
            "or compile when the log has gone on"
        )


def _published(versions: Versions, sequence: int) -> CompiledIndex:
    """A version, as its document describes it."""
    version = versions.at(sequence)
    assert version is not None
    known = sum(each.subscriptions for each in version.shards)
    made = version.made
    return CompiledIndex(version, known, int(made.get("refused", 0)), made.get("reasons", []))


def _describe(
    draft: Path,
    made: Sequence[CompiledShard],
    sequence: int,
    schema: dict[str, Any],
    ids: str,
    how: dict[str, Any],
) -> None:
    """Name the shards, and write the description of the version."""
    shards = []
    for each in made:
        if each.shard != NO_SHARD:
            (draft / each.folder).rename(draft / shard_name(each.shard))
            shards.append(Shard(shard_name(each.shard), each.subscriptions, each.bytes))
    named = {shard.folder for shard in shards}
    for left in draft.iterdir():  # by attempts that failed or came late
        if left.name not in named:
            shutil.rmtree(left, ignore_errors=True)
    reasons = [reason for each in made for reason in each.reasons][:SHOWN]
    refusals = {"refused": sum(each.refused for each in made), "reasons": reasons}
    describe(draft, sequence=sequence, schema=schema, ids=ids, shards=shards, made=how | refusals)


def _made(
    spark: SparkSession, task: LogShardTask, shards: int, progress: Progress | None
) -> list[CompiledShard]:
    frame = task_frame(spark, shards, task.run, COMPILED)

    def run() -> list[CompiledShard]:
        found = []
        for row in frame.toLocalIterator(prefetchPartitions=True):
            found.append(CompiledShard(**row.asDict()))
            if progress is not None:
                progress(len(found), shards)
        return sorted(found)

    return run_job(spark, run)


# -- how many shards -------------------------------------------------------------------------------


def shards_of(subscriptions: int) -> int:
    """How many shards so many subscriptions should have.

    >>> shards_of(0), shards_of(SHARD), shards_of(SHARD + 1)
    (1, 1, 2)
    """
    return max(1, -(-subscriptions // SHARD))


def shards_at(log: Log, at: int, before: Version | None) -> int:
    """How many shards a version should have.

    As many as the previous one, so that it can be compiled from that; unless far more or fewer are
    needed, and the user has not asked for this number.
    """
    changed = log.counts(0 if before is None else before.sequence, at)[1]
    if before is None:
        # There are at most as many subscriptions as changes, whose number is known.
        return 1 if changed <= SHARD else shards_of(live_count(log.changes(0, at)))
    now = len(before.shards)
    if before.made.get("asked") or not before.made.get("log", True):
        return now
    known = sum(each.subscriptions for each in before.shards)
    if not (_off(shards_of(known + changed), now) or _off(shards_of(known - changed), now)):
        return now
    wanted = shards_of(live_count(log.changes(0, at)))
    return wanted if _off(wanted, now) else now


def live_count(changes: pa.Table) -> int:
    """How many subscriptions are live after all of the changes, as `Log.changes` gives them."""
    said = changes.filter(pc.not_equal(changes["kind"], RENEW)).select(["sequence", "id", "kind"])
    if not said.num_rows:
        return 0
    last = said.group_by("id").aggregate([("sequence", "max")])["sequence_max"]
    at = np.searchsorted(np.asarray(said["sequence"]), np.asarray(last))
    made = pc.is_in(said["kind"].take(pa.array(at)), pa.array([SUBSCRIBE, UPDATE]))
    return int(pc.sum(made).as_py())


def _off(wanted: int, now: int) -> bool:
    return wanted >= _MORE * now or wanted * _LESS <= now
