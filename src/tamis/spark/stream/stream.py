"""A stream from a log to notifications, and all that has to go on beside it.

`Stream` starts the query, follows it, keeps the store in order in a thread, and stops all of it in
an order in which nothing is left half done. What Spark and its workers say goes to files: the
terminal is for people.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from tamis.errors import SparkError, StoreError
from tamis.files.os_errors import os_errors_as
from tamis.replay.log_events import next_event
from tamis.spark.jobs.compile_index import CompiledIndex, compile_log
from tamis.spark.runtime import operator_reports as reports
from tamis.spark.runtime.error_text import reason
from tamis.spark.runtime.sessions import end, retained, session
from tamis.spark.stream import notification_sink as sink
from tamis.spark.stream.housekeeping import Keeper
from tamis.spark.stream.progress import Standing, Watch, query_of
from tamis.spark.stream.stream_checks import alone, check_apart, check_read, check_written
from tamis.store.log import Log
from tamis.store.subscription_snapshot import SubscriptionSnapshot
from tamis.store.versions import Versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tamis.operators.report import Report

LOGS = "logs"
_TURN = 1.0  # seconds between two turns of the keeper
_LONG = 24 * 3600.0  # seconds after which what others have not committed is taken for left over
_TAG = "tamis-compile"


@dataclass(frozen=True)
class Job:
    """What to run: the options of `tamis spark run`."""

    log: Path
    index: Path
    out: Path
    checkpoint: Path
    columns: tuple[str, ...] = ()
    most: int | None = None  # events of a batch
    trigger: int | None = 0  # milliseconds from batch to batch; None: all there is, and end
    every: int | None = None  # changes after which a version is compiled
    modules: tuple[str, ...] = ()  # that declare operators which conditions call
    options: dict[str, str] = field(default_factory=dict)  # more for format("tamis")


class Stream:
    """A job that runs: made, opened, prepared, started, looked at now and then, and stopped.

    From when it is made nobody else may write to its folder. Used as a context manager, it is
    stopped at the end, however far it has come.

    Args:
        job: what to run.
        snapshot: kept up to date, if given.
        spark: a session to use, which stays; without one, `open` starts one and `stop` ends it.
    """

    def __init__(
        self,
        job: Job,
        snapshot: SubscriptionSnapshot | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        self.job, self._session, self._owned = job, spark, spark is None
        check_read(job.log, job.index, job.columns)
        check_apart(job.out, job.checkpoint)
        self.log, self.versions = Log.open(job.log), Versions(job.index)
        self.keeper = Keeper(
            self.log, self.versions, self._compile, every=job.every, snapshot=snapshot, out=job.out
        )
        self._stopping = Event()
        self._turning = Thread(target=self._turns, name="tamis-keeper", daemon=True)
        self._query: StreamingQuery | None = None
        self._watch: Watch | None = None
        self._last: Standing | None = None
        self._held = ExitStack()
        self._held.enter_context(alone(job.out))
        try:
            self._held.enter_context(alone(job.checkpoint, "using it"))
        except BaseException:
            self._held.close()
            raise

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
    def _asked(self) -> Path:
        return self.job.out / LOGS / "operators"

    def open(self, master: str | None = None, **config: Any) -> SparkSession:
        """Start a session. It takes some seconds."""
        check_written(self.job.out, self.job.checkpoint)
        self._session = quiet_session(self.job.out, master, **config)
        return self._session

    @property
    def position(self) -> int:
        """The sequence number from which the next batch reads.

        A stream that is new begins at the first event: changes before it then belong to the
        version that it is matched with, and need not be read one by one.
        """
        query, first, now = query_of(self.job.checkpoint), first_event(self.log), time.time()
        if query is None:
            return first
        return max(first, Watch(self.log, self.job.out, query, now).look(now).sequence)

    def prepare(self) -> CompiledIndex | None:
        """Compile a version for where the stream begins, if there is none and it is worth it."""
        at = self.position
        if self.versions.at(at) is not None or not self.log.counts(0, at)[1]:
            return None
        return self._compile(at)

    def start(self) -> None:
        """Start the query, and the keeper."""
        job, began = self.job, time.time()
        self._sweep()
        sink.sweep(job.out, _LONG)
        reports.clear(self._asked)
        options = {"index": str(job.index), "startingSequence": str(first_event(self.log))}
        options |= {"columns": ",".join(job.columns), "operators": ",".join(job.modules)}
        options |= {"name": reader(job.checkpoint), "report": str(self._asked), **job.options}
        if job.most is not None:
            options["maxEventsPerTrigger"] = str(job.most)
        try:
            stream = self._spark.readStream.format("tamis").options(**options).load(str(job.log))
            writer = stream.writeStream.format("tamis_notifications").option(
                "checkpointLocation", str(job.checkpoint)
            )
            if job.trigger is None:
                writer = writer.trigger(availableNow=True)
            else:
                writer = writer.trigger(processingTime=f"{job.trigger} milliseconds")
            self.keeper.keep = retained(self._spark)
            self._query = writer.start(str(job.out))
        except Exception as why:  # noqa: BLE001 - Spark has many, and all are told alike
            raise self._told(why) from None
        self._watch = Watch(self.log, job.out, str(self._query.id), began)
        self._last = self._watch.look(began)
        self._turning.start()

    @property
    def running(self) -> bool:
        """Whether it is under way."""
        if self._query is None:
            return False
        try:
            return bool(self._query.isActive)
        except Exception as why:  # noqa: BLE001 - as above; a Connect server is asked, or has gone
            raise self._told(why) from None

    def look(self) -> Standing:
        """How it stands."""
        assert self._watch is not None
        self._last = self._watch.look(time.time())
        return self._last

    def forget(self) -> None:
        """Take rates and latencies from here on: the first batch waits until all is started."""
        if self._watch is not None:
            self._watch.forget()

    def newest(self, kind: str = sink.NOTIFICATIONS, rows: int = 100) -> list[dict[str, Any]]:
        """Some of the last notifications, or dead letters."""
        return [] if self._watch is None else self._watch.newest(kind, rows)

    def operators(self) -> Report:
        """What operators were asked since the start, and what went wrong with them."""
        return reports.report(self._asked)

    def check(self) -> None:
        """Raise what the query died of, if it did."""
        try:
            why: Exception | None = None if self._query is None else self._query.exception()
        except Exception as gone:  # noqa: BLE001 - as above
            why = gone
        if why is not None:
            raise self._told(why)

    def stop(self) -> None:
        """End all of it: a batch under way is dropped, and the next start runs it."""
        self._stopping.set()
        if self._query is not None:
            with suppress(Exception):  # it may have died by itself, which `check` tells
                self._query.stop()
        if self._turning.is_alive():  # before the keeper is closed: it could compile once more
            self._turning.join()
        self.interrupt()
        self.keeper.close()
        if self._session is not None and self._owned:
            end(self._session)
            self._session = None
            # From here on its files in the folder are just those that manifests name.
            self._sweep()
        self._held.close()

    def _sweep(self) -> None:
        """Remove what batches have left that came to nothing; jobs may add to the same folder."""
        query = query_of(self.job.checkpoint)
        if query is not None:
            sink.sweep(self.job.out, 0.0, query=query)

    def interrupt(self) -> None:
        """Have Spark drop a compilation that is under way."""
        with suppress(Exception):  # there may be none
            self._spark.interruptTag(_TAG)

    def _compile(self, sequence: int | None = None) -> CompiledIndex:
        self._spark.addTag(_TAG)  # holds for this thread
        try:
            modules = self.job.modules
            return compile_log(
                self._spark, self.log, self.versions, sequence=sequence, modules=modules
            )
        finally:
            self._spark.removeTag(_TAG)

    def _turns(self) -> None:
        while not self._stopping.wait(_TURN):
            self.keeper.turn(self._last)

    def _told(self, why: BaseException) -> SparkError:
        logs = self.job.out / LOGS
        with suppress(OSError):
            logs.mkdir(exist_ok=True)
            with (logs / "driver.log").open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now(UTC).isoformat()} the stream stopped: {why}\n")
        return SparkError(f"the stream stopped: {reason(why)}; {logs} has more")


def reader(checkpoint: Path) -> str:
    """The name under which the versions that a stream may need are kept, whoever sweeps."""
    return f"run-{hashlib.sha256(str(checkpoint).encode()).hexdigest()[:16]}"


def first_event(log: Log) -> int:
    """The sequence number of the first event of a log; its end, where there is none."""
    found = next_event(log)
    return log.end if found is None else found


# -- a session that says nothing -------------------------------------------------------------------

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def quiet_session(out: Path, master: str | None = None, **config: Any) -> SparkSession:
    """A session whose messages go to files in a folder of `out`, and not to the terminal."""
    logs = out / LOGS
    with os_errors_as(StoreError, f"{logs}: cannot be written to"):
        logs.mkdir(parents=True, exist_ok=True)
        settings = logs / "log4j2.properties"
        text = _LOG4J.format(file=_escaped(str((logs / "spark.log").absolute())))
        settings.write_text(text, encoding="ascii")
    handler = _DriverLog(logs / "driver.log", delay=True)
    for name in ("py4j", "pyspark"):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).propagate = False
    java = f"-Dlog4j2.configurationFile={settings.absolute().as_uri()}"
    with _errors_to(logs / "stderr.log"):
        try:
            return session(master, **{"spark.driver.extraJavaOptions": java, **config})
        except SparkError:
            raise
        except Exception as why:  # noqa: BLE001 - as above
            raise SparkError(f"Spark does not start: {reason(why)}; {logs} has more") from None


class _DriverLog(logging.FileHandler):
    """One that keeps to itself that it cannot be written: a full disk is told by what matters."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging calls it
        """Instead of a traceback on the terminal."""


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """What is started meanwhile has this file as its standard error, and so have its children."""
    sys.stderr.flush()
    kept, opened = os.dup(2), os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(opened, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(opened)


def _escaped(text: str) -> str:
    """As a file of Java properties has it.

    >>> _escaped("/tmp/é")
    '/tmp/\\\\u00e9'
    """
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    plain = ["\\\\" if code == ord("\\") else chr(code) for code in codes]
    return "".join(
        each if code < 128 else f"\\u{code:04x}" for each, code in zip(plain, codes, strict=True)
    )
