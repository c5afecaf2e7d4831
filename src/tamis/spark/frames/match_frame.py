"""`match`: events of a DataFrame against subscriptions, in Spark's workers.

Only the columns that are needed go to the workers, in Arrow batches. Subscriptions do not go
through Spark at all: a worker maps them from a folder, as its neighbours do, so that a machine
holds one copy however many workers it has.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encode.arrow import one_chunk
from tamis.encode.tables.frames import ABSENT, check_missing, nan_as_null
from tamis.engine.doors.event_moments import depends_on_now
from tamis.errors import EventError, SparkError
from tamis.model.schema import Schema
from tamis.model.times.moments import NO_MOMENT, clock, read_moment
from tamis.replay.event_source import EventChunk, Int64s, RowLayout
from tamis.replay.parts import SUBSCRIPTION
from tamis.replay.pipeline import BatchPace, ReadEvents, read_events
from tamis.spark.frames.frame_columns import (
    KeptColumn,
    attribute_sources,
    moments_of,
    select_columns,
)
from tamis.spark.runtime.engine_folders import SavedSubscriptions, engine_folders
from tamis.spark.runtime.operator_reports import noted_calls
from tamis.spark.runtime.sessions import retained_batches
from tamis.spark.runtime.worker_cache import open_engine, open_shards, pack_operators
from tamis.store.version import DOCUMENT, Version
from tamis.store.versions import Versions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from tamis.engine import Engine
    from tamis.match.answers import Matches
    from tamis.operators.operator import Operator

_PAIRS = 1 << 18  # pairs of a batch that is handed on: it stays small
_WHOLE = 1 << 62  # events that are matched at once: all of a batch, whose size Spark decides
_COLLECTED = 1_000_000  # conditions of a DataFrame that are compiled on the driver
_BAD = ("raise", "skip")
# Where Spark names the query and the batch of a task, classic or Connect:
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
_KINDS = {True: "text", False: "numbers"}


def match(
    subscriptions: str | os.PathLike[str] | Engine | DataFrame,
    *,
    id: str | Column = "event_id",
    keep: Iterable[str | Column] = (),
    schema: Schema | None = None,
    operators: Operator | Iterable[Operator] = (),
    bad: str = "raise",
    missing: str = ABSENT,
    report: str | os.PathLike[str] | None = None,
    now: str | Column | datetime | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """A function for `DataFrame.transform`, of batch and streaming DataFrames alike.

    It gives a row for each event and each subscription that the event satisfies: the `id` column,
    `subscription`, and the columns to `keep`. Columns with the names of the schema's attributes are
    the event; `seller.rating` may also be a field of a struct. Other columns are left alone.

    `subscriptions` is the folder of a saved engine, or of versions of an index, or of one such
    version; an engine, of which a copy as of now is used; or a DataFrame of `id` and `condition`,
    with the `schema` of the events. `operators` are those that conditions call. An event that
    breaks a rule of the schema fails the job and says why; with `bad="skip"` it matches nothing.
    NaN is absent, as null is; with `missing="refuse"` it breaks a rule.
    `tamis.spark.validate` separates such events from the rest. `report` is a folder in which
    workers note calls and faults of operators, for `tamis.spark.report` to add up.

    `now` is what `now` means in conditions: a column of timestamps, or one moment for all events.
    The default is the moment at which the function is applied; a stream needs a column.

    Of an index, the latest version is used. A stream uses the version that is the latest when a
    batch begins; workers record it, so that Spark gets the same one when it runs the batch again.
    The stream reads the columns of the version at its start: if a later version has an attribute
    for another column, the stream stops and says so. All else stays as it is when `match` is
    called.
    """
    if bad not in _BAD:
        raise SparkError(f"bad is one of {', '.join(map(repr, _BAD))}, got {bad!r}")
    check_missing(missing)
    if id is None:
        raise SparkError(
            "id names the column that identifies events, and has to be given: a number that Spark "
            "makes up changes when a task is tried again"
        )
    kept: list[str | Column] = [keep] if isinstance(keep, str) else list(keep)
    given = _resolved(subscriptions, schema, operators)
    noted = None if report is None else str(Path(report).absolute())
    time = read_moment(now) if isinstance(now, datetime) else now

    def matched(events: DataFrame) -> DataFrame:
        return _transform(events, given, [id, *kept], bad, noted, missing, time)

    return matched


class _Subscriptions(NamedTuple):
    """Subscriptions as they were when `match` was called."""

    folders: tuple[str, ...]  # of engines; several where they are in shards
    operators: bytes
    schema: Schema
    texts: bool  # whether ids are text
    versions: str | None = None  # the folder that may have a later version for the next batch
    sequence: int = 0  # of the version


def _resolved(
    subscriptions: Any, schema: Schema | None, operators: Operator | Iterable[Operator]
) -> _Subscriptions:
    """Subscriptions, however they are given, in folders that workers can open."""
    from pyspark.sql import DataFrame

    from tamis.engine import Engine

    given: Any = operators
    version = index = None
    if isinstance(subscriptions, (str, os.PathLike)):
        _refuse_schema(schema, "a folder")
        path = Path(subscriptions).absolute()
        if not (path / DOCUMENT).is_file() and path.is_dir():
            version, index = Versions(path).latest(), str(path)
        # One that is published meanwhile belongs to the next batch.
        folders: list[Any] = [*engine_folders(path if version is None else version)]
    elif isinstance(subscriptions, Engine):
        _refuse_schema(schema, "an engine")
        given = subscriptions.calls.operators if operators == () else given
        folders = [_saved(subscriptions)]
    elif isinstance(subscriptions, DataFrame):
        with _collected(subscriptions, schema, operators) as engine:
            folders = [_saved(engine)]
    else:
        raise SparkError(
            "subscriptions are the folder of a saved engine, an Engine, or a DataFrame of id and "
            f"condition; got {type(subscriptions).__name__}"
        )
    saved = SavedSubscriptions.open(folders, pack_operators(given))
    found = _Subscriptions(saved.folders, saved.operators, saved.schema, saved.texts)
    if version is None:
        return found
    # An engine without subscriptions does not know of which kind their ids are.
    return found._replace(texts=version.ids == "text", versions=index, sequence=version.sequence)


def _transform(
    events: DataFrame,
    given: _Subscriptions,
    extras: Sequence[str | Column],
    bad: str,
    report: str | None,
    missing: str,
    now: int | str | Column | None,
) -> DataFrame:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    if isinstance(extras[0], str) and extras[0] not in events.columns:
        raise SparkError(
            f"there is no column {extras[0]!r} to identify events; name one of these: "
            f"match(…, id={events.columns[0]!r}); columns: {', '.join(events.columns)}"
        )
    times = [] if now is None or isinstance(now, int) else [moments_of(events, now)]
    chosen = select_columns(events, given.schema, [*extras, *times], taken=(SUBSCRIPTION,))
    id, *kept = chosen.struct.fields[: len(extras)]
    moment = now if isinstance(now, int) else None
    if now is None and not events.isStreaming:
        moment = clock()
    kind = StringType() if given.texts else LongType()
    result = StructType([id, StructField(SUBSCRIPTION, kind, nullable=False), *kept])
    task = FrameTask(
        given.folders,
        given.operators,
        RowLayout(chosen.attributes),
        chosen.extras[: len(extras)],
        given.texts,
        bad,
        report,
        missing,
        chosen.extras[-1] if times else moment,
    )
    if given.versions is None:
        return chosen.frame.mapInArrow(task.run, result)
    if not events.isStreaming:
        # Spark does not say when it runs, nor when it ends: the version is kept for a day.
        Versions(given.versions).hold([given.sequence])
        return chosen.frame.mapInArrow(task.run, result)
    keep = retained_batches(events.sparkSession)
    following = VersionedTask(task, given.versions, keep, events.schema.json())
    return chosen.frame.mapInArrow(following.run, result)


class FrameTask(NamedTuple):
    """What a worker needs: little, as it is pickled with every task."""

    folders: tuple[str, ...]
    operators: bytes
    layout: RowLayout
    extras: tuple[KeptColumn, ...]
    texts: bool
    bad: str
    report: str | None  # the folder for reports of operators
    missing: str = ABSENT
    now: KeptColumn | int | None = None  # the column of moments, or the one of all events

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        engines = open_shards(self.folders, self.operators)
        chunks = (
            EventChunk(np.arange(batch.num_rows), self._table(batch), self.layout)
            for batch in batches
        )
        timed = any(map(depends_on_now, engines))
        if timed and self.now is None:
            raise SparkError(
                "a condition mentions now, and a stream has no moment of its own: say which column "
                "has the time of an event: match(…, now='time')"
            )
        with noted_calls(engines, self.report):
            pace = BatchPace(_WHOLE, _WHOLE)
            for events in read_events(chunks, engines[0].encoder, pace):
                if events.valid.refused and self.bad == "raise":
                    raise self._explained(events)
                moments = self._moments(events) if timed else None
                for engine in engines:
                    found = engine.match_batch(events.valid.batch(engine.encoder, moments))
                    yield from self._pairs(found, events)

    def _table(self, batch: pa.RecordBatch) -> pa.Table:
        table = pa.Table.from_batches([batch])
        return nan_as_null(table) if self.missing == ABSENT else table

    def _moments(self, events: ReadEvents) -> Int64s | int | None:
        """The moments of the valid events."""
        if not isinstance(self.now, KeptColumn):
            return self.now
        values = np.asarray(_column(events, self.now).fill_null(NO_MOMENT))
        return values[events.valid.rows]

    def _pairs(self, found: Matches, events: ReadEvents) -> Iterator[pa.RecordBatch]:
        rows, ids = events.numbers[found.events], found.arrow_ids(self.texts)
        id, *kept = self.extras
        for first in range(0, found.total, _PAIRS):
            at = pa.array(rows[first : first + _PAIRS])
            columns = {
                id.name: _column(events, id).take(at),
                SUBSCRIPTION: ids.slice(first, _PAIRS),
                **{extra.name: _column(events, extra).take(at) for extra in kept},
            }
            yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _explained(self, events: ReadEvents) -> EventError:
        """The first refusal with the event's own id: its row in a batch means nothing to a user."""
        id, (row, reason) = self.extras[0], events.valid.refused[0]
        return EventError(
            f"{id.name} {_column(events, id)[row].as_py()!r}: {reason}; bad='skip' leaves such "
            "events out, and tamis.spark.validate separates them from the rest"
        )


