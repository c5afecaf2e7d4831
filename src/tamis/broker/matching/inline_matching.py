"""Matching inline: one thread that follows the log and finds the notifications of each event.

The sequencer hands it each pack in memory. When it falls behind, it drops packs and reads them from
the log instead: the log is the queue. Notifications are visible as soon as they are found, and on
disk about a second later.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.broker import metrics
from tamis.broker.matching.log_engine import LogEngine
from tamis.broker.matching.notification_files import NotificationPairs, dead_letters
from tamis.broker.matching.notification_tail import KEPT, NotificationTail
from tamis.broker.matching.timed_pace import TimedPace
from tamis.broker.sequence.answers import AnsweredWith
from tamis.broker.sequence.sequencer import Committed
from tamis.errors import StoreError, UnavailableError
from tamis.files.os_errors import is_full
from tamis.match.plan import LINES, Plan
from tamis.operators.report import Report
from tamis.replay.event_source import EventChunk, Int64s, RowLayout
from tamis.replay.matching_shifts import SupersededError
from tamis.replay.pipeline import read_events
from tamis.store.log import Log
from tamis.store.pack import CHANGES, EVENTS, moments
from tamis.store.published import JSON, without_reserved
from tamis.store.subscription_snapshot import Id

AT_ONCE = 1024  # events in a batch
WAITING = 50_000  # events of packs that wait in memory
FLUSH = 1.0  # seconds between two writes
_CAUGHT_UP = 5.0  # seconds that a dry run waits for matching
_REPEATED = 10_000  # rows without notifications that a start may match again


WriteRange = Callable[[int, int, list[NotificationPairs], list[pa.Table]], None]
"""Stores the notifications and dead letters from a number to before another.

