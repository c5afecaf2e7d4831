"""Matching elsewhere: Spark finds the notifications, and this follows the files that it writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from tamis.broker.matching.log_engine import LogEngine
from tamis.broker.matching.notification_files import NotificationFiles
from tamis.broker.matching.notification_tail import NotificationTail
from tamis.broker.sequence.sequencer import Committed
from tamis.errors import BrokerError, TamisError
from tamis.match.plan import LINES, Plan
from tamis.operators.enabled_operators import EnabledOperators
from tamis.operators.report import Report
from tamis.store.log import Log
from tamis.store.subscription_snapshot import Id

_LOOK = 0.1  # seconds between two looks at the manifests


class FileMatching:
    """Hands on the notifications that another process writes, as their manifests appear."""

    def __init__(
        self,
        log: Log,
        index: Path,
        files: NotificationFiles,
        tail: NotificationTail,
        operators: EnabledOperators | None = None,
    ) -> None:
        self._log, self._index, self._operators = log, index, operators
        self._files, self._tail = files, tail
        self.failure: BaseException | None = None
        self.full = False  # it writes nothing
        self._engine: LogEngine | None = None  # for dry runs, once one is asked for
        self._lock = Lock()  # around that
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="tamis-following", daemon=True)
        self._thread.start()

    def feed(self, pack: Committed) -> None:
        """Spark reads the log itself."""

    def stop(self) -> None:
        """Follow no longer."""
        self._stopping.set()
        self._thread.join()
        if self._engine is not None:
            self._engine.close()

    def dry_run(self, event: Mapping[str, Any]) -> list[Id]:
        """The subscriptions that an event would match now."""
        with self._lock:
            end = self._log.end
            if self._engine is None:
                self._engine = LogEngine.at(self._log, self._index, end, self._operators)
            self._engine.advance(self._log, end)
            return self._engine.engine.match(event)

    def report(self) -> Report:
        """The calls of operators by dry runs; `tamis spark run` shows those of Spark."""
        return Report(()) if self._engine is None else self._engine.engine.report()

    def plan(self, id: Id | None) -> Plan:
        """That of the dry runs: Spark's own are in its workers."""
        if self._engine is None:
            raise BrokerError("Spark matches, so this service has no plan before the first dry run")
        return self._engine.engine.plan(id, LINES if id is None else 0)

    @property
    def left_out(self) -> dict[Id, str]:
        """The live subscriptions that dry runs do not match, each with the reason."""
        return {} if self._engine is None else dict(self._engine.left_out)

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK):
            try:
                self._look()
                self.failure = None
            except (TamisError, OSError) as why:  # it may be put right, and is tried again
                self.failure = why

    def _look(self) -> None:
        if not self._files.refresh():
            return
        start, end = self._tail.matched, self._files.matched
        for pairs in self._files.read(start - 1, end):
            self._tail.publish(pairs)
        if end > self._tail.matched:
            self._tail.advance(end)
        self._tail.forget(end)
