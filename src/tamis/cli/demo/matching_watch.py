"""What the demonstration shows of a data folder, whoever matches: the service, then Spark."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from tamis.broker.matching.version_keeper import CHANGES
from tamis.operators.report import Report
from tamis.replay.matching_shifts import INLINE, MatchingShifts
from tamis.replay.parts import NOTIFICATIONS, SEQUENCE
from tamis.spark.runtime.operator_reports import NOTHING
from tamis.spark.stream.progress import StreamStatus, StreamWatch
from tamis.store import Log, SubscriptionSnapshot, Versions
from tamis.store.changes import EXPIRE
from tamis.store.published import JSON

if TYPE_CHECKING:
    from tamis.cli.reports.stream import Upkeep
    from tamis.spark.stream.stream import Stream

_ADDED = ("batches", "events", "notifications", "dead")


class MatchingWatch:
    """Follows the log and the notifications of a data folder, across the switch to Spark.

    It is its own `Upkeep` while the service matches.
    """

    def __init__(self, folder: Path) -> None:
        self._shifts = MatchingShifts(folder)
        self._log = Log.open(self._shifts.log)
        self.snapshot = SubscriptionSnapshot()
        self.expired = 0  # leases, since the start
        self._fold()
        self.expired = 0
        self._stream: Stream | None = None
        self._before: StreamStatus | None = None  # of the matchers before this one
        self._watch, self._last = self._inline()

    @property
    def begin(self) -> int:
        """The sequence number from which on the present matcher matches."""
        shift = self._shifts.current()
        return 0 if shift is None else shift.start

    @property
    def end(self) -> int:
        """The next sequence number."""
        return self._log.end

    @property
    def events(self) -> int:
        """The events of the log."""
        return self._log.counts(self._log.begin)[0]

    @property
    def keeper(self) -> Upkeep:
        return self if self._stream is None else _StreamUpkeep(self, self._stream)

    compiling: float | None = None  # the service does that in a process of its own
    trouble: str | None = None

    def changed(self) -> tuple[int, int]:
        """The changes since the latest version, and after how many the service compiles one."""
        index = self._shifts.index
        latest = Versions(index).latest() if index.is_dir() else None
        return self._log.counts(0 if latest is None else latest.sequence)[1], CHANGES

    def follow(self, stream: Stream | None) -> None:
        """Go on with a stream of Spark; None: the service matches again."""
        if stream is self._stream:
            return
        self._before, self._stream = self.look(), stream
        if stream is None:
            self._watch, _ = self._inline()

    def look(self) -> StreamStatus:
        self._fold()
        now = self._watch.look(time.time()) if self._stream is None else self._stream.look()
        if self._before is not None:
            sums = {each: getattr(now, each) + getattr(self._before, each) for each in _ADDED}
            now = now._replace(**sums)
        self._last = now
        return now

    def forget(self) -> None:
        """Measure rates and latencies from here on."""
        self._watch.forget()

    def newest(self, kind: str = NOTIFICATIONS, rows: int = 100) -> list[dict[str, Any]]:
        """Some of the last notifications with their events, or dead letters."""
        if self._stream is not None:
            return self._stream.newest(kind, rows)
        found = self._watch.newest(kind, rows)
        if kind == NOTIFICATIONS and found:
            events = self._events({int(row[SEQUENCE]) for row in found})
            found = [row | events[row[SEQUENCE]] for row in found if row[SEQUENCE] in events]
        return found

    def operators(self) -> Report:
        return NOTHING if self._stream is None else self._stream.operators()

    def _inline(self) -> tuple[StreamWatch, StreamStatus]:
        """A watch over what the service writes from now on."""
        shift = self._shifts.current()
        query, now = f"{INLINE}-{'' if shift is None else shift.name}", time.time()
        watch = StreamWatch(self._log, self._shifts.out, query, now, self.begin)
        return watch, watch.look(now)

    def _fold(self) -> None:
        end = self._log.end
        changes = self._log.changes(self.snapshot.sequence, end)
        self.expired += pc.sum(pc.equal(changes["kind"], EXPIRE)).as_py() or 0
        self.snapshot.fold(changes, end)

    def _events(self, numbers: set[int]) -> dict[int, dict[str, Any]]:
        """Events by number, as they were published."""
        found: dict[int, dict[str, Any]] = {}
        for first, table in self._log.events(min(numbers), max(numbers) + 1):
            if JSON in table.column_names:
                lines = table[JSON]
                for number in numbers & set(range(first, first + table.num_rows)):
                    found[number] = json.loads(lines[number - first].as_py())
        return found


class _StreamUpkeep:
    """The housekeeping of a stream; the service ends leases, and the watch counts them."""

    def __init__(self, watch: MatchingWatch, stream: Stream) -> None:
        self.snapshot, self.expired = watch.snapshot, watch.expired
        self.compiling, self.trouble = stream.keeper.compiling, stream.keeper.trouble
        self.changed = stream.keeper.changed
