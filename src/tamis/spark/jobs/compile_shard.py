"""Tasks that compile shards: engines that are saved into folders."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.engine import Engine
from tamis.engine.warm_start import plan_for
from tamis.errors import counted
from tamis.model.schema import Schema
from tamis.replay.event_source import event_sample
from tamis.replay.live_subscriptions import LANGUAGE, extend_engine, shard_of, subscribe_rows
from tamis.replay.log_events import LogEvents, log_shares
from tamis.spark.runtime.engine_folders import laid_out
from tamis.store.changes import ID_TYPES
from tamis.store.log import Log
from tamis.store.schema_records import SchemaRange
from tamis.store.stats import Stats
from tamis.store.subscription_snapshot import SubscriptionSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TAIL = 1 << 14  # sequence numbers at the end of a log, of which a sample is planned for
_SHARES = 3  # of that tail
SHOWN = 20  # refusals that a version keeps, to show them
_COLUMNS = ["id", "condition", "added", LANGUAGE]
_REFUSED = "refused.arrow"  # in the folder of a shard: these columns
NO_SHARD = -1  # of rows without an id
COMPILED = pa.schema(
    [
        ("shard", pa.int32()),
        ("folder", pa.string()),
        ("subscriptions", pa.int64()),
        ("bytes", pa.int64()),
        ("refused", pa.int64()),
        ("reasons", pa.list_(pa.string())),
    ]
)


class CompiledShard(NamedTuple):
    """A compiled shard."""

    shard: int
    folder: str  # of this attempt, in the draft
    subscriptions: int
    bytes: int
    refused: int
    reasons: list[str]


def shard_name(shard: int) -> str:
    return f"shard-{shard:04d}"


class LogShardTask(NamedTuple):
    """Compiles shards from the changes of a log."""

    log: str
    draft: str
    since: int
    at: int
    shards: int
    folders: list[str] | None  # of the previous version
    stats: str | None  # the folder of statistics of past events
    modules: tuple[str, ...]  # that declare operators

    def run(self, shard: int) -> Iterator[dict[str, Any]]:
        """Compile a shard: a row of `COMPILED`."""
        for module in self.modules:
            import_module(module)
        log = Log.open(self.log)
        engine = Engine(log.schema_at(self.since))
        if self.folders is not None:
            engine = Engine.open(self.folders[shard])
        changes = log.changes(self.since, self.at, details=True)
        if self.shards > 1:
            mine = [shard_of(id, self.shards) == shard for id in changes["id"].to_pylist()]
            changes = changes.filter(pa.array(mine, pa.bool_()))
        snapshot = SubscriptionSnapshot()
        snapshot.fold(changes)
        rows, wrong = snapshot.table(log.ids).select(_COLUMNS), list[_Refusals]()
        if self.folders is not None:
            # Any change but a renewal ends the subscription that was there before.
            kinds = np.asarray(changes["kind"].combine_chunks())
            ended = changes.filter(pa.array(kinds != "renew"))
            ids = set(ended["id"].to_pylist())
            for id in ids:
                if id in engine:
                    engine.unsubscribe(id)
            earlier = _refused(self.folders[shard], ids, log.ids)
            wrong += _try_again(engine, log, earlier, self.since)
        for part in log.schemas(self.since, self.at):
            extend_engine(engine, part.schema)
            wrong.append(_subscribe(engine, _within(rows, part)))
        extend_engine(engine, log.schema_at(self.at))
        sample = _sample(log, self.at) if self.stats is None else None
        yield _saved(engine, wrong, Path(self.draft), shard, self.stats, sample)._asdict()


class RowShardTask(NamedTuple):
    """Compiles shards from the rows of a DataFrame."""

    schema: str
    draft: str
    shards: int
    stats: str | None  # the folder of statistics of past events
    modules: tuple[str, ...]  # that declare operators

    def run(self, conditions: DataFrame) -> list[CompiledShard]:
        from pyspark.sql.pandas.functions import arrow_udf
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import IntegerType

        shards = self.shards

        def shard(ids: pa.Array) -> pa.Array:
            known = ids.to_pylist()
            which = [NO_SHARD if id is None else shard_of(id, shards) for id in known]
            return pa.array(which, pa.int32())

        made_of: Any = arrow_udf  # it reads the kind of function from the type hints
        numbered = made_of(shard, IntegerType())("id").alias("shard")
        names = [name for name in ("id", "condition", LANGUAGE) if name in conditions.columns]
        grouped = conditions.select(*names, numbered).groupBy("shard")
        task = self

        # Spark counts the parameters of what it is given, and would count `self` of a method.
        def one(table: pa.Table) -> pa.Table:
            return task.shard(table)

        rows = grouped.applyInArrow(one, from_arrow_schema(COMPILED)).collect()
        made = {row["shard"]: CompiledShard(**row.asDict()) for row in rows}
        # A shard without rows is made here.
        schema = Schema.from_dict(json.loads(self.schema))
        for empty in set(range(shards)) - set(made):
            made[empty] = _saved(Engine(schema), [], Path(self.draft), empty, self.stats)
        return [made[each] for each in sorted(made)]

    def shard(self, table: pa.Table) -> pa.Table:
        shard, count = table["shard"][0].as_py(), table.num_rows
        if shard == NO_SHARD:
            reason = counted(count, "row has no id", "rows have no id")
            made = CompiledShard(NO_SHARD, "", 0, 0, count, [reason])
        else:
            for module in self.modules:
                import_module(module)
            engine = Engine(Schema.from_dict(json.loads(self.schema)))
            refused = _subscribe(engine, table.drop_columns(["shard"]))
            made = _saved(engine, [refused], Path(self.draft), shard, self.stats)
        return pa.Table.from_pylist([made._asdict()], COMPILED)


class _Refusals(NamedTuple):
    """Subscriptions that were refused, and why."""

    rows: pa.Table
    reasons: list[str]


def _subscribe(engine: Engine, rows: pa.Table) -> _Refusals:
    names = [name for name in ("id", "condition", LANGUAGE) if name in rows.column_names]
    refused = subscribe_rows(engine, rows.select(names))
    reasons = [f"{rows['id'][row].as_py()!r}: {reason}" for row, reason in refused]
    return _Refusals(rows.take(pa.array([row for row, _ in refused], pa.int64())), reasons)


def _within(rows: pa.Table, part: SchemaRange) -> pa.Table:
    """The subscriptions that were added in a range."""
    added = np.asarray(rows["added"])
    return rows.filter(pa.array((part.start <= added) & (added < part.end)))


def _try_again(engine: Engine, log: Log, rows: pa.Table, since: int) -> list[_Refusals]:
    """Subscribe what the previous version refused, if the schema of its number accepts it by now.

    An operator may have been missing. But an extension of the schema does not help.
    """
    if not rows.num_rows:
        return []
    found: list[_Refusals] = []
    for part in log.schemas(0, since):
        mine = _within(rows, part)
        refused = _subscribe(Engine(part.schema), mine)
        wrong = set(refused.rows["id"].to_pylist())
        fine = pa.array([id not in wrong for id in mine["id"].to_pylist()], pa.bool_())
        found += [refused, _subscribe(engine, mine.filter(fine))]
    return found


def _saved(
    engine: Engine,
    refused: Sequence[_Refusals],
    draft: Path,
    shard: int,
    stats: str | None,
    sample: pa.Table | None = None,
) -> CompiledShard:
    """Save an engine, in a folder of its own: another attempt may still be writing.

    An engine that has seen no events has not placed its clauses. Each worker would place them for
    itself, and share nothing; so the engine is planned for a sample first.
    """
    if stats is not None:
        engine.expect(Stats.open(stats))
    elif sample is not None and not laid_out(engine):
        plan_for(engine, sample)
    folder = draft / f"{shard_name(shard)}-{uuid.uuid4().hex}"
    engine.save(folder)
    reasons = [reason for each in refused for reason in each.reasons]
    if reasons:
        wrong = pa.concat_tables([each.rows for each in refused])
        with pa.ipc.new_file(str(folder / _REFUSED), wrong.schema) as writer:
            writer.write_table(wrong)
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    return CompiledShard(shard, folder.name, len(engine), size, len(reasons), reasons[:SHOWN])


def _refused(folder: str, ended: Collection[Any], ids: str) -> pa.Table:
    """The conditions that the previous version refused, without those that have ended."""
    path = Path(folder) / _REFUSED
    nothing = {"id": ID_TYPES[ids], "condition": pa.string(), "added": pa.int64()}
    nothing[LANGUAGE] = pa.string()
    if not path.exists():
        return pa.schema(nothing).empty_table()
    with pa.OSFile(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    if "added" not in table.column_names:  # written before schemas grew in logs
        table = table.append_column("added", pa.array(np.zeros(table.num_rows, np.int64)))
    if LANGUAGE not in table.column_names:  # written when logs had one language
        table = table.append_column(LANGUAGE, pa.nulls(table.num_rows, pa.string()))
    return table.filter(pa.array([id not in ended for id in table["id"].to_pylist()], pa.bool_()))


def _sample(log: Log, end: int) -> pa.Table | None:
    """A sample of the last events before a sequence number; None if there are no events."""
    tail = tuple(log_shares(log, min(end, max(log.begin, end - _TAIL)), end, _SHARES))
    found = event_sample(LogEvents(str(log.folder), tail), log.schema_at(end).attributes)
    return found if found.num_rows else None
