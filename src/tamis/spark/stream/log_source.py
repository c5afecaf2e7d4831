"""`format("tamis")`: the events of a log with the subscriptions that each of them satisfies.

Events are matched where they are read, in the worker that maps the log into memory, so that only
pairs pass through the JVM. A row is a pair:

    sequence      of the event in the log
    subscription  its id
    …             attributes of the event, named by the option `columns`
    reason, raw   null; of a dead letter, why the event was refused, and the event as it came

An offset is a sequence number, and the version of the index that the batch is matched with. The log
has events and changes of subscriptions in one sequence, so the number says who is live at each
event. A batch that is run again gives the same rows, whatever has changed since.

A version knows who is live from its sequence number on. So a batch ends where a newer version
begins, and the next batch is matched with that. A schema record of the log needs no such end: each
event is read by the schema of its number, wherever a batch ends. Columns keep the types that they
have when the reader starts.

Options: `path` of the log; `index`, a folder of versions (without one, all subscriptions come from
the log); `columns`, names with commas; `maxEventsPerTrigger`; `partitions`, how many tasks at most;
`startingSequence`, a number or "latest", for a new stream; `endingSequence`, for a batch job;
`name` of this reader and no other, under which the index keeps the versions that it needs, and the
log keeps where it began if that was "latest"; `operators`, modules that workers import because they
declare operators; `report`, a folder for calls and faults of operators, see `tamis.spark.report`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tamis.errors import SparkError, StoreError
from tamis.files.json_document import read_json, write_json
from tamis.files.names import chosen_name
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import sync_folder
from tamis.model.schema import Schema
from tamis.replay.log_events import after_events, log_shares, next_event
from tamis.replay.parts import RAW, REASON, SEQUENCE, SUBSCRIPTION
from tamis.spark.frames.frame_columns import check_attributes, column_types
from tamis.spark.stream.log_slice import LogSlice
from tamis.spark.stream.notification_sink import local
from tamis.spark.stream.progress import NO_VERSION
from tamis.store.log import Log
from tamis.store.versions import Versions

_READERS = "readers"


class StartPosition:
    """Where a stream began that starts at the latest event: LOG/readers/<name>.json."""

    def __init__(self, log: Log, name: str) -> None:
        self._log = log
        self._path = log.folder / _READERS / f"{name}.json"

    def kept(self) -> int:
        """The recorded position; else the end of the log, which is recorded."""
        if self._path.exists():
            return int(read_json(self._path, "a reader of a log", StoreError)["sequence"])
        start = self._log.end
        with os_errors_as(StoreError, f"{self._path}: cannot be written"):
            self._path.parent.mkdir(exist_ok=True)
            write_json(self._path, {"sequence": start})
            sync_folder(self._log.folder)
        return start

    def forget(self) -> None:
        """Remove the record: the checkpoint has the position by now, on disk."""
        with os_errors_as(StoreError, f"{self._path}: cannot be removed"):
            self._path.unlink(missing_ok=True)


class VersionRange(NamedTuple):
    """A range of the log, and the version that its events are matched with."""

    start: int
    end: int
    version: int


@dataclass
class LogOptions:
    """The options of a user, checked."""

    log: Log
    versions: Versions | None
    columns: tuple[str, ...]
    most: int | None  # events of a batch
    tasks: int
    start: int
    latest: bool  # whether that is the end of the log
    end: int | None
    name: str  # empty: no versions are kept for it
    modules: tuple[str, ...]
    report: str | None
    types: tuple[pa.DataType, ...] = ()  # of the columns, as Spark has them

    @classmethod
    def read(cls, given: Any, schema: StructType | None = None) -> LogOptions:
        """From the options of a `DataSource`, whose names are in lower case.

        `schema` is what Spark expects: the log may have extended its schema since.
        """
        path = given.get("path")
        if not path:
            raise SparkError('format("tamis") reads a log: .load(path), or .option("path", …)')
        log = Log.open(local(path))
        index = given.get("index")
        columns = _names(given.get("columns"))
        check_attributes(columns, Schema.from_dict(log.schema).attributes, "columns")
        versions = Versions(local(index)) if index else None
        if versions is not None:
            versions.check_log(log)
        latest = given.get("startingsequence") == "latest"
        name = given.get("name", "")
        if name:
            chosen_name(name, "a reader", StoreError)
        return cls(
            log,
            versions,
            columns,
            _whole(given, "maxEventsPerTrigger"),
            _whole(given, "partitions") or os.cpu_count() or 1,
            log.end if latest else _whole(given, "startingSequence", 0) or 0,
            latest,
            _whole(given, "endingSequence", 0),
            name,
            _names(given.get("operators")),
            str(local(given["report"]).absolute()) if given.get("report") else None,
            () if schema is None else _arrow_types(schema, columns),
        )

    def first_range(self, start: int, end: int) -> VersionRange | None:
        """The first events of a range, up to where a newer version begins; None if it has none."""
        first = next_event(self.log, start, end)
        if first is None:
            return None
        known = [] if self.versions is None else [each.sequence for each in self.versions.all()]
        version = max((each for each in known if each <= first), default=NO_VERSION)
        return VersionRange(start, min([end, *(each for each in known if each > first)]), version)

    def version_ranges(self, start: int, end: int) -> Iterator[VersionRange]:
        """All events of a range, by version."""
        while (part := self.first_range(start, end)) is not None:
            yield part
            start = part.end

    def slices_of(self, part: VersionRange) -> list[LogSlice]:
        """Slices for a range: its shares, for each shard of the subscriptions."""
        start, end, version = part
        found = None
        if version != NO_VERSION and self.versions is not None:
            # If that is gone, another version gives the same pairs, or the log alone does.
            found = self.versions.at(version) or self.versions.at(start)
        folders = [] if found is None else [str(each) for each in found.shard_folders]
        sequence = 0 if found is None else found.sequence
        shards: list[tuple[int, str | None]] = [*enumerate(folders)] or [(0, None)]
        return [
            LogSlice(
                str(self.log.folder),
                low,
                high,
                folder,
                sequence,
                shard,
                len(shards),
                tuple(zip(self.columns, self.types, strict=True)),
                self.modules,
                self.report,
            )
            for low, high in log_shares(self.log, start, end, self.tasks)
            for shard, folder in shards
        ]


class TamisDataSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        return "tamis"

    def schema(self) -> StructType:
        """Sequence, subscription, the columns asked for, and the reason of a dead letter."""
        options = LogOptions.read(self.options)
        types = column_types(Schema.from_dict(options.log.schema))
        text = options.log.ids == "text"
        return StructType(
            [
                StructField(SEQUENCE, LongType()),
                StructField(SUBSCRIPTION, StringType() if text else LongType()),
                *(StructField(name, types[name]) for name in options.columns),
                StructField(REASON, StringType()),
                StructField(RAW, StringType()),
            ]
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return _BatchReader(LogOptions.read(self.options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        given = LogOptions.read(self.options, schema)
        if given.latest and not given.name:
            raise SparkError(
                "startingSequence: a stream that begins at the latest event needs a name, under "
                "which the log records where that was until the first batch is done: "
                '.option("name", …), or give a number'
            )
        return _StreamReader(given)


class _LogPartition(InputPartition):
    """A slice, as Spark sends it."""

    def __init__(self, slice: LogSlice) -> None:
        super().__init__(None)
        self.slice = slice


class _BatchReader(DataSourceReader):
    def __init__(self, options: LogOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        given = self._options
        end = given.log.end if given.end is None else min(given.end, given.log.end)
        ranges = list(given.version_ranges(min(given.start, end), end))
        chosen = {each.version for each in ranges if each.version != NO_VERSION}
        if given.versions is not None and chosen:
            # Spark does not say when the job ends: the hold runs out after a while.
            given.versions.hold(chosen)
        return [_LogPartition(each) for part in ranges for each in given.slices_of(part)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._last: int | None = None  # where reading ends
        self._retained: int | None = None  # from where on versions are kept for this reader
        self._begun = StartPosition(options.log, options.name) if options.latest else None
        self._ended: int | None = None  # where the last batch ended that Spark committed

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        """Where a new stream begins.

        Spark asks at each start until the first batch is done: it does not record the beginning.
        """
        start = self._options.start if self._begun is None else self._begun.kept()
        return self._offset(start, NO_VERSION)

    def _offset(self, sequence: int, version: int) -> dict[str, Any]:
        return {"log": self._options.log.identity, "sequence": sequence, "version": version}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._options.most
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Later events are for the next run."""
        self._last = self._options.log.end

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch: of the log, of the version, or by the limit."""
        log, begin = self._options.log, start["sequence"]
        end = log.end if self._last is None else max(begin, self._last)
        if begin > end or start.get("log") not in (None, log.identity):
            raise SparkError(
                f"{log.folder}: ends at {end}, and the checkpoint has read up to {begin} of "
                "another log, or of one that was made anew; give each log a checkpoint of its own"
            )
        if isinstance(limit, ReadMaxRows):
            end = after_events(log, begin, end, limit.max_rows)
        self._retain(begin, end)
        part = self._options.first_range(begin, end)
        return start if part is None else self._offset(part.end, part.version)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """The end of the log, by which Spark shows the backlog."""
        return self._offset(self._options.log.end, NO_VERSION)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Tasks with the version that Spark recorded for the batch."""
        part = VersionRange(start["sequence"], end["sequence"], end["version"])
        self._retain(part.start, part.end)
        return [_LogPartition(each) for each in self._options.slices_of(part)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Release the versions before this, and the record of the beginning.

        Spark does not sync its commits. But the sink synced the end of this batch, so Spark does
        not ask for the beginning again once there is another batch before this one.
        """
        if self._begun is not None and self._ended not in (None, end["sequence"]):
            self._begun.forget()
            self._begun = None
        self._ended = end["sequence"]
        self._retain(end["sequence"], end["sequence"])

    def _retain(self, start: int, end: int) -> None:
        """Keep the version that a range is matched with, before it is chosen."""
        given = self._options
        if given.versions is None or not given.name:
            return
        first = next_event(given.log, start, end)
        needed = start if first is None else first
        if needed != self._retained:
            given.versions.retain(given.name, needed)
            self._retained = needed


def _read(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if isinstance(partition, _LogPartition):  # without partitions, Spark still reads an empty one
        from tamis.spark.stream.log_task import LogTask  # see `log_slice`

        yield from LogTask(**vars(partition.slice)).run()


def _names(given: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (given or "").split(",") if name.strip())


def _arrow_types(schema: StructType, columns: Sequence[str]) -> tuple[pa.DataType, ...]:
    from pyspark.sql.pandas.types import to_arrow_type

    return tuple(to_arrow_type(schema[name].dataType, timezone="UTC") for name in columns)


def _whole(given: Any, option: str, least: int = 1) -> int | None:
    text = given.get(option.lower())
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise SparkError(f"{option} is a whole number, {least} or more; got {text!r}")
    return number
