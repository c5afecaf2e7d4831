"""Which version a batch of a stream is matched with, and whether it fits the columns.

A stream is planned once and then runs for months, while subscriptions come and go. Each batch takes
the latest version of the index. The first task of a batch records which, so that Spark gets the
same version when it runs the batch again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from tamis.errors import SparkError
from tamis.replay.event_source import RowLayout
from tamis.spark.frames.frame_columns import KeptColumn, attribute_sources
from tamis.spark.runtime.worker_cache import open_engine
from tamis.store.version import Version
from tamis.store.versions import Versions

if TYPE_CHECKING:
    from tamis.spark.frames.match_frame import FrameTask

# Where Spark names the query and the batch of a task, classic or Connect:
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
_KINDS = {True: "text", False: "numbers"}


class VersionedTask(NamedTuple):
    """The task of a stream that follows an index."""

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
