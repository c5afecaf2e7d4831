"""Who finds the notifications of a broker: the broker itself, or Spark; and the switch.

`matching.json` says who, and from which sequence number on. It may change while the broker runs:
the broker looks at it each second, and goes over to the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock, Thread

import pyarrow as pa

from tamis.broker.data_folder import DataFolder
from tamis.broker.matching.file_matching import FileMatching
from tamis.broker.matching.inline_matching import InlineMatching, WriteRange
from tamis.broker.matching.log_engine import LogEngine
from tamis.broker.matching.notification_files import NotificationFiles, NotificationPairs
from tamis.broker.matching.notification_tail import NotificationTail
from tamis.broker.matching.readable_matching import NotificationFinder, ReadableMatching
from tamis.broker.matching.version_keeper import VersionKeeper
from tamis.errors import BrokerError, StoreError, TamisError
from tamis.operators.enabled_operators import EnabledOperators
from tamis.replay.compact_parts import compact
from tamis.replay.manifests import manifests
from tamis.replay.matching_shifts import INLINE, SPARK, WAYS, MatchingShifts, Shift
from tamis.store.changes import ID_TYPES
from tamis.store.log import Log

_LOOK = 0.5  # seconds between two looks at who matches
_MERGED = 60.0  # seconds between two merges of small files


class MatchingSwitch(ReadableMatching):
    """The notifications of a log, whoever finds them.

    Args:
        log: of the events and changes.
        folder: with `matching.json`, the versions and the notifications.
        found: is called with the notifications of each batch, in another thread.
        matching: who matches from now on; None: whoever does so already, and the broker itself in
            a new folder.
        operators: that conditions may call.
        at_once: whether a simple matcher stands in while the default one is compiled.
    """

    def __init__(
        self,
        log: Log,
        folder: DataFolder,
        found: Callable[[NotificationPairs], None] = lambda pairs: None,
        matching: str | None = None,
        operators: EnabledOperators | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        if matching is not None and matching not in WAYS:
            raise BrokerError(f"matching must be {' or '.join(WAYS)}, not {matching!r}")
        self._log, self._folder, self._operators = log, folder, operators
        self._at_once = at_once
        self.shifts = MatchingShifts(folder.folder)
        self.shift: Shift = self._first_shift(matching)
        files = NotificationFiles(folder.notifications, ID_TYPES[log.ids], log.begin)
        tail = NotificationTail(files, max(files.matched, log.begin), found)
        super().__init__(files, tail, log.ids)
        self._engine: LogEngine | None = None  # of the broker, while it matches
        self._lock = Lock()  # around the finder
        self._finder = self._start(self.shift)
        entries = () if operators is None else operators.entries
        self._keeper = VersionKeeper(log, folder.index, self._to_compile, operators=entries)
        self._merge_at = time.monotonic() + _MERGED
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

    def _start(self, shift: Shift) -> NotificationFinder:
        log, index, operators = self._log, self._folder.index, self._operators
        if shift.matching == SPARK:
            return FileMatching(log, index, self.files, self._tail, operators)
        matched = self._tail.matched
        self._engine = LogEngine.at(log, index, matched, operators, at_once=self._at_once)
        return InlineMatching(log, self._engine, self._writer(shift), self._tail)

    def _writer(self, shift: Shift) -> WriteRange:
        """Writes files, as long as a shift is not over."""

        def write(
            start: int, end: int, found: list[NotificationPairs], dead: list[pa.Table]
        ) -> None:
            with self.shifts.held(shift.name):
                self.files.write(f"{INLINE}-{shift.name}", start, end, found, dead)

        return write

    def _end_finder(self) -> None:
        self._finder.stop()
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def stop(self) -> None:
        """End. The next start goes on from where the files end."""
        self._stopping.set()
        self._thread.join()
        self._keeper.stop()
        self._end_finder()
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
            raise BrokerError(f"matching must be {' or '.join(WAYS)}, not {matching!r}")
        if matching != self.shift.matching:
            self.shifts.begin(self._log, matching)
        self._follow()
        return self.shift

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK):
            try:
                self._follow()
                self._merge_parts()
                self._failure = None
            except (TamisError, OSError) as why:
                self._failure = why

    def _merge_parts(self) -> None:
        """Merge small files of notifications now and then; Spark does so while it matches."""
        if self.is_inline and time.monotonic() >= self._merge_at:
            self._merge_at = time.monotonic() + _MERGED
            if compact(self.files.folder):
                self.files.load()

    def _follow(self) -> None:
        """Go over to another matcher, if its shift has begun."""
        with self._lock:
            now = self.shifts.current()
            if now is None:
                raise StoreError(f"{self.shifts.path}: is missing; put it back, or start again")
            if now.name == self.shift.name:
                return
            self._end_finder()
            self.files.load()
            self._tail.go_back(self._reached())
            self._finder = self._start(now)
            self.shift = now  # last: what fails before is tried again
