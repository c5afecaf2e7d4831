"""`format("tamis")`: the events of a log with the subscriptions that each of them satisfies.

Events are matched where they are read, in the worker that maps the log into memory, so that only
answers pass through the JVM. Rows are pairs:

    sequence      of the event in the log
    subscription  its id
    …             attributes of the event, those asked for by the option `columns`
    reason, raw   null; of an event that could not be matched, why, and the event as it came

An offset is a sequence number, and the version of the index that the batch is matched with. As the
log has events and changes of subscriptions in one sequence, the number says who is live at each
event; so a batch that is run again gives what it gave before, whatever has changed since.

A version knows who is live from its sequence number on, and nothing of events before it. So a batch
ends where a newer version begins: that one is for the events that come next, and not for the batch
after those.

Options: `path` of the log; `index`, a folder of versions (without one, all subscriptions come from
the log); `columns`, names with commas; `maxEventsPerTrigger`; `partitions`, how many tasks at most;
`startingSequence`, a number or "latest", for a stream that begins; `endingSequence`, for a batch;
`name`, under which the folder of versions keeps what this reader still needs, and the log where a
stream began that reads from the latest event on; no other reader has it; `operators`, names of
modules that workers import, because conditions call operators that they declare; `report`, a folder
in which workers note what operators were asked and did wrong, for `tamis.spark.report`.
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

from tamis.errors import SparkError, StoreError, nearest
from tamis.files.json_document import read_json, write_json
from tamis.files.names import chosen_name
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import sync_folder
from tamis.model.schema import Schema
from tamis.replay.log_events import after_events, log_shares, next_event
from tamis.replay.parts import RAW, REASON, SEQUENCE, SUBSCRIPTION
from tamis.spark.frames.frame_columns import column_types
from tamis.spark.stream.log_task import LogTask
from tamis.spark.stream.notification_sink import local
from tamis.spark.stream.progress import NO_VERSION
from tamis.store.log import Log
from tamis.store.versions import Versions

_READERS = "readers"


class Start:
    """Where a stream began that reads from the latest event on: LOG/readers/<name>.json."""

    def __init__(self, log: Log, name: str) -> None:
        self._log = log
        self._path = log.folder / _READERS / f"{name}.json"

    def kept(self) -> int:
        """What was said before, or else the end of the log, on disk when this returns."""
        if self._path.exists():
            return int(read_json(self._path, "a reader of a log", StoreError)["sequence"])
        start = self._log.end
        with os_errors_as(StoreError, f"{self._path}: cannot be written"):
            self._path.parent.mkdir(exist_ok=True)
            write_json(self._path, {"sequence": start})
            sync_folder(self._log.folder)
        return start

    def forget(self) -> None:
        """The checkpoint knows it by now: another stream of that name begins at its own time."""
        with os_errors_as(StoreError, f"{self._path}: cannot be removed"):
            self._path.unlink(missing_ok=True)


class Stretch(NamedTuple):
    """A range of the log, and the version that its events are matched with."""

    start: int
    end: int
    version: int


@dataclass
class Options:
    """What a user said, checked."""

    log: Log
    versions: Versions | None
    columns: tuple[str, ...]
    most: int | None  # events of a batch
    tasks: int
    start: int
    latest: bool  # whether that is where the log ended just now
    end: int | None
    name: str  # empty: nobody has to be told what it needs
    modules: tuple[str, ...]
    report: str | None

    @classmethod
    def read(cls, given: Any) -> Options:
        """From the options of a `DataSource`, whose names are in lower case."""
        path = given.get("path")
        if not path:
            raise SparkError('format("tamis") reads a log: .load(path), or .option("path", …)')
        log = Log.open(local(path))
        index = given.get("index")
        columns = _names(given.get("columns"))
        known = Schema.from_dict(log.schema).attributes
        for name in columns:
            if name not in known:
                hint = nearest(name, known)
                raise SparkError(
                    f"columns: the events have no attribute {name!r}"
                    + (f"; {hint}" if hint else "")
                )
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
        )

    def stretch(self, start: int, end: int) -> Stretch | None:
        """The events of a range that have the version of its first one; None where there are none.

        It ends where a newer version begins.
        """
        first = next_event(self.log, start, end)
        if first is None:
            return None
        known = [] if self.versions is None else [each.sequence for each in self.versions.all()]
        version = max((each for each in known if each <= first), default=NO_VERSION)
        return Stretch(start, min([end, *(each for each in known if each > first)]), version)

    def stretches(self, start: int, end: int) -> Iterator[Stretch]:
        """All events of a range."""
        while (stretch := self.stretch(start, end)) is not None:
            yield stretch
            start = stretch.end

    def ranges(self, stretch: Stretch) -> list[LogTask]:
        """Tasks for the events of a stretch: parts of it, for each shard of the subscriptions."""
        start, end, version = stretch
        found = None
        if version != NO_VERSION and self.versions is not None:
            # Should that have been taken away by somebody, others give the same answers: the log
            # itself does, if it has to.
            found = self.versions.at(version) or self.versions.at(start)
        folders = [] if found is None else [str(each) for each in found.shard_folders]
        sequence = 0 if found is None else found.sequence
        shards: list[tuple[int, str | None]] = [*enumerate(folders)] or [(0, None)]
        return [
            LogTask(
                str(self.log.folder),
                low,
                high,
                folder,
                sequence,
                shard,
                len(shards),
                self.columns,
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
        """As in `format(…)`."""
        return "tamis"

    def schema(self) -> StructType:
        """Sequence, subscription, the columns asked for, and what is wrong with a dead event."""
        options = Options.read(self.options)
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
        """Of a batch job."""
        return _Reader(Options.read(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Of a stream."""
        given = Options.read(self.options)
        if given.latest and not given.name:
            raise SparkError(
                "startingSequence: a stream that begins at the latest event needs a name, under "
                "which the log keeps where that was until the first batch is over: "
                '.option("name", …), or give a number'
            )
        return _StreamReader(given)


