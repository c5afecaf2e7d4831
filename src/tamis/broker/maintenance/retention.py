"""Removes what is older than it has to be kept: events, and notifications.

Nothing goes that is still needed: events that are not matched, not yet handed to all sinks, or
waiting for a retry; and the last notifications, which say where matching is. Readers with a cursor
before what is kept are told so.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from itertools import pairwise
from threading import Event, Thread
from typing import NamedTuple, Self

from tamis.broker.broker import Broker
from tamis.errors import TamisError
from tamis.files.lock import locked
from tamis.files.sync import sync_folder
from tamis.replay.coverage import covered_range
from tamis.replay.manifests import LOCK, MANIFESTS, counting_manifests, list_manifests, sweep
from tamis.store.log import segment_files
from tamis.store.segment import segment_name

LOOK = 60.0  # seconds between two looks
_MICROSECOND = timedelta(microseconds=1)
_log = logging.getLogger("tamis.retention")


class KeepRules(NamedTuple):
    """What to keep; None: everything."""

    events: timedelta | None = None
    event_bytes: int | None = None
    notifications: timedelta | None = None

    @property
    def everything(self) -> bool:
        return all(each is None for each in self)


class Retention:
    """Looks at a broker every minute, in a thread of its own, and removes what is old."""

    def __init__(self, broker: Broker, kept: KeepRules) -> None:
        self._broker, self._kept = broker, kept
        self.failure: BaseException | None = None  # of the last look
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="tamis-retention", daemon=True)

    def __enter__(self) -> Self:
        if not self._kept.everything:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK):
            try:
                self.look()
                self.failure = None
            except (TamisError, OSError) as why:  # a full disk, for example; it is tried again
                self.failure = why
                _log.warning("nothing could be removed: %s", why)

    def look(self) -> tuple[int, int]:
        """Remove what is old; the first events and the first notifications that are kept now."""
        broker = self._broker
        before = broker.log.begin, broker.matching.files.begin
        if self._kept.notifications is not None:
            self._remove_notifications(self._kept.notifications)
        self._trim()
        after = broker.log.begin, broker.matching.files.begin
        if after != before:
            _log.info("events are kept from %d on, notifications from %d on", *after)
        return after

    def needed(self) -> int:
        """The first sequence number that something still needs."""
        broker = self._broker
        needed = [broker.matching.files.matched, *broker.webhooks.outbox.needed()]
        return min(needed)

    # -- events ----------------------------------------------------------------------------------

    def _trim(self) -> None:
        if self._kept.events is None and self._kept.event_bytes is None:
            return
        log = self._broker.log
        before = min(self._old_events(), self.needed())
        if before > log.begin:
            log.trim(before)

    def _old_events(self) -> int:
        """Where the events begin that are to be kept: after whole segments."""
        log = self._broker.log
        files = segment_files(log.folder, str(log.identity))
        firsts = [first for first in files.list_names() if log.begin <= first < log.end]
        sizes = [(files.folder / segment_name(first)).stat().st_size for first in firsts]
        left, begin = sum(sizes), log.begin
        for (_, end), size in zip(pairwise(firsts), sizes, strict=False):
            (last,) = log.boundaries(end - 1, end)
            old = self._is_old(int(getattr(last, "appended", 0)), self._kept.events)
            many = self._kept.event_bytes is not None and left > self._kept.event_bytes
            if not (old or many):
                break
            left, begin = left - size, end
        return begin

    def _is_old(self, moment: int, kept: timedelta | None) -> bool:
        return kept is not None and moment < self._broker.now() - kept // _MICROSECOND

    # -- notifications ---------------------------------------------------------------------------

    def _remove_notifications(self, kept: timedelta) -> None:
        """Remove manifests; their parts go with the next look, when no reader needs them."""
        files = self._broker.matching.files
        folder = files.folder / MANIFESTS
        if not folder.is_dir():
            return
        sweep(files.folder)
        needed = min(self.needed(), files.matched - 1)  # the last manifest stays
        with locked(folder / LOCK):
            counting = counting_manifests(files.folder)
            old = [
                (name in counting, covered_range(files.folder, name, each), name)
                for name, each in list_manifests(files.folder).items()
                if self._is_old(int(float(each["written"]) * 1e6), kept)
            ]
            # Those that a merged one has replaced come first: they would count again without it.
            gone = [name for _, covered, name in sorted(old) if covered.end <= needed]
            for name in gone:
                (folder / name).unlink(missing_ok=True)
            if gone:
                sync_folder(folder)
        if gone:
            files.load()
            files.note_removal()
