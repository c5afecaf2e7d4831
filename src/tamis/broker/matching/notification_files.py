"""Notifications in files: pairs of an event and a subscription, in parts that manifests name.

They are a function of the log: what a crash loses is matched again. A manifest covers the sequence
numbers from `start` to before `end`, and is written once. The files are those of the Spark sink,
and Spark may write them in place of the broker.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from tamis.broker import metrics
from tamis.errors import StoreError
from tamis.files.names import names_in
from tamis.replay.coverage import CoveredRange, coverage
from tamis.replay.event_source import Int64s
from tamis.replay.manifests import COVERS, MANIFESTS, put
from tamis.replay.parts import (
    DEAD,
    NOTIFICATIONS,
    RAW,
    REASON,
    SEQUENCE,
    SUBSCRIPTION,
    PartWriter,
    check_footer,
    damage_named,
    read_part,
)

_ATTEMPTS = 3  # at reading a part that was merged with others meanwhile


class NotificationPairs(NamedTuple):
    """The notifications of a range of the sequence, in its order."""

    start: int
    end: int
    numbers: Int64s  # of the events
    ids: pa.Array  # of the subscriptions

    def after(self, sequence: int) -> NotificationPairs:
        """Those of events after a number."""
        at = int(np.searchsorted(self.numbers, sequence, "right"))
        return NotificationPairs(
            max(self.start, sequence + 1), self.end, self.numbers[at:], self.ids[at:]
        )


class NotificationFiles:
    """The notifications of a log in a folder. One matcher writes; others may read.

    `kept` is the first sequence number that the log keeps.
    """

    def __init__(self, folder: Path, ids: pa.DataType, kept: int = 0) -> None:
        self.folder, self.ids, self._kept = folder, ids, kept
        self._lock = Lock()  # around what is known
        self._names: set[str] = set()
        self._covered: list[CoveredRange] = []
        self._batches: dict[str, int] = {}  # by query, the last one
        self.load()

    def load(self) -> None:
        """Read what the folder holds now."""
        with self._lock:
            self._names = self._manifests()
            self._covered = coverage(self.folder, self._kept).ranges

    def refresh(self) -> bool:
        """Take note of what others have written; whether there was something."""
        if self._manifests() == self._names:
            return False
        self.load()
        return True

    def note_removal(self) -> None:
        """Old notifications were removed from the folder; there is nothing else to remove."""

    def _manifests(self) -> set[str]:
        try:
            names = names_in(self.folder / MANIFESTS)
        except FileNotFoundError:
            return set()
        return {name for name in names if name.endswith(".json") and not name.startswith(".")}

    @property
    def begin(self) -> int:
        """The first sequence number whose notifications are kept."""
        return self._covered[0].start if self._covered else 0

    @property
    def matched(self) -> int:
        """Notifications of all events before this number are on disk."""
        return self._covered[-1].end if self._covered else 0

    def write(
        self, query: str, start: int, end: int, found: list[NotificationPairs], dead: list[pa.Table]
    ) -> None:
        """Write the notifications and dead letters of a range, and commit them."""
        self.commit(query, start, end, self.write_parts(query, found, dead))

    def write_parts(
        self, query: str, found: list[NotificationPairs], dead: list[pa.Table]
    ) -> list[dict[str, Any]]:
        """Write notifications and dead letters. They count once they are committed."""
        pairs = [
            pa.table({SEQUENCE: each.numbers, SUBSCRIPTION: each.ids})
            for each in found
            if len(each.numbers)
        ]
        return [
            self._write_part(query, kind, tables)
            for kind, tables in ((NOTIFICATIONS, pairs), (DEAD, dead))
            if tables
        ]

    def commit(self, query: str, start: int, end: int, parts: list[dict[str, Any]]) -> None:
        """Commit the parts of a range."""
        if query not in self._batches:
            written = (name.removeprefix(f"{query}-") for name in self._manifests())
            self._batches[query] = max(
                (int(name[:10]) for name in written if name[:10].isdecimal()), default=-1
            )
        batch = self._batches[query] + 1
        covers = {"start": start, "end": end}
        facts = {"query": query, "batch": batch, "offsets": [covers], COVERS: covers}
        name = f"{query}-{batch:010d}-{end}"
        put(self.folder, name, facts, parts)
        metrics.NOTIFICATIONS_WRITTEN.inc(
            sum(part["rows"] for part in parts if part["folder"] == NOTIFICATIONS)
        )
        names = tuple(part["name"] for part in parts if part["folder"] == NOTIFICATIONS)
        with self._lock:
            if not self._covered or self._covered[-1].end < end:  # else a reader has loaded it
                self._covered.append(CoveredRange(start, end, f"{name}.json", names))
            self._batches[query] = batch

    def _write_part(self, query: str, kind: str, tables: list[pa.Table]) -> dict[str, Any]:
        writer = PartWriter(self.folder / kind, f"part-{query}-{uuid.uuid4().hex}.parquet")
        try:
            for table in tables:
                writer.write(table)
            return writer.close()
        except BaseException:
            writer.discard()
            raise

    def read(self, after: int, end: int) -> Iterator[NotificationPairs]:
        """Notifications of events after a number and before `end`, in order."""
        at = after + 1
        while at < end:
            with self._lock:
                rest = [each for each in self._covered if each.end > at and each.start < end]
            if not rest:
                return
            yield from self._range_pairs(rest[0], at - 1, end)
            at = max(at + 1, rest[0].end)

    def _range_pairs(self, covered: CoveredRange, after: int, end: int) -> list[NotificationPairs]:
        """The notifications of one manifest. Parts that were merged meanwhile are looked up."""
        for _ in range(_ATTEMPTS):
            try:
                return self._read_range(covered, after, end)
            except FileNotFoundError:
                # The merged manifest covers more: only the range that was asked for is read.
                at, end = max(after + 1, covered.start), min(end, covered.end)
                self.load()
                with self._lock:
                    found = [each for each in self._covered if each.start <= at < each.end]
                if not found:
                    break
                covered = found[0]
        raise StoreError(
            f"{self.folder}: parts of {covered.manifest} are missing; start the service again, "
            "which finds their notifications once more"
        )

    def _read_range(self, covered: CoveredRange, after: int, end: int) -> list[NotificationPairs]:
        """The notifications of one manifest: parts with the same events are sorted together.

        A batch of Spark is several parts with rows of the same events, in no order.
        """
        spans = []
        for name in covered.parts:
            low, high = _span(self.folder / NOTIFICATIONS / name)
            if high > after and low < end:
                spans.append((low, high, name))
        groups: list[tuple[int, int, list[str]]] = []
        for low, high, name in sorted(spans):
            if groups and low <= groups[-1][1]:
                first, last, names = groups[-1]
                groups[-1] = first, max(last, high), [*names, name]
            else:
                groups.append((low, high, [name]))
        ends = [low for low, _, _ in groups[1:]] + [covered.end]
        return [
            self._pairs(names, max(low, after + 1), min(stop, end))
            for (low, _, names), stop in zip(groups, ends, strict=False)
        ]

    def _pairs(self, names: list[str], start: int, end: int) -> NotificationPairs:
        """The notifications of a range in some parts."""
        where = (pc.field(SEQUENCE) >= start) & (pc.field(SEQUENCE) < end)
        tables = [
            read_part(
                self.folder / NOTIFICATIONS / name, columns=[SEQUENCE, SUBSCRIPTION], filters=where
            ).cast(pa.schema([(SEQUENCE, pa.int64()), (SUBSCRIPTION, self.ids)]))
            for name in names
        ]
        table = pa.concat_tables(tables).combine_chunks()
        numbers, ids = np.asarray(table[SEQUENCE]), table[SUBSCRIPTION].combine_chunks()
        if (np.diff(numbers) < 0).any():
            order = np.argsort(numbers, kind="stable")
            numbers, ids = numbers[order], ids.take(pa.array(order))
        return NotificationPairs(start, end, numbers, ids)


def _span(path: Path) -> tuple[int, int]:
    """The first and the last sequence number of a part."""
    with damage_named(path):
        check_footer(path)
        facts = parquet.read_metadata(path)
        names = [facts.schema.column(at).name for at in range(facts.num_columns)]
        column = names.index(SEQUENCE)
        groups = range(facts.num_row_groups)
        stats = [facts.row_group(at).column(column).statistics for at in groups]
        return min(each.min for each in stats), max(each.max for each in stats)


def dead_letters(numbers: Int64s, reasons: pa.Array, raw: pa.Array) -> pa.Table:
    """Refused events as rows."""
    return pa.table({SEQUENCE: numbers, REASON: reasons, RAW: raw})
