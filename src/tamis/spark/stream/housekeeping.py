"""Keeping a store in order while a stream reads it.

Leases run out, and somebody has to say so in the log. The more has changed since a version was
compiled the more each match costs, so now and then a new one is made, and the old ones go when no
batch can need them any more. Small files of the log are merged once they have been read, and so are
those of the notifications of old batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

from tamis.replay.compact_parts import compact
from tamis.spark.jobs.compile_index import CompiledIndex
from tamis.spark.runtime.error_text import reason
from tamis.spark.stream.progress import Standing
from tamis.store.log import Log
from tamis.store.pins import KEPT
from tamis.store.subscription_snapshot import SubscriptionSnapshot
from tamis.store.version import Version
from tamis.store.versions import Versions

SHARE = 0.1  # of a version's subscriptions: so much may have changed before another is compiled
_LEAST = 1_000  # changes: fewer are never worth a version
_REST = 60.0  # seconds after a compilation that failed
_COMPACTED = 30.0  # seconds between two merges of small files


class Keeper:
    """Does in turns what has to be done; the caller calls `turn` every second or so.

    Args:
        log: of the events and changes.
        versions: compiled from it.
        compile: makes a version of all that is in the log. It is called in a thread of its own.
        every: a version after so many changes; None: when a tenth of the subscriptions changed.
        snapshot: kept up to date; None: only once the log has a lease, as it takes memory for
            each subscription.
        out: the folder of notifications that the stream writes to.
        keep: how many of its last batches Spark may be made to run again.
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
    ) -> None:
        self._log, self._versions, self._compile, self._every = log, versions, compile, every
        self._out, self.keep = out, keep
        self.snapshot = snapshot
        self.expired = 0  # leases that ran out
        self.compiled = 0  # versions
        self.swept = 0  # versions
        self._refused: str | None = None  # what went wrong in the last turn
        self._failed: str | None = None  # what went wrong when a version was compiled last
        self._left_out: str | None = None  # what the last version refused
        self._searched = 0  # changes before it have no lease
        self._compacted = time.monotonic()
        self._compiling: Thread | None = None
        self._since = 0.0
        self._closed = False

    @property
    def compiling(self) -> float | None:
        """For how many seconds a version has been under way; None where none is."""
        alive = self._compiling is not None and self._compiling.is_alive()
        return time.monotonic() - self._since if alive else None

    @property
    def trouble(self) -> str | None:
        """What goes wrong at present. It is tried again."""
        return self._refused or self._failed or self._left_out

    def changed(self) -> tuple[int, int]:
        """How many changes there are since the latest version, and at how many one is made."""
        latest = self._versions.latest()
        since = 0 if latest is None else latest.sequence
        return self._log.counts(since)[1], worth(latest, self._every)

    def turn(self, reached: Standing | None) -> None:
        """Do what is due, given how far the stream is. What fails is noted and tried again."""
        try:
            self._expire()
            changed, enough = self.changed()
            self._left_out = left_out(self._versions.latest())
            rested = self._failed is None or time.monotonic() - self._since > _REST
            if changed >= enough and self.compiling is None and rested and not self._closed:
                self._since = time.monotonic()
                self._compiling = Thread(target=self._make, name="tamis-compile", daemon=True)
                self._compiling.start()
            if reached is not None:
                # A batch that Spark runs again is matched with the version of the last manifest
                # or a later one: none before that is needed here. What others need, they have said.
                if len(self._versions.all()) > 1:
                    self.swept += len(self._versions.sweep(reached.version))
                if time.monotonic() - self._compacted > _COMPACTED:
                    self._compacted = time.monotonic()
                    self._log.compact(reached.sequence)
                    if self._out is not None:
                        compact(self._out, keep=self.keep)
            self._refused = None
        except Exception as why:  # noqa: BLE001 - of a damaged file too: the next turn has to come
            self._refused = reason(why)

    def close(self) -> None:
        """Wait for a compilation that is under way; interrupt it before."""
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
                self._failed = f"no version could be compiled: {reason(why)}"


def left_out(latest: Version | None) -> str | None:
    """What a version had to refuse, in a sentence. It is tried again for the next one."""
    made = {} if latest is None else latest.made
    if not made.get("refused"):
        return None
    return "; ".join([f"{made['refused']:,} conditions were refused", *made["reasons"][:1]])


def worth(latest: Version | None, every: int | None = None) -> int:
    """After how many changes another version is worth its while.

    >>> worth(None), worth(None, 50)
    (1000, 50)
    """
    if every is not None:
        return every
    live = 0 if latest is None else sum(shard.subscriptions for shard in latest.shards)
    return max(_LEAST, round(SHARE * live))
