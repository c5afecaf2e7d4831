"""Who finds the notifications of a broker: the broker itself, or Spark; and the switch.

`matching.json` says who, and from which sequence number on. It may change while the broker runs:
the broker looks at it each second, and goes over to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import Event, Lock, Thread
from typing import Any, Protocol

from tamis.broker.data_folder import DataFolder
from tamis.broker.matching.file_matching import FileMatching
from tamis.broker.matching.inline_matching import InlineMatching
from tamis.broker.matching.notification_files import NotificationFiles, NotificationPairs
from tamis.broker.matching.notification_tail import NotificationTail
from tamis.broker.matching.version_keeper import VersionKeeper
from tamis.broker.sequence.sequencer import Committed
from tamis.errors import BrokerError, StoreError, TamisError
from tamis.operators.enabled_operators import EnabledOperators
from tamis.operators.report import Report
from tamis.replay.manifests import manifests
from tamis.replay.matching_shifts import INLINE, SPARK, WAYS, MatchingShifts, Shift
from tamis.store.changes import ID_TYPES
from tamis.store.log import Log
from tamis.store.subscription_snapshot import Id

_LOOK = 0.5  # seconds between two looks at who matches


class NotificationFinder(Protocol):
    """What finds notifications, and adds them to the tail."""

    failure: BaseException | None
    full: bool  # the disk: what was found waits in memory

    def feed(self, pack: Committed) -> None:
        """Take a pack that is on disk."""

    def dry_run(self, event: Mapping[str, Any]) -> list[Id]:
        """The subscriptions that an event would match now."""

    def report(self) -> Report:
        """The calls of operators."""

    @property
    def left_out(self) -> dict[Id, str]:
        """The live subscriptions that are not matched, each with the reason."""

    def stop(self) -> None:
        """Finish, and end."""


class MatchingSwitch:
    """The notifications of a log, whoever finds them.

    Args:
        log: of the events and changes.
        folder: with `matching.json`, the versions and the notifications.
        found: is called with the notifications of each batch, in another thread.
        matching: who matches from now on; None: whoever does so already, and the broker itself in
            a new folder.
        operators: that conditions may call.
    """

    def __init__(
        self,
        log: Log,
        folder: DataFolder,
        found: Callable[[NotificationPairs], None] = lambda pairs: None,
        matching: str | None = None,
        operators: EnabledOperators | None = None,
    ) -> None:
        if matching is not None and matching not in WAYS:
            raise BrokerError(f"matching is {' or '.join(WAYS)}, not {matching!r}")
        self._log, self._folder, self._operators = log, folder, operators
        self.shifts = MatchingShifts(folder.folder)
        self.shift = self._first_shift(matching)
        self.id_type = ID_TYPES[log.ids]
        self.files = NotificationFiles(folder.notifications, self.id_type, log.begin)
        self._tail = NotificationTail(self.files, self._reached(), found)
        self._lock = Lock()  # around the finder
        self._failure: BaseException | None = None  # of the last switch
        self._finder = self._start()
        entries = () if operators is None else operators.entries
        self._keeper = VersionKeeper(log, folder.index, self._to_compile, operators=entries)
        self._stopping = Event()
        self._thread = Thread(target=self._watch, name="tamis-switch", daemon=True)
        self._thread.start()

    def _first_shift(self, wanted: str | None) -> Shift:
        """The shift to go on with; a new one if another matcher is wanted, or files are lost."""
        self.shifts.check_log(self._log)
        now = self.shifts.current()
        if now is None and wanted is None:
            queries = {str(each["query"]) for each in manifests(self._folder.notifications)}
            if any(not each.startswith(INLINE) for each in queries):
                raise BrokerError(
                    f"{self.shifts.path}: is missing, and Spark has matched here; say who matches "
                    "from now on: `tamis serve --matching inline`, or spark"
                )
        way = wanted or (INLINE if now is None else now.matching)
        if now is not None and now.matching == way and self.shifts.is_whole(self._log, now):
            return now
        return self.shifts.begin(self._log, way)

    def _reached(self) -> int:
        return max(self.files.matched, self._log.begin)

    def _start(self) -> NotificationFinder:
        log, index, operators = self._log, self._folder.index, self._operators
        if self.shift.matching == SPARK:
            return FileMatching(log, index, self.files, self._tail, operators)
        shift = (self.shifts, self.shift)
        return InlineMatching(log, index, *shift, self.files, self._tail, operators)

    def stop(self) -> None:
        """End. The next start goes on from where the files end."""
        self._stopping.set()
        self._thread.join()
        self._keeper.stop()
        self._finder.stop()
        self._tail.end()

    # -- the switch ------------------------------------------------------------------------------

    @property
    def is_inline(self) -> bool:
        """Whether the broker itself matches now."""
        return self.shift.matching == INLINE

    def _to_compile(self) -> int | None:
        """Up to where a version may be compiled; None while Spark does that."""
        return self.files.matched if self.is_inline else None

    def switch(self, matching: str) -> Shift:
        """Let the other match, from where the files end; the shift that begins."""
        if matching not in WAYS:
            raise BrokerError(f"matching is {' or '.join(WAYS)}, not {matching!r}")
        if matching != self.shift.matching:
            self.shifts.begin(self._log, matching)
        self._follow()
        return self.shift

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK):
            try:
                self._follow()
                self._failure = None
            except TamisError as why:
                self._failure = why

    def _follow(self) -> None:
        """Go over to another matcher, if its shift has begun."""
        with self._lock:
            now = self.shifts.current()
            if now is None:
                raise StoreError(f"{self.shifts.path}: is missing; put it back, or start again")
            if now.name == self.shift.name:
                return
            self._finder.stop()
            self.files.load()
            self._tail.go_back(self._reached())
            self.shift = now
            self._finder = self._start()

    # -- for readers -----------------------------------------------------------------------------

    @property
    def failure(self) -> BaseException | None:
        """Why nothing is matched now, if that is so."""
        return self._failure or self._finder.failure

    @property
    def full(self) -> bool:
        """Whether notifications wait in memory, as the disk is full."""
        return self._finder.full

    @property
    def matched(self) -> int:
        """The notifications of all events before this number are known."""
        return self._tail.matched

    def feed(self, pack: Committed) -> None:
        """Take a pack that is on disk. Called by the sequencer."""
        self._finder.feed(pack)

    def wait(self, sequence: int, seconds: float) -> int:
        """Wait until the event with a number is matched; returns where matching is."""
        return self._tail.wait(sequence, seconds, lambda: self.failure is not None)

    def notifications(self, after: int) -> Iterator[NotificationPairs]:
        """All notifications of events after a number, up to where matching is, as they are read."""
        return self._tail.notifications(after)

    def dry_run(self, event: Mapping[str, Any]) -> list[Id]:
        """The subscriptions that an event would match now."""
        return self._finder.dry_run(event)

    def report(self) -> Report:
        """The calls of operators."""
        return self._finder.report()

    @property
    def left_out(self) -> dict[Id, str]:
        """The live subscriptions that are not matched, each with the reason."""
        return self._finder.left_out
