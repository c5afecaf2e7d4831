"""Housekeeping of a store while a stream reads it.

Expired leases are written to the log. A match costs more the more has changed since the version was
compiled, so now and then a new version is compiled, also when a domain has grown, and old ones are
removed when no batch can need them. Small files of the log are merged once they have been read, and
so are small parts of old batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

from tamis.errors import counted
from tamis.replay.compact_parts import compact
from tamis.spark.jobs.compile_index import CompiledIndex
from tamis.spark.runtime.error_text import error_text
from tamis.spark.stream.progress import StreamStatus
from tamis.store.log import Log
from tamis.store.subscription_snapshot import SubscriptionSnapshot
from tamis.store.version import Version
from tamis.store.versions import KEPT, Versions

SHARE = 0.1  # of a version's subscriptions that may change before the next is compiled
_LEAST = 1_000  # changes: fewer are never worth a version
_REST = 60.0  # seconds after a compilation that failed
_COMPACTED = 30.0  # seconds between two merges of small files


class Housekeeper:
    """Does what is due at each `turn`, which the caller calls every second or so.

    Args:
        log: of the events and changes.
        versions: compiled from it.
        compile: compiles a version of the whole log. It is called in a thread of its own.
        every: changes after which a version is compiled; None: a tenth of the subscriptions.
        snapshot: kept up to date; None: only once the log has a lease, as it takes memory for
            each subscription.
        out: the folder of notifications that the stream writes to.
        keep: how many of its last batches Spark may run again.
        expires: whether it ends the leases that are due; a service does that itself.
    """

    def __init__(
        self,
        log: Log,
        versions: Versions,
        compile: Callable[[], CompiledIndex],
        *,
        every: int | None = None,
        snapshot: SubscriptionSnapshot | None = None,
        out: Path | None = None,
        keep: int = KEPT,
        expires: bool = True,
    ) -> None:
        self._log, self._versions, self._compile, self._every = log, versions, compile, every
        self._out, self.keep, self._expires = out, keep, expires
        self.snapshot = snapshot
        self.expired = 0  # leases that ran out
        self.compiled = 0  # versions
        self.swept = 0  # versions
        self._refused: str | None = None  # the error of the last turn
        self._failed: str | None = None  # the error of the last compilation
        self._left_out: str | None = None  # the refusals of the last version
        self._searched = 0  # no change before it has a lease
        self._compacted = time.monotonic()
        self._compiling: Thread | None = None
        self._since = 0.0
        self._closed = False

    @property
    def compiling(self) -> float | None:
        """The seconds since the compilation began; None if no version is being compiled."""
        alive = self._compiling is not None and self._compiling.is_alive()
        return time.monotonic() - self._since if alive else None

    @property
    def trouble(self) -> str | None:
        """The present trouble. It is tried again."""
        return self._refused or self._failed or self._left_out

    def changed(self) -> tuple[int, int]:
        """The changes since the latest version, and after how many a new one is compiled."""
        latest = self._versions.latest()
        since = 0 if latest is None else latest.sequence
        return self._log.counts(since)[1], changes_worth_version(latest, self._every)

    def _grown(self) -> bool:
        """Whether domains have grown since the latest version.

        Each worker would have to compile the conditions of that version again.
        """
        latest = self._versions.latest()
        if latest is None or not self._log.begin <= latest.sequence:
            return False
        parts = self._log.schemas(latest.sequence)
        return len(parts) > 1 and bool(parts[-1].schema.grown_attributes(parts[0].schema))

    def turn(self, reached: StreamStatus | None) -> None:
        """Do what is due, given how far the stream is. A failure is noted, and tried again."""
        try:
            if self._expires:
                self._expire()
            changed, enough = self.changed()
            self._left_out = refused_text(self._versions.latest())
            rested = self._failed is None or time.monotonic() - self._since > _REST
            due = changed >= enough or self._grown()
            if due and self.compiling is None and rested and not self._closed:
                self._since = time.monotonic()
                self._compiling = Thread(target=self._make, name="tamis-compile", daemon=True)
                self._compiling.start()
            if reached is not None:
                # A batch that Spark runs again needs the version of the last manifest or a later
                # one. Other readers have said which versions they need.
                if len(self._versions.all()) > 1:
                    self.swept += len(self._versions.sweep(reached.version))
                if time.monotonic() - self._compacted > _COMPACTED:
                    self._compacted = time.monotonic()
                    self._log.compact(reached.sequence)
                    if self._out is not None:
                        compact(self._out, keep=self.keep)
            self._refused = None
        except Exception as why:  # noqa: BLE001 - a damaged file too must not end the turns
            self._refused = error_text(why)

    def close(self) -> None:
        """Wait for a running compilation; interrupt it before."""
        self._closed = True
        if self._compiling is not None:
            self._compiling.join()

    def _expire(self) -> None:
        if self.snapshot is None:
            end = self._log.end
            changes = self._log.changes(self._searched, end)
            self._searched = end
            if changes["until"].null_count == changes.num_rows:
                return
            self.snapshot = SubscriptionSnapshot()
        self.expired += len(self._log.expire(self.snapshot, datetime.now(UTC)))

    def _make(self) -> None:
        try:
            self._compile()
            self.compiled += 1
            self._failed = None
        except Exception as why:  # noqa: BLE001 - whatever Spark raises, the stream goes on
            if not self._closed:
                self._failed = f"no version could be compiled: {error_text(why)}"


def refused_text(latest: Version | None) -> str | None:
    """The refusals of a version in a sentence; they are tried again for the next one."""
    made = {} if latest is None else latest.made
    if not made.get("refused"):
        return None
    many = made["refused"]
    said = counted(many, "condition was refused", "conditions were refused")
    return "; ".join([said, *made["reasons"][:1]])


def changes_worth_version(latest: Version | None, every: int | None = None) -> int:
    """After how many changes another version is worth compiling.

    >>> changes_worth_version(None), changes_worth_version(None, 50)
    (1000, 50)
    """
    if every is not None:
        return every
    live = 0 if latest is None else sum(shard.subscriptions for shard in latest.shards)
    return max(_LEAST, round(SHARE * live))
