"""Who may change a log at a time: locks on files in its folder.

LOG/lock          held by the process that appends
LOG/compacting    held by the process that merges packs or trims the log
LOG/serving       held by a service: while it runs, nobody else appends
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamis.errors import StoreError
from tamis.files.lock import locked
from tamis.files.os_errors import os_errors_as

LOCK, COMPACTING, SERVING = "lock", "compacting", "serving"


class LogLocks:
    """The locks of the log in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._serves = False  # whether this object holds `serving`

    @contextmanager
    def appending(self) -> Iterator[None]:
        """Hold the lock to append; refuse while somebody else serves the log."""
        with self.held(LOCK, "cannot be appended to"):
            if not self._serves and (self._folder / SERVING).exists():
                with self._service_lock():
                    pass
            yield

    @contextmanager
    def served(self) -> Iterator[None]:
        """Let nobody else append during the block; others may read, merge and trim."""
        with os_errors_as(StoreError, f"{self._folder}: cannot be served"), self._service_lock():
            self._serves = True
            try:
                yield
            finally:
                self._serves = False

    @contextmanager
    def held(self, name: str, failure: str) -> Iterator[int]:
        """Hold one of the locks. `failure` completes the error: what cannot be done."""
        what = f"{self._folder}: {failure}"
        with os_errors_as(StoreError, what), locked(self._folder / name) as lock:
            yield lock

    @contextmanager
    def _service_lock(self) -> Iterator[None]:
        try:
            with locked(self._folder / SERVING, wait=False):
                yield
        except BlockingIOError:
            raise StoreError(
                f"{self._folder}: a service holds this log; publish and subscribe through the "
                "service, or stop it"
            ) from None
