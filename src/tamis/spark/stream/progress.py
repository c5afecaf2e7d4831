"""The progress of a stream, read from its files: the log and the manifests.

A manifest has the end of its batch, the counts, and the time of writing; the log has the time at
which each event was appended. So Spark is not asked, and Spark Connect makes no difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from tamis.errors import StoreError
from tamis.files.names import names_in, plain_name
from tamis.replay.manifests import BATCHES, MANIFESTS
from tamis.replay.parts import DEAD, NOTIFICATIONS
from tamis.store.log import Log
from tamis.store.pack import appended

WINDOW = 30.0  # seconds over which rates and latencies are taken
NO_VERSION = -1


class StreamStatus(NamedTuple):
    """How far a stream is, and how fast."""

    batches: int
    sequence: int  # all events before it have been read
    version: int  # of the last batch; -1: none
    events: int
    notifications: int
    dead: int
    backlog: int  # events that are not matched yet
    rate: float | None  # events a second; None: too early to say
    matches: float | None  # notifications a second
    p50: float | None  # seconds from the append of an event to the manifest of its batch
    p95: float | None


class StreamWatch:
    """Follows the manifests of one query.

    Args:
        log: that the query reads.
        out: the folder that it writes to.
        query: its id, as in the names of manifests.
        since: batches written before this moment count, but not for rates and latencies.
        first: the sequence number from which on the query reads.
    """

    def __init__(self, log: Log, out: Path, query: str, since: float, first: int = 0) -> None:
        self._log, self._out, self._query, self._since = log, out, query, since
        self._seen: set[str] = set()
        self._taken = -1  # the last batch that is counted
        self._recent: list[tuple[float, int, int]] = []  # written, events, notifications
        self._delays: list[tuple[float, float, int]] = []  # written, delay, events
        self._first = first
        self._totals = StreamStatus(0, first, NO_VERSION, 0, 0, 0, 0, None, None, None, None)
        self._newest: dict[str, tuple[int, Path]] = {}  # by kind: of which batch, and the part

    def look(self, now: float) -> StreamStatus:
        """The status, with the manifests that have come since the last look."""
        for manifest in self._fresh():
            self._take(manifest)
        self._recent = [each for each in self._recent if each[0] >= now - WINDOW]
        self._delays = [each for each in self._delays if each[0] >= now - WINDOW]
        end = max(self._log.end, self._totals.sequence)
        delays = [(delay, events) for _, delay, events in self._delays]
        return self._totals._replace(
            backlog=self._log.counts(self._totals.sequence, end)[0],
            rate=rate([(written, events) for written, events, _ in self._recent], now),
            matches=rate([(written, found) for written, _, found in self._recent], now),
            p50=quantile(delays, 0.5),
            p95=quantile(delays, 0.95),
        )

    def forget(self) -> None:
        """Take rates and latencies from here on."""
        self._recent.clear()
        self._delays.clear()

    def newest(self, kind: str = NOTIFICATIONS, rows: int = 100) -> list[dict[str, Any]]:
        """Some rows of the newest part, of notifications or of dead letters."""
        if kind not in self._newest:
            return []
        try:
            table = pq.read_table(self._newest[kind][1])
        except FileNotFoundError:  # merged meanwhile, seen with the next look
            return []
        step = max(1, table.num_rows // rows)
        return table.take(list(range(0, table.num_rows, step))).to_pylist()[:rows]

    def _fresh(self) -> list[dict[str, Any]]:
        folder = self._out / MANIFESTS
        try:
            names = {name for name in names_in(folder) if name.startswith(self._query)}
        except FileNotFoundError:
            return []
        fresh = names - self._seen
        self._seen = names
        found: list[dict[str, Any]] = []
        for name in fresh:
            with suppress(FileNotFoundError):  # merged meanwhile, seen next time
                found.append(json.loads((folder / name).read_text(encoding="utf-8")))
        merged = max((int(each["batch"]) for each in found if BATCHES in each), default=-1)
        for each in found:
            if BATCHES in each:  # the parts of its batches may go, even if they are known
                self._note(each)
        # A merged manifest counts for all its batches, unless they are known.
        return sorted(
            (
                each
                for each in found
                if (BATCHES in each and self._taken < int(each["batch"]) == merged)
                or (BATCHES not in each and int(each["batch"]) > merged)
            ),
            key=lambda manifest: int(manifest["batch"]),
        )

    def _take(self, manifest: dict[str, Any]) -> None:
        totals, merged = self._totals, BATCHES in manifest
        if merged:  # of all batches from the first on
            totals = totals._replace(sequence=self._first, events=0, notifications=0, dead=0)
        (offset,) = manifest["offsets"]  # the stream has one source
        # A service that matches itself writes what a manifest covers, and has no versions.
        start, end = totals.sequence, int(offset["sequence" if "sequence" in offset else "end"])
        events, found = self._log.counts(start, end)[0], int(manifest[NOTIFICATIONS])
        self._taken = int(manifest["batch"])
        self._totals = totals._replace(
            batches=int(manifest.get(BATCHES, totals.batches + 1)),
            sequence=end,
            version=int(offset.get("version", NO_VERSION)),
            events=totals.events + events,
            notifications=totals.notifications + found,
            dead=totals.dead + int(manifest[DEAD]),
        )
        self._note(manifest)
        written = float(manifest["written"])
        if written >= self._since and not merged:
            self._recent.append((written, events, found))
            for _, table in self._log.events(start, end):
                delay = max(0.0, written - appended(table).timestamp())
                self._delays.append((written, delay, table.num_rows))

    def _note(self, manifest: dict[str, Any]) -> None:
        number = int(manifest["batch"])
        for part in manifest["parts"]:
            kind = part["folder"]
            if number >= self._newest.get(kind, (-1, None))[0]:
                self._newest[kind] = number, self._out / kind / part["name"]


def rate(counts: list[tuple[float, int]], now: float) -> float | None:
    """How many a second, from (when, how many); the first is only the start of counting.

    >>> rate([(10.0, 500), (11.0, 300), (12.0, 100)], now=14.0)
    100.0
    """
    if len(counts) < 2 or now <= counts[0][0]:
        return None
    return sum(count for _, count in counts[1:]) / (now - counts[0][0])


def quantile(values: Iterable[tuple[float, int]], part: float) -> float | None:
    """A quantile of weighted values, from (value, how many have it).

    >>> quantile([(0.2, 90), (0.7, 10)], 0.5), quantile([(0.2, 90), (0.7, 10)], 0.95)
    (0.2, 0.7)
    """
    ordered = sorted(values)
    left = part * sum(weight for _, weight in ordered)
    for value, weight in ordered:
        left -= weight
        if left <= 0:
            return value
    return None


def query_of(checkpoint: Path) -> str | None:
    """The id of the query that a checkpoint belongs to; None before its first start."""
    try:
        text = (checkpoint / "metadata").read_text(encoding="utf-8")
        found = json.loads(text)["id"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    # It becomes a part of file names.
    return plain_name(found, f"{checkpoint / 'metadata'}: is damaged, the query", StoreError)
