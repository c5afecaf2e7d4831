"""Redundancy reports on the live subscriptions: which of them say nothing that others do not say.

A report takes seconds to minutes, all of a core and much memory. So it is made by a child process,
which lets the broker come first. The broker only reads its conditions, in small pages. One report
is made at a time, and the last one is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any

import msgspec
import pyarrow as pa

from tamis.broker.access.caller import ADMIN, Caller
from tamis.broker.questions.question_process import question_process
from tamis.broker.sequence.answers import AnsweredWith
from tamis.broker.state import State
from tamis.errors import BrokerError, NotFoundError
from tamis.operators.enabled_operators import EnabledOperators
from tamis.store.changes import ID_TYPES
from tamis.store.log import Log

QUESTION = b"tamis.question"  # in the metadata of the stream of conditions
SHOWN = 50  # entries of a kind that a report has
_MODULE = "tamis.broker.questions.live_redundancy"
_PAGE = 2000  # conditions that are read at a time: others may ask the database in between
_REST = 0.002  # seconds between two pages
_FIRST = "SELECT id, condition, language FROM subscriptions ORDER BY id LIMIT ?"
_NEXT = "SELECT id, condition, language FROM subscriptions WHERE id > ? ORDER BY id LIMIT ?"


class RedundancyCancelledError(BrokerError):
    """Somebody stopped the report."""


class RedundancyJob:
    """A report that is made, or was."""

    def __init__(self, began: int, live: int) -> None:
        self.began = began  # in microseconds since 1970
        self.step, self.done, self.total = "Reading subscriptions", 0, live
        self.cancelled = False
        self.result: Future[dict[str, Any]] = Future()

    def look(self) -> None:
        """Raise if somebody has stopped it."""
        if self.cancelled:
            raise RedundancyCancelledError("the report was stopped")


class RedundancyReports:
    """Makes the reports of a broker."""

    def __init__(
        self,
        log: Log,
        state: State,
        operators: EnabledOperators,
        now: Callable[[], int],
        most: int,
    ) -> None:
        self._log, self._state, self._operators = log, state, operators
        self._now, self._most = now, most
        self._lock = Lock()
        self._job: RedundancyJob | None = None
        self._thread: Thread | None = None

    def start(self, caller: Caller) -> RedundancyJob:
        """Begin a report. If one is being made, that is it."""
        caller.require(ADMIN)
        with self._lock:
            if self._job is None or self._job.result.done():
                self._begin()
            assert self._job is not None
            return self._job

    def _begin(self) -> None:
        live = self._state.count()
        if live > self._most:
            raise BrokerError(
                f"there are {live:,} live subscriptions, and a report compares at most "
                f"{self._most:,} (limit-redundancy): it takes memory and time for each"
            )
        self._job = RedundancyJob(self._now(), live)
        self._thread = Thread(
            target=self._run, args=(self._job,), name="tamis-redundancy", daemon=True
        )
        self._thread.start()

    def job(self, caller: Caller) -> RedundancyJob | None:
        """The report that is made, or the last one."""
        caller.require(ADMIN)
        return self._job

    def cancel(self, caller: Caller) -> None:
        """Stop the report that is made."""
        caller.require(ADMIN)
        job = self._job
        if job is None or job.result.done():
            raise NotFoundError("no redundancy report is being made")
        job.cancelled = True

    def stop(self) -> None:
        """Stop the report that is made, and wait until its process has ended."""
        with self._lock:
            job, thread = self._job, self._thread
        if job is not None and thread is not None:
            job.cancelled = True
            thread.join()

    def _run(self, job: RedundancyJob) -> None:
        with AnsweredWith(job.result):
            job.result.set_result(self._found(job))

    def _found(self, job: RedundancyJob) -> dict[str, Any]:
        with question_process(_MODULE) as child:
            for part in self._question(job):
                child.ask(part)
            for said in child.answers(job.look):
                if "error" in said:
                    raise BrokerError(f"the report was not made: {said['error']}")
                if "result" in said:
                    found: dict[str, Any] = said["result"]
                    return found
                job.step, job.done, job.total = said["step"], said["done"], said["total"]
            raise BrokerError(f"the process of the report has ended: {child.last_words()}")

    def _question(self, job: RedundancyJob) -> Iterator[bytes]:
        """The live subscriptions as a stream of Arrow; its metadata has schema and operators."""
        asked = {
            "schema": self._log.schema_at().to_dict(),
            "operators": self._operators.entries,
            "shown": SHOWN,
        }
        columns = pa.schema(
            {"id": ID_TYPES[self._log.ids], "condition": pa.string(), "language": pa.string()},
            metadata={QUESTION: msgspec.json.encode(asked)},
        )
        yield columns.serialize().to_pybytes()
        rows = self._state.select(_FIRST, (_PAGE,))
        while rows:
            arrays = [
                pa.array(column, field.type)
                for column, field in zip(zip(*rows, strict=True), columns, strict=True)
            ]
            yield pa.record_batch(arrays, schema=columns).serialize().to_pybytes()
            job.done += len(rows)
            job.look()
            time.sleep(_REST)
            rows = self._state.select(_NEXT, (rows[-1][0], _PAGE))