def _column(events: ReadEvents, extra: KeptColumn) -> pa.Array:
    return one_chunk(events.table.column(extra.at))


class VersionedTask(NamedTuple):
    """The task of a stream that follows an index.

    A stream is planned once and then runs for months, while subscriptions come and go. Each batch
    takes the latest version of the index. The first task of a batch records which, so that Spark
    gets the same version when it runs the batch again.
    """

    task: FrameTask  # with the version of when the stream was planned
    versions: str  # their folder
    keep: int  # the last batches, which Spark may run again
    columns: str  # of the DataFrame, as JSON

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As `FrameTask.run`, with a version that is chosen before the first row is matched."""
        for batch in batches:
            if batch.num_rows:
                yield from self._chosen().run(chain([batch], batches))

    def _chosen(self) -> FrameTask:
        from pyspark import TaskContext

        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY)
        batch = None if context is None else context.getLocalProperty(_BATCH)
        if query is None or batch is None:
            raise SparkError(
                "Spark does not say which batch of the stream this is, so it has no version; "
                "give the folder of one version, which is then used for all batches"
            )
        return self._fitted(Versions(self.versions).pin(query, int(batch), self.keep))

    def _fitted(self, version: Version) -> FrameTask:
        """The task, with the attributes that this version looks at."""
        task = self.task
        folders = tuple(map(str, version.shard_folders))
        if folders == task.folders:
            return task
        if (version.ids == "text") != task.texts:
            raise SparkError(
                f"{version.folder}: has ids that are {_KINDS[not task.texts]}, and the stream was "
                f"started with {_KINDS[task.texts]}; versions of one index have ids of one kind"
            )
        found = _attributes(folders[0], task.operators, self.columns, task.extras)
        places = dict(task.layout.attributes or ())
        for name in found:
            if name not in places:
                raise SparkError(
                    f"{version.folder}: has an attribute {name!r} for a column that the stream "
                    "does not read, because the first version did not have it. Start the stream "
                    "again: it goes on with this batch"
                )
        layout = RowLayout(tuple((name, places[name]) for name in found))
        return task._replace(folders=folders, layout=layout)


@lru_cache(maxsize=8)
def _attributes(
    folder: str, operators: bytes, columns: str, extras: tuple[KeptColumn, ...]
) -> tuple[str, ...]:
    """The attributes of a version that have columns."""
    from pyspark.sql.types import StructType

    schema = open_engine(folder, operators).schema
    struct = StructType.fromJson(json.loads(columns))
    try:
        found = attribute_sources(schema, struct, [extra.name for extra in extras])
    except SparkError as why:
        raise SparkError(f"{folder}: does not fit the events any more: {why}") from None
    return tuple(map(".".join, found))


# -- subscriptions that have no folder -------------------------------------------------------------


def _refuse_schema(schema: Schema | None, what: str) -> None:
    if schema is not None:
        raise SparkError(f"schema is for conditions in a DataFrame; {what} has its own")


def _saved(engine: Engine) -> str:
    """A copy of the engine as of now, in a folder that lives as long as this process."""
    above = tempfile.mkdtemp(prefix="tamis-spark-")
    atexit.register(shutil.rmtree, above, ignore_errors=True)
    folder = Path(above) / "engine"
    engine.save(folder)
    return str(folder)


def _collected(
    frame: DataFrame, schema: Schema | None, operators: Operator | Iterable[Operator]
) -> Engine:
    """An engine with the conditions of a DataFrame, which are collected on the driver."""
    from tamis.engine import Engine

    if schema is None:
        raise SparkError("conditions in a DataFrame need the schema of the events: schema=…")
    for name in ("id", "condition"):
        if name not in frame.columns:
            raise SparkError(
                f"subscriptions need a column {name!r}; these are {', '.join(frame.columns)}"
            )
    if frame.isStreaming:
        raise SparkError("subscriptions are a table, and this DataFrame is a stream")
    table = frame.select("id", "condition").limit(_COLLECTED + 1).toArrow()
    if table.num_rows > _COLLECTED:
        raise SparkError(
            f"more than {_COLLECTED:,} conditions are too many to compile on the driver; save an "
            "engine of them, and give its folder"
        )
    engine = Engine(schema, operators=operators)
    engine.subscribe_table(table)
    return engine
