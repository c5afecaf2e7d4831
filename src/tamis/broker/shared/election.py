"""Who does what alone: an election by locks of the database, which end with their session.

A killed service loses its session at once. One that is paused, or cut off, does not speak for a
while: then the server ends its session. In both cases another service gets the lock. The service
that was paused may not know that yet, so whatever it writes under a lock is fenced as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Event, Thread

import psycopg

from tamis.errors import TamisError
from tamis.store.postgresql.session import PATIENCE, Connection, connect

BEAT = 0.5  # seconds between two calls
_LOCKS = 0x74616D69  # the first half of the name of a lock


class Election:
    """Holds the locks of some tasks, if no other service does, and hears what others tell.

    Args:
        url: of the database.
        tasks: the numbers of the tasks, for each of which one service is elected.
        channels: what to listen to.
        heard: is called in another thread with a channel, and with "" when anything may have
            happened: after a new connection.
    """

    def __init__(
        self,
        url: str,
        tasks: Iterable[int],
        channels: Iterable[str],
        heard: Callable[[str], None],
    ) -> None:
        self._url, self._tasks, self._channels, self._heard = url, [*tasks], [*channels], heard
        self._held: frozenset[int] = frozenset()
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="tamis-election", daemon=True)
        self._thread.start()

    def leads(self, task: int) -> bool:
        """Whether this service believes that it does a task."""
        return task in self._held

    def stop(self) -> None:
        """Give the tasks up."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with connect(self._url, autocommit=True) as base:
                    self._take_part(base)
            except (psycopg.Error, TamisError):  # the database is away; others say so
                self._held = frozenset()
                self._stopping.wait(BEAT)
        self._held = frozenset()

    def _take_part(self, base: Connection) -> None:
        base.execute(f"SET idle_session_timeout = '{PATIENCE}s'")
        for channel in self._channels:
            base.execute(f"LISTEN {channel}")
        self._heard("")
        while not self._stopping.is_set():
            self._ask(base)
            until = time.monotonic() + BEAT
            while (left := until - time.monotonic()) > 0 and not self._stopping.is_set():
                told = {each.channel for each in base.notifies(timeout=left, stop_after=1)}
                for channel in told:
                    self._heard(channel)

    def _ask(self, base: Connection) -> None:
        """Try to get each lock that is not held. This also tells the server that we live."""
        base.execute("SELECT 1")
        for task in self._tasks:
            if task not in self._held:
                row = base.execute("SELECT pg_try_advisory_lock(%s, %s)", (_LOCKS, task)).fetchone()
                if row is not None and row[0]:
                    self._held |= {task}
                    self._heard("")