Raises `SupersededError` if the shift is over.
"""


class InlineMatching:
    """Finds the notifications of a log, from where the tail ends, until its shift is over.

    Args:
        log: of the events and changes.
        engine: with the subscriptions that are live there. The caller closes it.
        write: stores what was found.
        tail: for readers.
        pause: seconds between two writes.
        repeated: rows without notifications that need not be stored: a start may match them again.
    """

    def __init__(
        self,
        log: Log,
        engine: LogEngine,
        write: WriteRange,
        tail: NotificationTail,
        *,
        pause: float = FLUSH,
        repeated: int = _REPEATED,
    ) -> None:
        self._log, self._write, self._pause, self._repeated = log, write, pause, repeated
        self._tail, self._changed, self._follower = tail, tail.changed, engine
        self._pace = TimedPace(AT_ONCE)
        self._packs: deque[Committed] = deque()
        self._waits = 0
        self._stopping = False
        self.failure: BaseException | None = None
        self.superseded = False  # the shift is over
        self._unwritten: list[NotificationPairs] = []
        self._dead: list[pa.Table] = []
        self.full = False  # the disk: what was found waits in memory
        self._written = tail.matched
        self._flush_at = time.monotonic() + pause
        self._thread = Thread(target=self._run, name="tamis-matching", daemon=True)
        self._thread.start()

    def feed(self, pack: Committed) -> None:
        """Take a pack that is on disk. Called by the sequencer."""
        with self._changed:
            if self._waits + _size(pack) <= WAITING:
                self._packs.append(pack)
                self._waits += _size(pack)
            self._changed.notify_all()

    def stop(self) -> None:
        """Match what waits in memory, write it, and end. The next start goes on from there."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def dry_run(self, event: Mapping[str, Any]) -> list[Id]:
        """The subscriptions that an event would match now.

        It waits until matching has come to the end of the log, for a few seconds at most: what was
        acknowledged counts.
        """
        self._tail.wait(self._log.end - 1, _CAUGHT_UP, lambda: self.failure is not None)
        return self._follower.engine.match(event)

    def report(self) -> Report:
        """The calls of operators since the start."""
        return self._follower.engine.report()

    def plan(self, id: Id | None) -> Plan:
        """Where the matcher keeps the subscriptions, or only the clauses of one of them."""
        return self._follower.engine.plan(id, LINES if id is None else 0)

    @property
    def left_out(self) -> dict[Id, str]:
        """The live subscriptions that are not matched, each with the reason."""
        return dict(self._follower.left_out)

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        ended: Future[None] = Future()
        with AnsweredWith(ended):
            while self._next():
                pass
            self._flush()
            ended.set_result(None)
        # A shift that is over is no failure: the switch has begun another.
        failure = ended.exception()
        with self._changed:
            self.superseded = isinstance(failure, SupersededError)
            self.failure = None if self.superseded else failure
            self._changed.notify_all()

    def _next(self) -> bool:
        """Match the next pack, or wait for one. False when there is nothing left to do."""
        if self.full and sum(len(each.numbers) for each in self._unwritten) >= KEPT:
            return self._wait_for_space()
        self._follower.settle()
        pack = None
        with self._changed:
            while self._packs and self._packs[0].end <= self._tail.matched:
                self._waits -= _size(self._packs.popleft())
            if self._packs and self._packs[0].numbers.events.start == self._tail.matched:
                pack = self._packs.popleft()
                self._waits -= _size(pack)
        if pack is not None:
            self._take_pack(pack)
        elif self._log.end > self._tail.matched and not self._stopping:
            self._take_log(self._log.end)
        elif self._stopping:
            return False
        else:
            with self._changed:
                if not self._packs and not self._stopping:
                    self._changed.wait(max(0.0, self._flush_at - time.monotonic()))
        self._flush_if_due()
        return True

    def _wait_for_space(self) -> bool:
        """Match nothing while the disk is full and memory is too: the log keeps the events."""
        with self._changed:
            if not self._stopping:
                self._changed.wait(max(0.0, self._flush_at - time.monotonic()))
        self._flush_if_due()
        return not self._stopping

    def _flush_if_due(self) -> None:
        if time.monotonic() >= self._flush_at:
            self._flush()

    def _take_pack(self, pack: Committed) -> None:
        if pack.events:
            lines = pa.array([event.text for event in pack.events], pa.string())
            times = np.full(len(lines), pack.moment, np.int64)
            self._match(pack.numbers.events.start, pa.table({JSON: lines}), times)
        if pack.changes is not None:
            self._follower.take(pack.changes)
        if pack.schema is not None:
            self._follower.extend(pack.schema)
        self._advance(pack.end)

    def _take_log(self, end: int) -> None:
        """Match what the log has up to a number: section by section."""
        for section in self._log.boundaries(self._tail.matched, end):
            first, stop = max(section.first, self._tail.matched), min(section.end, end)
            if section.kind == EVENTS:
                for number, table in self._log.events(first, stop):
                    plain = without_reserved(table.replace_schema_metadata(None))
                    self._match(number, plain, moments(table))
            elif section.kind == CHANGES:
                self._follower.take(self._log.changes(first, stop, details=True))
            else:
                self._follower.extend(self._log.schema_at(stop))
            self._advance(stop)
            self._flush_if_due()
            if self._stopping or self.full:
                return  # what is left is matched later

    def _match(self, first: int, table: pa.Table, times: Int64s) -> None:
        engine = self._follower.engine
        numbers = np.arange(first, first + table.num_rows, dtype=np.int64)
        layout = RowLayout(document=engine.schema.text)
        chunk = EventChunk(numbers, table, layout, times)
        for events in read_events([chunk], engine.encoder, self._pace):
            began = time.monotonic()
            with metrics.MATCHING_SECONDS.time():
                answer = engine.match_batch(events.valid.batch(engine.encoder, events.moments))
                ids = answer.arrow_ids(self._log.ids == "text")
            metrics.MATCHES.inc(len(ids))
            refused = events.valid.refused
            if refused:
                rows = events.chunk.numbers[[row for row, _ in refused]]
                self._dead.append(dead_letters(rows, *events.refusals().values()))
            low, high = int(events.chunk.numbers[0]), int(events.chunk.numbers[-1]) + 1
            pairs = NotificationPairs(low, high, events.numbers[answer.events], ids)
            if len(pairs.numbers):
                self._unwritten.append(pairs)
            self._tail.publish(pairs)
            if engine.calls:
                self._pace.note_seconds(high - low, time.monotonic() - began)

    def _advance(self, end: int) -> None:
        self._follower.sequence = end
        self._tail.advance(end)

    def _flush(self) -> None:
        """Write what was found since the last time, and let go of old pairs in memory."""
        found = self._dead or any(len(each.numbers) for each in self._unwritten)
        if found or self._tail.matched > self._written + self._repeated:
            try:
                self._write(self._written, self._tail.matched, self._unwritten, self._dead)
            except (StoreError, OSError) as why:
                if not is_full(why) and not isinstance(why, UnavailableError):
                    raise
                self.full = True  # it is tried again
            else:
                self._written, self._unwritten, self._dead = self._tail.matched, [], []
                self.full = False
        self._flush_at = time.monotonic() + self._pause
        self._tail.forget(self._written)


def _size(pack: Committed) -> int:
    """How much of the queue a pack takes."""
    return len(pack.events) + (0 if pack.changes is None else int(pack.changes.num_rows))
