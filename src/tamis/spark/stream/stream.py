"""A stream from a log to notifications, with its housekeeping.

`Stream` starts the query, follows it, runs the housekeeping in a thread, and stops all in an order
that leaves nothing half done. Messages of Spark and its workers go to files, not to the terminal.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from tamis.errors import SparkError, StoreError
from tamis.files.checksum import short_hash
from tamis.files.lock import locked
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder
from tamis.replay.log_events import next_event
from tamis.replay.manifests import manifests, sweep
from tamis.replay.matching_shifts import MatchingShifts, Shift
from tamis.replay.parts import NOTIFICATIONS
from tamis.spark.jobs.compile_index import CompiledIndex, compile_log
from tamis.spark.runtime import operator_reports as reports
from tamis.spark.runtime.error_text import error_text
from tamis.spark.runtime.quiet_session import quiet_session
from tamis.spark.runtime.sessions import end, gone, java_ended, retained_batches
from tamis.spark.stream.checkpoint import mend_checkpoint
from tamis.spark.stream.housekeeping import Housekeeper
from tamis.spark.stream.log_source import LogOptions
from tamis.spark.stream.progress import StreamStatus, StreamWatch, query_of
from tamis.spark.stream.shift import spark_shift
from tamis.spark.stream.topic_follower import TopicFollower, TopicTarget
from tamis.store.log import Log
from tamis.store.subscription_snapshot import SubscriptionSnapshot
from tamis.store.versions import Versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tamis.operators.report import Report

LOGS = "logs"
_TURN = 1.0  # seconds between two turns of the housekeeping
_LONG = 24 * 3600.0  # seconds after which uncommitted parts of others are leftovers
_TAG = "tamis-compile"
_OF_AN_INDEX = re.compile(r"v\d{20}|readers|jobs|pins|lock|lost\+found|\..*")


@dataclass(frozen=True)
class StreamJob:
    """What to run: the options of `tamis spark run`."""

    log: Path
    index: Path
    out: Path
    checkpoint: Path
    columns: tuple[str, ...] = ()
    most: int | None = None  # events of a batch
    trigger: int | None = 0  # milliseconds from batch to batch; None: all events, then end
    every: int | None = None  # changes after which a version is compiled
    modules: tuple[str, ...] = ()  # that declare operators which conditions call
    options: dict[str, str] = field(default_factory=dict)  # others of format("tamis")
    topic: TopicTarget | None = None  # where notifications go besides files
    shift: Shift | None = None  # of a stream that matches for a service


def service_job(folder: Path, **options: Any) -> StreamJob:
    """The job that matches for the service in a data folder; its shift must be that of Spark."""
    shifts = MatchingShifts(folder)
    shift = spark_shift(shifts)
    places = (shifts.log, shifts.index, shifts.out, shifts.checkpoint(shift))
    return StreamJob(*places, shift=shift, **options)


class Stream:
    """A running job: made, opened, prepared, started, looked at now and then, and stopped.

    Once it is made, no other stream can write to its folder. As a context manager, it is stopped at
    the end, however far it has come.

    Args:
        job: what to run.
        snapshot: kept up to date, if given.
        spark: a session to use; without one, `open` starts one and `stop` ends it.
        owned: whether `stop` ends the session that was given, too.
    """

    def __init__(
        self,
        job: StreamJob,
        snapshot: SubscriptionSnapshot | None = None,
        spark: SparkSession | None = None,
        *,
        owned: bool = False,
    ) -> None:
        self.job, self._session, self._owned = job, spark, owned or spark is None
        check_read(job.log, job.index, job.columns)
        if job.out.resolve() == job.checkpoint.resolve():
            raise SparkError(
                f"{job.out}: cannot be the checkpoint as well; name another folder for that"
            )
        self.log, self.versions = Log.open(job.log), Versions(job.index)
        self.keeper = Housekeeper(
            self.log,
            self.versions,
            self._compile,
            every=job.every,
            snapshot=snapshot,
            out=job.out,
            expires=job.shift is None,
        )
        self._stopping = Event()
        self._turning = Thread(target=self._turns, name="tamis-keeper", daemon=True)
        self._query: StreamingQuery | None = None
        self._watch: StreamWatch | None = None
        self._last: StreamStatus | None = None
        self.follower: TopicFollower | None = None
        with ExitStack() as held:
            held.enter_context(only_stream(job.out))
            held.enter_context(only_stream(job.checkpoint, "using it"))
            self._held = held.pop_all()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _spark(self) -> SparkSession:
        if self._session is None:
            raise SparkError("the stream has no session yet: open it first")
        return self._session

    @property
    def _reports(self) -> Path:
        return self.job.out / LOGS / "operators"

    def open(self, master: str | None = None, **config: Any) -> SparkSession:
        """Start a session. It takes some seconds."""
        if self.job.shift is None:
            check_written(self.job.out, self.job.checkpoint)
        self._session = quiet_session(self.job.out / LOGS, master, **config)
        return self._session

    @property
    def position(self) -> int:
        """The sequence number from which the next batch reads.

        A new stream begins at the first event: the changes before it are in the version.
        """
        query, first, now = query_of(self.job.checkpoint), self._first, time.time()
        if query is None:
            return first
        watch = StreamWatch(self.log, self.job.out, query, now, first)
        return max(first, watch.look(now).sequence)

    @property
    def _first(self) -> int:
        """The sequence number from which on the stream reads."""
        return first_event(self.log) if self.job.shift is None else self.job.shift.start

    @property
    def superseded(self) -> Shift | None:
        """The shift that has begun after that of this stream."""
        if self.job.shift is None:
            return None
        now = MatchingShifts(self.job.out.parent).current()
        return None if now is None or now.name == self.job.shift.name else now

    def prepare(self) -> CompiledIndex | None:
        """Compile a version for the start of the stream, if it has none and there are changes."""
        at = self.position
        if self.versions.at(at) is not None or not self.log.counts(0, at)[1]:
            return None
        return self._compile(at)

    def start(self) -> None:
        job, began = self.job, time.time()
        mend_checkpoint(job.checkpoint, job.out)
        self._sweep()
        sweep(job.out, _LONG)
        reports.clear(self._reports)
        options = {
            "index": str(job.index),
            "startingSequence": str(self._first),
            "columns": ",".join(job.columns),
            "operators": ",".join(job.modules),
            "name": reader_name(job.checkpoint),
            "report": str(self._reports),
            **job.options,
        }
        if job.most is not None:
            options["maxEventsPerTrigger"] = str(job.most)
        try:
            stream = self._spark.readStream.format("tamis").options(**options).load(str(job.log))
            writer = stream.writeStream.format("tamis_notifications").option(
                "checkpointLocation", str(job.checkpoint)
            )
            if job.shift is not None:
                writer = writer.option("shift", job.shift.name)
            if job.trigger is None:
                writer = writer.trigger(availableNow=True)
            else:
                writer = writer.trigger(processingTime=f"{job.trigger} milliseconds")
            self.keeper.keep = retained_batches(self._spark)
            self._query = writer.start(str(job.out))
        except Exception as why:  # noqa: BLE001 - Spark has many kinds
            raise self._stopped(why) from None
        query = str(self._query.id)
        if job.topic is not None:
            self.follower = TopicFollower(job.topic, job.out, query, str(self.log.identity))
        self._watch = StreamWatch(self.log, job.out, query, began, self._first)
        self._last = self._watch.look(began)
        self._turning.start()

    @property
    def running(self) -> bool:
        """Whether events are matched, or notifications of them are on their way to a topic."""
        if self._query is None:
            return False
        try:
            active = bool(self._query.isActive)
            if self.follower is None:
                return active
            if not active:
                self.follower.finish()
            return self.follower.running
        except Exception as why:  # noqa: BLE001 - as above; a Connect server may be gone
            raise self._stopped(why) from None

    def look(self) -> StreamStatus:
        assert self._watch is not None
        self._last = self._watch.look(time.time())
        return self._last

    def forget(self) -> None:
        """Measure rates and latencies from here on: the first batch waits for the start."""
        if self._watch is not None:
            self._watch.forget()

    def newest(self, kind: str = NOTIFICATIONS, rows: int = 100) -> list[dict[str, Any]]:
        """Some of the last notifications, or dead letters."""
        return [] if self._watch is None else self._watch.newest(kind, rows)

    def operators(self) -> Report:
        """Calls and faults of operators since the start."""
        return reports.report(self._reports)

    def check(self) -> None:
        """Raise the error that ended the query, if there is one."""
        try:
            why: Exception | None = None if self._query is None else self._query.exception()
        except Exception as gone:  # noqa: BLE001 - as above
            why = gone
        if why is not None:
            raise self._stopped(why)
        if self.follower is not None and self.follower.failure is not None:
            raise SparkError(f"the stream stopped: {self.follower.failure}")

    def stop(self) -> None:
        """Stop. An unfinished batch is dropped, and the next start runs it."""
        self._stopping.set()
        if self._query is not None:
            with suppress(Exception):  # it may have died, which `check` raises
                self._query.stop()
        if self.follower is not None:
            self.follower.stop()
        if self._turning.is_alive():  # before `close`: it could compile once more
            self._turning.join()
        self.interrupt()
        self.keeper.close()
        if self._session is not None and self._owned:
            end(self._session)
            self._session = None
            # Without the session, no part is being written.
            self._sweep()
        if self.superseded is not None:  # nobody reads on from there
            self.versions.retain(reader_name(self.job.checkpoint), None)
        self._held.close()

    def _sweep(self) -> None:
        """Remove leftovers of this query; other jobs may write to the same folder."""
        query = query_of(self.job.checkpoint)
        if query is not None:
            sweep(self.job.out, 0.0, query=query)

    def interrupt(self) -> None:
        """Have Spark drop a running compilation."""
        with suppress(Exception):  # none may be running
            self._spark.interruptTag(_TAG)

    def _compile(self, sequence: int | None = None) -> CompiledIndex:
        try:
            self._spark.addTag(_TAG)  # holds for this thread
            modules = self.job.modules
            return compile_log(
                self._spark, self.log, self.versions, sequence=sequence, modules=modules
            )
        except Exception:
            if java_ended():
                raise gone() from None
            raise
        finally:
            with suppress(Exception):
                self._spark.removeTag(_TAG)

    def _turns(self) -> None:
        while not self._stopping.wait(_TURN):
            self.keeper.turn(self._last)

    def _stopped(self, why: BaseException) -> SparkError:
        logs = self.job.out / LOGS
        with suppress(OSError):
            logs.mkdir(exist_ok=True)
            with (logs / "driver.log").open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now(UTC).isoformat()} the stream stopped: {why}\n")
        if java_ended():
            return gone()
        return SparkError(f"the stream stopped: {error_text(why)}; {logs} has more")


def reader_name(checkpoint: Path) -> str:
    """The name of a stream as a reader, under which its versions are kept."""
    return f"run-{short_hash(str(checkpoint))}"


def first_event(log: Log) -> int:
    """The sequence number of the first event of a log; its end, if it has no events."""
    found = next_event(log)
    return log.end if found is None else found


# -- checks before Spark is started, which takes a while -------------------------------------------


def check_read(log: Path, index: Path, columns: tuple[str, ...]) -> None:
    """Refuse attributes that events do not have, and a folder that is not an index."""
    LogOptions.read({"path": str(log), "index": str(index), "columns": ",".join(columns)})
    if Versions(index).latest() is None and index.exists():
        strange = sorted(name for name in names_in(index) if not _OF_AN_INDEX.fullmatch(name))
        if strange:
            listed = ", ".join(strange[:5]) + (", …" if len(strange) > 5 else "")
            raise SparkError(
                f"{index}: is not a folder of compiled versions, it holds {listed}; name "
                "another one, or one that is empty or does not exist yet"
            )


def check_written(out: Path, checkpoint: Path) -> None:
    """Refuse a folder and a checkpoint that do not belong together.

    If another query has written to the folder, this one would start over, and all notifications
    would come twice. If the query of the checkpoint has written to another folder, this one would
    lack those notifications.
    """
    mine = query_of(checkpoint)
    queries = {each.get("query") for each in manifests(out)} - {None}
    if mine in queries:
        return
    if queries:
        raise SparkError(
            f"{out}: holds notifications of another stream than that of the checkpoint "
            f"{checkpoint}, which would write them again; name another folder to write to, or the "
            "checkpoint of that stream"
        )
    if mine is not None and any((checkpoint / "commits").glob("[0-9]*")):
        raise SparkError(
            f"{checkpoint}: is the checkpoint of a stream that has written to another folder than "
            f"{out}, which would lack all that came before; name that folder, or another "
            "checkpoint to begin from the start"
        )


@contextmanager
def only_stream(folder: Path, what: str = "writing here") -> Iterator[None]:
    """Lock a folder against a second stream."""
    with os_errors_as(StoreError, f"{folder}: cannot be written to"):
        make_folder(folder)
        with ExitStack() as held:
            try:
                held.enter_context(locked(folder / "lock", wait=False))
            except BlockingIOError:
                raise SparkError(
                    f"{folder}: a stream is {what} already; stop it, or choose another folder"
                ) from None
            yield
