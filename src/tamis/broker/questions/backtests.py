"""Back-tests in the broker: how many of the events that are kept a condition would have matched.

They run one after the other, in a thread of their own with an engine of their own, beside matching.
Large ones run on Spark, in another process. A caller gets the result at once if there is one soon,
and asks again later otherwise.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from threading import Lock
from typing import NamedTuple

import msgspec

from tamis.broker.access.caller import READER, Caller
from tamis.broker.questions.spark_backtest import backtest_on_spark, has_spark
from tamis.broker.sequence.answers import AnsweredWith
from tamis.engine import Engine
from tamis.errors import BrokerError, NotFoundError, QuotaError
from tamis.language.dialects import NATIVE
from tamis.operators.enabled_operators import EnabledOperators
from tamis.replay.past.log_backtest import (
    BUCKETS,
    SAMPLES,
    BacktestCancelledError,
    LogBacktest,
    backtest_log,
    range_of,
)
from tamis.store.log import Log

EVENTS = 10_000_000  # more are counted on Spark
_WAITING = 10  # back-tests that run or wait
_KEPT = 100  # results that are remembered
_REST = 0.0005  # seconds between two batches: matching comes first


class BacktestQuestion(NamedTuple):
    """What to test: a condition, and the part of the log."""

    condition: str
    language: str = NATIVE
    first: int | None = None
    end: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    samples: int = SAMPLES
    buckets: int = BUCKETS


class BacktestJob:
    """A back-test that runs, waits, or is done."""

    def __init__(self, owner: str | None, events: int) -> None:
        self.id, self.owner, self.events = secrets.token_urlsafe(16), owner, events
        self.done = 0  # events
        self.cancelled = False
        self.result: Future[LogBacktest] = Future()

    def note(self, done: int) -> bool:
        """Note the progress; whether to go on."""
        self.done = done
        time.sleep(_REST)
        return not self.cancelled


class Backtests:
    """The back-tests of a broker."""

    def __init__(self, log: Log, operators: EnabledOperators, most: int = EVENTS) -> None:
        self._log, self._operators, self._most = log, operators, most
        self._pool = ThreadPoolExecutor(1, "tamis-backtest")
        self._on_spark = ThreadPoolExecutor(1, "tamis-backtest-spark")
        self._lock = Lock()
        self._jobs: OrderedDict[str, BacktestJob] = OrderedDict()

    def start(self, asked: BacktestQuestion, caller: Caller) -> BacktestJob:
        """Begin a back-test. A wrong condition is refused."""
        caller.require(READER)
        with ExitStack() as opened:
            engine = opened.enter_context(Engine(self._log.schema_at(), operators=self._operators))
            engine.subscribe(asked.condition, language=asked.language)
            first, end = range_of(self._log, asked.first, asked.end, asked.since, asked.until)
            job = BacktestJob(caller.name, self._log.counts(first, end)[0])
            self._accept(job)
            if job.events > self._most:
                self._on_spark.submit(self._run_on_spark, job, first, end, asked)
            else:
                self._pool.submit(self._run, job, engine, first, end, asked)
                opened.pop_all()  # the thread closes it
        return job

    def _accept(self, job: BacktestJob) -> None:
        """Refuse a back-test that is too long, or one too many."""
        if job.events > self._most and not has_spark():
            raise BrokerError(
                f"these are {job.events:,} events, and the service tests more than {self._most:,} "
                "on Spark, which is not installed here; ask for fewer, or have tamis[spark] "
                "installed"
            )
        with self._lock:
            # Those that were cancelled count too: each waits for its turn to end.
            under_way = sum(not each.result.done() for each in self._jobs.values())
            if under_way >= _WAITING:
                raise QuotaError("too many back-tests are waiting; try again later", after=5.0)
            self._jobs[job.id] = job
            for id in [id for id, each in self._jobs.items() if each.result.done()][:-_KEPT]:
                del self._jobs[id]

    def _run(
        self, job: BacktestJob, engine: Engine, first: int, end: int, asked: BacktestQuestion
    ) -> None:
        with engine, AnsweredWith(job.result):
            found = backtest_log(
                self._log,
                engine,
                first,
                end,
                buckets=asked.buckets,
                samples=asked.samples,
                progress=job.note,
            )
            job.result.set_result(found)

    def _run_on_spark(
        self, job: BacktestJob, first: int, end: int, asked: BacktestQuestion
    ) -> None:
        log = self._log
        with AnsweredWith(job.result):
            if job.cancelled:
                raise BacktestCancelledError("the back-test was cancelled")
            question = {
                "folder": str(log.folder),
                "condition": asked.condition,
                "language": asked.language,
                "operators": self._operators.entries,
                "schema": log.end,
                "first": first,
                "end": end,
                "buckets": asked.buckets,
                "samples": asked.samples,
            }
            text = msgspec.json.encode(list(question.values()))  # in the order of its fields
            job.result.set_result(
                backtest_on_spark(text, lambda share: job.note(int(share * job.events)))
            )

    def job(self, id: str, caller: Caller) -> BacktestJob:
        """A back-test of a caller."""
        with self._lock:
            job = self._jobs.get(id)
        if job is None or job.cancelled or not (job.owner is None or caller.owns(job.owner)):
            raise NotFoundError(f"there is no back-test {id!r}")
        return job

    def cancel(self, id: str, caller: Caller) -> None:
        """Stop a back-test, and forget it."""
        self.job(id, caller).cancelled = True

    def stop(self) -> None:
        """Stop all."""
        with self._lock:
            for each in self._jobs.values():
                each.cancelled = True
        for pool in (self._pool, self._on_spark):
            pool.shutdown(cancel_futures=True)