class _Task(InputPartition):
    """A range, as Spark hands it on."""

    def __init__(self, part: LogTask) -> None:
        super().__init__(None)
        self.part = part


class _Reader(DataSourceReader):
    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """From the first event to the last, or as the options say."""
        given = self._options
        end = given.log.end if given.end is None else min(given.end, given.log.end)
        stretches = list(given.stretches(min(given.start, end), end))
        chosen = {each.version for each in stretches if each.version != NO_VERSION}
        if given.versions is not None and chosen:
            # Spark does not say when the job is over: it is forgotten after a while.
            given.versions.hold(chosen)
        return [_Task(each) for stretch in stretches for each in given.ranges(stretch)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The pairs of a range."""
        return _read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Options) -> None:
        self._options = options
        self._last: int | None = None  # beyond which nothing is read
        self._told: int | None = None  # from where on versions are kept for this reader
        self._begun = Start(options.log, options.name) if options.latest else None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        """Where a new stream begins.

        Spark asks anew at each start, until the first batch is over: it keeps the end of that one,
        and not the beginning.
        """
        start = self._options.start if self._begun is None else self._begun.kept()
        return self._offset(start, NO_VERSION)

    def _offset(self, sequence: int, version: int) -> dict[str, Any]:
        return {"log": self._options.log.identity, "sequence": sequence, "version": version}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As the option says."""
        most = self._options.most
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What comes from now on is for the next time."""
        self._last = self._options.log.end

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """As far as events and their version reach, or the limit; no events make no batch."""
        log, begin = self._options.log, start["sequence"]
        end = log.end if self._last is None else max(begin, self._last)
        if begin > end or start.get("log") not in (None, log.identity):
            raise SparkError(
                f"{log.folder}: ends at {end}, and the checkpoint has read up to {begin} of "
                "another log, or of one that was made anew; give each log a checkpoint of its own"
            )
        if isinstance(limit, ReadMaxRows):
            end = after_events(log, begin, end, limit.max_rows)
        self._tell(begin, end)
        stretch = self._options.stretch(begin, end)
        return start if stretch is None else self._offset(stretch.end, stretch.version)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """How far the log reaches: what is between is the backlog."""
        return self._offset(self._options.log.end, NO_VERSION)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """With the version that was journaled with the batch."""
        stretch = Stretch(start["sequence"], end["sequence"], end["version"])
        self._tell(stretch.start, stretch.end)
        return [_Task(each) for each in self._options.ranges(stretch)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The pairs of a range."""
        return _read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Versions before this are not needed for a replay any more, nor is the beginning."""
        if self._begun is not None:
            self._begun.forget()
            self._begun = None
        self._tell(end["sequence"], end["sequence"])

    def _tell(self, start: int, end: int) -> None:
        """Have the version kept that a range is matched with, before it is chosen."""
        given = self._options
        if given.versions is None or not given.name:
            return
        first = next_event(given.log, start, end)
        needed = start if first is None else first
        if needed != self._told:
            given.versions.retain(given.name, needed)
            self._told = needed


def _read(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if isinstance(partition, _Task):  # Spark asks for one partition even where there is none
        yield from partition.part.run()


def _names(given: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (given or "").split(",") if name.strip())


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
