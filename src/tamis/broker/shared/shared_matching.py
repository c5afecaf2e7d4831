"""Matching by one of several services: the elected one matches, the others follow it.

Each service has an engine with the subscriptions that are live where the stored notifications end.
So whoever is elected goes on from there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event, Thread
from typing import Any

from tamis.broker.data_folder import DataFolder
from tamis.broker.matching.inline_matching import InlineMatching
from tamis.broker.matching.log_engine import LogEngine
from tamis.broker.matching.notification_files import NotificationPairs
from tamis.broker.matching.notification_tail import NotificationTail
from tamis.broker.matching.readable_matching import NotificationFinder, ReadableMatching
from tamis.broker.matching.version_keeper import VersionKeeper
from tamis.broker.sequence.sequencer import Committed
from tamis.broker.shared.shared_notifications import SharedNotifications
from tamis.errors import TamisError
from tamis.match.plan import LINES, Plan
from tamis.operators.enabled_operators import EnabledOperators
from tamis.operators.report import Report
from tamis.store.changes import ID_TYPES
from tamis.store.log import Log
from tamis.store.postgresql.session import Session
from tamis.store.subscription_snapshot import Id

PAUSE = 0.5  # seconds between two writes: other services see what was found when it is written
_CAUGHT_UP = 5.0  # seconds that a dry run waits for matching
_LOOK = 0.25  # seconds between two looks, if nobody tells


class SharedMatching(ReadableMatching):
    """The notifications of a log in a database, whichever service finds them.

    `leads` says whether this service is elected, and `found` is called with the notifications of
    each batch, in another thread.
    """

    def __init__(
        self,
        log: Log,
        folder: DataFolder,
        session: Session,
        leads: Callable[[], bool],
        found: Callable[[NotificationPairs], None] = lambda pairs: None,
        operators: EnabledOperators | None = None,
    ) -> None:
        self._log, self._index, self._leads, self._operators = log, folder.index, leads, operators
        files = SharedNotifications(folder.notifications, ID_TYPES[log.ids], session, log.end)
        super().__init__(files, NotificationTail(files, files.matched, found), log.ids)
        self._shared = files
        self._engine = LogEngine.at(log, folder.index, files.matched, operators)
        self._leading: bool | None = False  # None: neither, as the database is away
        self._finder: NotificationFinder = self._follower()
        entries = () if operators is None else operators.entries
        self._keeper = VersionKeeper(log, folder.index, lambda: files.matched, operators=entries)
        self._wake, self._stopping = Event(), Event()
        self._thread = Thread(target=self._watch, name="tamis-roles", daemon=True)
        self._thread.start()

    def _follower(self) -> _Follower:
        return _Follower(self._log, self._shared, self._tail, self._engine)

    @property
    def is_inline(self) -> bool:
        """Whether this service itself matches now."""
        return self._leading is True

    def wake(self) -> None:
        """Something has happened: another service has matched, or was elected."""
        self._wake.set()
        if isinstance(self._finder, _Follower):
            self._finder.wake()

    def stop(self) -> None:
        """End. Another service goes on, or the next start."""
        self._stopping.set()
        self._wake.set()
        self._thread.join()
        self._keeper.stop()
        self._finder.stop()
        self._tail.end()
        self._engine.close()

    def _watch(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(_LOOK)
            self._wake.clear()
            try:
                self._look()
                self._failure = None
            except (TamisError, OSError) as why:  # the database may be away; it is tried again
                self._failure = why

    def _look(self) -> None:
        """Begin or end to match, if this service was elected or another one."""
        over = isinstance(self._finder, InlineMatching) and self._finder.superseded
        leading = self._leads() and not over
        if leading == self._leading or self._stopping.is_set():
            return
        self._finder.stop()
        self._leading = None
        matched = self._shared.follow(self._log.end)
        self._tail.go_back(matched)
        if self._engine.sequence > matched:  # it was ahead of what is stored
            self._engine.close()
            self._engine = LogEngine.at(self._log, self._index, matched, self._operators)
        self._engine.advance(self._log, matched)
        if leading:
            self._finder = InlineMatching(
                self._log,
                self._engine,
                self._shared.write_shared,
                self._tail,
                pause=PAUSE,
                repeated=0,
            )
        else:
            self._finder = self._follower()
        self._leading = leading


class _Follower:
    """Copies what another service has matched, and keeps the engine where that ends."""

    def __init__(
        self, log: Log, files: SharedNotifications, tail: NotificationTail, engine: LogEngine
    ) -> None:
        self._log, self._files, self._tail, self._engine = log, files, tail, engine
        self.failure: BaseException | None = None
        self.full = False
        self._wake = Event()
        self._stopping = False
        self._thread = Thread(target=self._run, name="tamis-following", daemon=True)
        self._thread.start()

    def feed(self, pack: Committed) -> None:
        """Another service matches the pack."""

    def wake(self) -> None:
        """There may be something to copy."""
        self._wake.set()

    def dry_run(self, event: Mapping[str, Any]) -> list[Id]:
        """The subscriptions that an event would match now. It waits for a few seconds at most."""
        self._tail.wait(self._log.end - 1, _CAUGHT_UP, lambda: self.failure is not None)
        return self._engine.engine.match(event)

    def report(self) -> Report:
        """The calls of operators since the start."""
        return self._engine.engine.report()

    def plan(self, id: Id | None) -> Plan:
        """Where the matcher keeps the subscriptions, or only the clauses of one of them."""
        return self._engine.engine.plan(id, LINES if id is None else 0)

    @property
    def left_out(self) -> dict[Id, str]:
        """The live subscriptions that are not matched, each with the reason."""
        return dict(self._engine.left_out)

    def stop(self) -> None:
        """Follow no longer."""
        self._stopping = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._look()
                self.failure = None
            except (TamisError, OSError) as why:  # the database may be away; it is tried again
                self.failure = why
            self._wake.wait(_LOOK)
            self._wake.clear()

    def _look(self) -> None:
        start = self._tail.matched
        end = self._files.follow(self._log.end)
        if end <= start:
            return
        self._engine.advance(self._log, end)
        for pairs in self._files.read(start - 1, end):
            self._tail.publish(pairs)
        if end > self._tail.matched:
            self._tail.advance(end)
        self._tail.forget(end)
