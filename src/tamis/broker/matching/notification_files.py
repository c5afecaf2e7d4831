"""Notifications in files: pairs of an event and a subscription, in parts that manifests name.

They are a function of the log: what a crash loses is matched again. A manifest covers the sequence
numbers from `start` to before `end`, and is written once. The files are those of the Spark sink.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from tamis.broker import metrics
from tamis.errors import StoreError
from tamis.replay.event_source import Int64s
from tamis.replay.manifests import manifests, put
from tamis.replay.parts import DEAD, NOTIFICATIONS, RAW, REASON, SEQUENCE, SUBSCRIPTION, PartWriter

QUERY = "inline"


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


class CoveredRange(NamedTuple):
    """What a manifest covers."""

    start: int
    end: int
    parts: tuple[str, ...]


class NotificationFiles:
    """The notifications of a log in a folder. One thread writes; others may read."""

    def __init__(self, folder: Path, ids: pa.DataType) -> None:
        self.folder, self._ids = folder, ids
        self._covered: list[CoveredRange] = []
        self._batch = -1
        for manifest in manifests(folder):
            if manifest.get("query") == QUERY:
                self._note(manifest)
        self._covered.sort()

    def _note(self, manifest: dict[str, Any]) -> None:
        try:
            start, end = manifest["offsets"][0]["start"], manifest["offsets"][0]["end"]
        except (KeyError, IndexError, TypeError):
            raise StoreError(f"{self.folder}: a manifest does not say what it covers") from None
        names = [each["name"] for each in manifest["parts"] if each["folder"] == NOTIFICATIONS]
        self._covered.append(CoveredRange(start, end, tuple(names)))
        self._batch = max(self._batch, int(manifest["batch"]))

    @property
    def begin(self) -> int:
        """The first sequence number whose notifications are kept."""
        return self._covered[0].start if self._covered else 0

    @property
    def matched(self) -> int:
        """Notifications of all events before this number are on disk."""
        return self._covered[-1].end if self._covered else 0

    def write(
        self, start: int, end: int, found: list[NotificationPairs], dead: list[pa.Table]
    ) -> None:
        """Write the notifications and dead letters of a range, and commit them."""
        batch = self._batch + 1
        pairs = [
            pa.table({SEQUENCE: each.numbers, SUBSCRIPTION: each.ids})
            for each in found
            if len(each.numbers)
        ]
        parts = [
            self._write_part(kind, tables)
            for kind, tables in ((NOTIFICATIONS, pairs), (DEAD, dead))
            if tables
        ]
        facts = {"query": QUERY, "batch": batch, "offsets": [{"start": start, "end": end}]}
        put(self.folder, f"{QUERY}-{batch:010d}-{end}", facts, parts)
        metrics.NOTIFICATIONS_WRITTEN.inc(sum(table.num_rows for table in pairs))
        names = tuple(part["name"] for part in parts if part["folder"] == NOTIFICATIONS)
        self._covered.append(CoveredRange(start, end, names))
        self._batch = batch

    def _write_part(self, kind: str, tables: list[pa.Table]) -> dict[str, Any]:
        writer = PartWriter(self.folder / kind, f"part-{QUERY}-{uuid.uuid4().hex}.parquet")
        try:
            for table in tables:
                writer.write(table)
            return writer.close()
        except BaseException:
            writer.discard()
            raise

    def read(self, after: int, end: int) -> Iterator[NotificationPairs]:
        """Notifications of events after a number and before `end`, in order."""
        for covered in list(self._covered):
            if covered.end <= after + 1 or covered.start >= end:
                continue
            for name in covered.parts:
                where = (pc.field(SEQUENCE) > after) & (pc.field(SEQUENCE) < end)
                table = parquet.read_table(self.folder / NOTIFICATIONS / name, filters=where)
                table = table.combine_chunks()
                numbers = np.asarray(table[SEQUENCE])
                ids = table[SUBSCRIPTION].combine_chunks().cast(self._ids)
                yield NotificationPairs(
                    max(covered.start, after + 1), min(covered.end, end), numbers, ids
                )


def dead_letters(numbers: Int64s, reasons: pa.Array, raw: pa.Array) -> pa.Table:
    """Refused events as rows."""
    return pa.table({SEQUENCE: numbers, REASON: reasons, RAW: raw})
