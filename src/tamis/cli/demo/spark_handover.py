"""Spark takes the matching over from a service, while both run.

Everything slow comes before the switch: Java, the compiled loops of the workers, a version of the
subscriptions, and workers that have it. Meanwhile the service matches. The switch is at one
sequence number: no event is matched twice, and none is skipped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.demo.warmup import KernelWarmup
from tamis.errors import SparkError, TamisError, counted
from tamis.replay.matching_shifts import INLINE, SPARK, MatchingShifts
from tamis.store import Log, Versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.spark.stream.stream import Stream

_TAG = "tamis-demo"
_WARM = 2_000  # the last rows of the log, matched once before the switch
_POLL = 0.2  # seconds


class SparkHandover:
    """Starts Spark for the data folder of a service, and lets it match.

    Args:
        folder: the data folder.
        columns: attributes that notifications have.
        master: URL of a Spark master; None: this machine.
        complete: waits so many seconds until all subscriptions are in the log; whether they are.
        tell: is called with a line for each step that is done, and its seconds.
    """

    def __init__(
        self,
        folder: Path,
        columns: tuple[str, ...],
        master: str | None,
        complete: Callable[[float], bool],
        tell: Callable[[str, float], object],
    ) -> None:
        self._folder, self._columns, self._master = folder, columns, master
        self._complete, self._tell = complete, tell
        self._shifts = MatchingShifts(folder)
        self._warmup = KernelWarmup(self._logs / "warmup.log")
        self._session: SparkSession | None = None
        self._what, self._since = "", 0.0
        self._stopping = False
        self._stream: Stream | None = None
        self._matches = False  # whether it has matched a batch
        self.start = 0  # the sequence number from which on Spark matches
        self.failure: str | None = None  # why it does not

    @property
    def _logs(self) -> Path:
        return self._shifts.out / "logs"

    @property
    def stream(self) -> Stream | None:
        """The stream, once Spark matches."""
        return self._stream if self._matches else None

    @property
    def step(self) -> str:
        """What it is doing, for the screen."""
        return f"{self._what}, {time.monotonic() - self._since:.0f} s so far" if self._what else ""

    def run(self) -> None:
        """Do everything. If it fails, the service goes on matching, or matches again."""
        try:
            self._prepare()
            self._switch()
        except Exception as why:  # noqa: BLE001 - Spark raises many kinds
            if not self._stopping:
                self.give_up(why)
        finally:
            self._what = ""

    def give_up(self, why: BaseException) -> None:
        """Let the service match again."""
        first = (str(why) or type(why).__name__).partition("\n")[0].partition("; there are")[0]
        self.failure = first if isinstance(why, TamisError) else f"{type(why).__name__}: {first}"
        self.stop()
        now = self._shifts.current()
        if now is not None and now.matching == SPARK:
            self._shifts.begin(Log.open(self._shifts.log), INLINE)

    def interrupt(self) -> None:
        """Drop what Spark is doing: the user wants to stop."""
        self._stopping = True
        self._warmup.stop()
        if self._session is not None:
            with suppress(Exception):  # nothing may be running
                self._session.interruptTag(_TAG)

    def stop(self) -> None:
        """Stop the stream, and end Spark."""
        self._warmup.stop()
        stream, self._stream, self._matches = self._stream, None, False
        if stream is not None:
            stream.stop()
        elif self._session is not None:
            from tamis.spark.runtime.sessions import end

            end(self._session)
        self._session = None

    def _prepare(self) -> None:
        from tamis.cli.spark.session import hide_py4j
        from tamis.spark.jobs.compile_index import compile_log
        from tamis.spark.runtime.quiet_session import quiet_session

        self._begin("starting Spark")
        hide_py4j()
        spark = quiet_session(self._logs, self._master, **{"spark.ui.enabled": False})
        self._session = spark
        self._say(f"Spark {spark.version} started")
        self._check()
        self._begin("compiling loops for Spark's workers")
        self._warmup.wait()
        self._check()
        self._say("the loops of Spark's workers are compiled")
        self._begin("waiting for all subscriptions")
        while not self._complete(_POLL):
            self._check()
        self._begin("compiling the subscriptions")
        spark.addTag(_TAG)  # holds for this thread
        log = Log.open(self._shifts.log)
        made = compile_log(spark, log, Versions(self._shifts.index))
        self._say(f"{counted(made.subscriptions, 'subscription')} compiled for Spark")
        self._check()
        self._begin("starting Spark's workers")
        reader = spark.read.format("tamis").options(**self._options(log))
        reader.load(str(self._shifts.log)).write.format("noop").mode("overwrite").save()
        spark.removeTag(_TAG)

    def _options(self, log: Log) -> dict[str, Any]:
        """Of a batch over the last rows of the log."""
        start = max(log.begin, log.end - _WARM)
        return {
            "index": str(self._shifts.index),
            "startingSequence": str(start),
            "columns": ",".join(self._columns),
        }

    def _switch(self) -> None:
        from tamis.spark.stream.stream import Stream, service_job

        self._check()
        self._begin("handing over to Spark")
        self._shifts.begin(Log.open(self._shifts.log), SPARK)
        job = service_job(self._folder, columns=self._columns)
        self._stream = stream = Stream(job, spark=self._session, owned=True)
        stream.prepare()
        stream.start()
        self.start = 0 if job.shift is None else job.shift.start
        while stream.running and not stream.look().batches and not self._stopping:
            time.sleep(_POLL)
        stream.check()
        self._matches = True
        self._say(f"Spark matches from sequence number {self.start:,} on")

    def _begin(self, what: str) -> None:
        self._what, self._since = what, time.monotonic()

    def _say(self, what: str) -> None:
        self._tell(what, time.monotonic() - self._since)

    def _check(self) -> None:
        if self._stopping:
            raise SparkError("stopped during the start")
