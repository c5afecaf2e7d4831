"""Rows of a log that this service did not append itself: what they change in what is derived."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tamis.broker.sequence.dedup import DedupKeys, dedup_key
from tamis.store.log import Log
from tamis.store.pack import appended, microseconds


def apply_arguments(
    log: Log, start: int, end: int, moment: int | None = None
) -> tuple[pa.Table, int, int, list[int]]:
    """The changes of a range, as `State.apply` takes them; `moment` is when the log last grew."""
    changes = log.changes(start, end, details=True)
    moments = _moments(log, changes, max(start, log.begin), end)
    return changes, end, last_moment(log) if moment is None else moment, moments


def remember_keys(log: Log, dedup: DedupKeys, start: int, end: int) -> int:
    """Remember the keys of the events of a range; returns when the last row was appended."""
    for first, table in log.events(start, end):
        dedup.remember(event_keys(first, table), microseconds(appended(table)))
    return last_moment(log)


def last_moment(log: Log) -> int:
    """When the last pack was appended; 0 for an empty log."""
    end = log.end
    if end <= log.begin:
        return 0
    (last,) = log.boundaries(end - 1, end)
    return int(getattr(last, "appended", 0))


def _moments(log: Log, changes: pa.Table, start: int, end: int) -> list[int]:
    """When each change was appended; 0 for those that a trim has carried over."""
    sections = log.boundaries(start, end)
    firsts = np.array([each.first for each in sections], dtype=np.int64)
    times = np.array([0, *(getattr(each, "appended", 0) for each in sections)], dtype=np.int64)
    numbers = np.asarray(changes["sequence"])
    return [int(each) for each in times[np.searchsorted(firsts, numbers, "right")]]


def event_keys(first: int, table: pa.Table) -> list[tuple[bytes, int]]:
    """The keys of events that have one, with their numbers."""
    if "$source" not in table.column_names or "$id" not in table.column_names:
        return []
    pairs = zip(table["$source"].to_pylist(), table["$id"].to_pylist(), strict=True)
    return [
        (dedup_key(source, id), first + row)
        for row, (source, id) in enumerate(pairs)
        if source is not None and id is not None
    ]
