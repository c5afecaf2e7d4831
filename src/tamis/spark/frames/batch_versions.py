"""Which version a batch of a stream is matched with, and whether it goes with the columns.

A DataFrame that is a stream is planned once and then runs for months, while subscriptions come and
go. Each of its batches takes the latest version of the index, and when Spark runs a batch again it
takes the one that it has taken before: the first task of a batch writes down which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from tamis.errors import SparkError
from tamis.spark.frames.frame_columns import Extra, sources
from tamis.spark.runtime.worker_cache import open_engine
from tamis.store.version import Version
from tamis.store.versions import Versions

if TYPE_CHECKING:
    from tamis.spark.frames.match_frame import FrameTask

# As Spark tells its tasks who they are, in a classic session and in one of Connect:
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
_KINDS = {True: "text", False: "numbers"}


class VersionedTask(NamedTuple):
    """The task of a stream that follows an index."""

    task: FrameTask  # as it would be with the version that there was when the stream was planned
    versions: str  # their folder
    keep: int  # batches, of which Spark may be made to run one again
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
                "Spark does not say which batch of the stream this is, so that no version can be "
                "chosen for it; give the folder of one version, which holds for all of them"
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
        places = dict(task.layout.attributes)
        for name in found:
            if name not in places:
                raise SparkError(
                    f"{version.folder}: knows the attribute {name!r}, for which there is a column; "
                    "but nobody knew of it when the stream was started, so that it was not sent "
                    "along. Start the stream again: it goes on with this batch"
                )
        layout = type(task.layout)(tuple((name, places[name]) for name in found))
        return task._replace(folders=folders, layout=layout)


@lru_cache(maxsize=8)
def _attributes(
    folder: str, operators: bytes, columns: str, extras: tuple[Extra, ...]
) -> tuple[str, ...]:
    """The attributes that a version finds among the columns."""
    from pyspark.sql.types import StructType

    schema = open_engine(folder, operators).schema
    struct = StructType.fromJson(json.loads(columns))
    try:
        found = sources(schema, struct, [extra.name for extra in extras])
    except SparkError as why:
        raise SparkError(f"{folder}: does not go with the events any more: {why}") from None
    return tuple(source.attribute for source in found)
