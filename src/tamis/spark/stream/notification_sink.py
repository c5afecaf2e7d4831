"""`format("tamis_notifications")`: notifications as files, each batch once, whatever is killed.

    OUT/notifications/part-….parquet    rows (sequence, subscription, …)
    OUT/dead/part-….parquet             events that were refused, each with the reason
    OUT/manifests/….json                the parts of one batch

A task writes parts under unique names, and the driver names them in a manifest. The manifest is the
commit: it appears by one synced rename. If Spark is killed between that and its own commit, it runs
the batch again, finds the manifest, and leaves it as it is. Parts without a manifest are leftovers
of tasks and batches that were run again; `sweep` removes them. `compact` merges the parts of old
batches into larger ones.

A manifest is identified by the query and the offset that its batch ends at, not by the number of
the batch alone: a new checkpoint begins at 0 again, with other data. Read notifications with
`spark.read.format("tamis_notifications")`, or read the parts that manifests name.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from tamis.errors import SparkError
from tamis.replay.manifests import MANIFESTS, ends_elsewhere, last_merged, manifests, put
from tamis.replay.parts import DEAD, NOTIFICATIONS, RAW, REASON, SUBSCRIPTION, PartWriter
from tamis.spark.stream.checkpoint import manifest_name, read_end, sync_end
from tamis.spark.stream.progress import query_of
from tamis.spark.stream.shift import committing_shift


@dataclass
class WrittenParts(WriterCommitMessage):
    """The parts that a task wrote: folder, name and rows of each."""

    parts: list[dict[str, Any]]


class NotificationsDataSource(DataSource):
    """Options: `path`; for a stream also its `checkpointLocation`, which identifies batches.

    A stream that matches for a service also has `shift`: it commits only while its shift lasts.
    """

    @classmethod
    def name(cls) -> str:
        return "tamis_notifications"

    def schema(self) -> StructType:
        """The columns of the parts. There must be at least one part."""
        from pyspark.sql.pandas.types import from_arrow_schema

        folder = self.options.get("kind", NOTIFICATIONS)
        for part in _committed(self._path(), folder):
            return from_arrow_schema(pq.read_schema(part))
        if not self._path().is_dir():
            raise SparkError(f"{self._path()}: there is no folder of that name")
        raise SparkError(
            f"{self._path()}: has no parts of {folder} yet, which would show its columns"
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return _PartsReader(self._path(), self.options.get("kind", NOTIFICATIONS))

    def writer(self, schema: StructType, overwrite: bool) -> _BatchWriter:
        if overwrite:
            raise SparkError('notifications are only ever added: use mode("append")')
        return _BatchWriter(self._path())

    def streamWriter(  # noqa: N802 - as Spark calls it
        self, schema: StructType, overwrite: bool
    ) -> _StreamWriter:
        checkpoint = self.options.get("checkpointlocation")
        if not checkpoint:
            raise SparkError(
                "tamis_notifications needs the checkpoint, by which it knows what it has written: "
                '.option("checkpointLocation", …) on this stream'
            )
        shift = self.options.get("shift")
        return _StreamWriter(self._path(), local(checkpoint).absolute(), shift)

    def _path(self) -> Path:
        path = self.options.get("path")
        if not path:
            raise SparkError("tamis_notifications is written to a folder: .start(path)")
        return local(path).absolute()  # workers may have another folder to work in


def local(path: str) -> Path:
    """The path of a local file, with or without `file:`."""
    scheme, colon, rest = path.partition(":")
    if colon and scheme == "file":
        return Path("/" + rest.lstrip("/"))
    if colon and "/" in rest[:1]:
        raise SparkError(f"{path}: only files that all workers see under one path, got {scheme}:")
    return Path(path)


class _TaskWriter:
    """Writes the parts of a task.

    Args:
        path: of the folder.
        whose: how the names of parts begin, by which their writer knows them.
    """

    def __init__(self, path: Path, whose: str = "") -> None:
        self._path, self._whose = path, whose

    def write(self, iterator: Iterator[Any]) -> WrittenParts:
        """The rows of one task: those with a reason are dead letters, all others notifications."""
        written = {kind: self._part(kind) for kind in (NOTIFICATIONS, DEAD)}
        try:
            for batch in iterator:
                table = pa.Table.from_batches([batch])
                if REASON in table.column_names:
                    died = pc.is_valid(table[REASON])
                    dead = table.filter(died)
                    written[DEAD].write(_without(dead, SUBSCRIPTION))
                    table = _without(table.filter(pc.invert(died)), REASON, RAW)
                written[NOTIFICATIONS].write(table)
            return WrittenParts([file.close() for file in written.values() if file.rows])
        except BaseException:
            for file in written.values():
                file.discard()
            raise

    def _part(self, kind: str) -> PartWriter:
        name = f"part-{self._whose}{uuid.uuid4().hex}.parquet"
        return PartWriter(self._path / kind, name, as_is=True)


def _without(table: pa.Table, *names: str) -> pa.Table:
    return table.drop_columns([name for name in names if name in table.column_names])


class _BatchWriter(_TaskWriter, DataSourceArrowWriter):
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit one manifest for the whole job, which is not run again."""
        commit(self._path, uuid.uuid4().hex, {"query": None, "batch": None}, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _discard(self._path, messages)


class _StreamWriter(_TaskWriter, DataSourceStreamArrowWriter):
    def __init__(self, path: Path, checkpoint: Path, shift: str | None = None) -> None:
        query = query_of(checkpoint)
        super().__init__(path, "" if query is None else f"{query}-")
        self._checkpoint, self._shift = checkpoint, shift

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Commit the manifest of a batch, unless it exists."""
        query, offsets = read_end(self._checkpoint, batch)
        sync_end(self._checkpoint, batch)
        facts = {"query": query, "batch": batch, "offsets": [json.loads(o) for o in offsets]}
        name = manifest_name(query, batch, offsets)
        if self._shift is None:
            commit(self._path, name, facts, messages)
            return
        with committing_shift(self._path, self._shift, self._checkpoint, batch, name) as covers:
            commit(self._path, name, {**facts, **covers}, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Remove the parts; the batch will be run again."""
        _discard(self._path, messages)


def commit(
    path: Path,
    name: str,
    facts: Mapping[str, Any],
    messages: Sequence[WriterCommitMessage | None],
) -> None:
    """Name the parts of tasks in a manifest, unless it exists."""
    query, batch = facts["query"], facts["batch"]
    if (path / MANIFESTS / f"{name}.json").exists():
        _discard(path, messages)
        return
    why = None
    if query is not None and batch <= last_merged(path, query):
        why = "is an old one, whose notifications have been merged with others"
    elif query is not None and ends_elsewhere(path, query, batch, name):
        why = "was written before, and ended at another event or version then"
    if why is not None:
        _discard(path, messages)
        raise SparkError(
            f"{path}: batch {batch} {why}. The checkpoint was set back; write to a new folder, or "
            "some notifications would come twice"
        )
    for part in _parts(messages):
        if not (path / part["folder"] / part["name"]).is_file():
            raise SparkError(
                f"{path / part['folder'] / part['name']}: is not there any more, though a task has "
                "written it; all workers have to see the folder under one path, and it must not be "
                "swept meanwhile. Nothing was committed; run it again"
            )
    if not put(path, name, facts, _parts(messages)):
        _discard(path, messages)


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[dict[str, Any]]:
    return [part for each in messages if isinstance(each, WrittenParts) for part in each.parts]


def _discard(path: Path, messages: Sequence[WriterCommitMessage | None]) -> None:
    for part in _parts(messages):
        (path / part["folder"] / part["name"]).unlink(missing_ok=True)


def _committed(path: Path, folder: str) -> Iterator[Path]:
    """The parts of a kind that manifests name."""
    for manifest in manifests(path):
        for part in manifest["parts"]:
            if part["folder"] == folder:
                yield path / folder / part["name"]


class _PartsReader(DataSourceReader):
    def __init__(self, path: Path, folder: str) -> None:
        self._path, self._folder = path, folder

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(str(part)) for part in _committed(self._path, self._folder)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition is not None and partition.value:
            try:
                yield from pq.ParquetFile(partition.value).iter_batches()
            except (OSError, pa.ArrowException) as why:
                raise SparkError(f"{partition.value}: cannot be read: {why}") from None
