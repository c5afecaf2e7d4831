"""Keeps the compiled versions of a broker fresh enough for a quick start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from tamis.broker import metrics
from tamis.broker.matching.compile_version import compile_in_child
from tamis.errors import TamisError
from tamis.store.log import Log
from tamis.store.versions import Versions

CHANGES = 20_000  # since the last version, from which on a new one is worth it
LOOK = 30.0  # seconds between two looks


class VersionKeeper:
    """Compiles a version when many changes came since the last one, and sweeps older ones.

    `matched` says where matching is: a start begins there, so no version is ahead of it. While
    Spark matches, it says None: Spark compiles its versions itself.
    """

    def __init__(
        self,
        log: Log,
        index: Path,
        matched: Callable[[], int | None],
        changes: int = CHANGES,
        operators: tuple[str, ...] = (),
    ) -> None:
        self._operators = operators
        self._log, self._index, self._matched, self._changes = log, index, matched, changes
        self.failure: Exception | None = None  # of the last attempt
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="tamis-versions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK):
            try:
                self.look()
                self.failure = None
            except (TamisError, OSError) as why:  # it is tried again
                self.failure = why

    def look(self) -> bool:
        """Compile a version if it is worth it; whether it was."""
        target = self._matched()
        if target is None:
            return False
        latest = Versions(self._index).latest() if self._index.is_dir() else None
        since = 0 if latest is None else latest.sequence
        useless = 0 < since < self._log.begin  # the changes after it were trimmed
        if target <= since:
            return False
        if not useless and self._log.counts(since, target)[1] < self._changes:
            return False
        with metrics.VERSION_SECONDS.time():
            compile_in_child(self._log, self._index, target, self._stopping.is_set, self._operators)
        Versions(self._index).sweep(target)
        return True
