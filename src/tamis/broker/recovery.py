"""What a broker does when it starts: bring everything that is derived up to the log's end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.broker.sequence.dedup import MOST, WINDOW, DedupKeys, dedup_key
from tamis.broker.state import State
from tamis.errors import BrokerError
from tamis.store.log import Log
from tamis.store.pack import appended, microseconds

_SLICE = 100_000  # rows of the log that are applied at once


class Recovered(NamedTuple):
    """What a start has found and done."""

    end: int  # of the log
    applied: int  # changes of the log that the database did not have
    keys: int  # of publishes that are remembered
    moment: int  # when the last pack was appended, in microseconds since 1970


def recover(log: Log, state: State, dedup: DedupKeys) -> Recovered:
    """Apply what the database lacks, and remember the keys of recent publishes.

    The log is settled first. Otherwise the next append would find a pack of a killed process, and
    the database would go on after it.
    """
    end, start = log.settle(), state.applied
    if start > end:
        raise BrokerError(
            f"{state.path}: reflects {start:,} rows of the log, which has only {end:,}: the log "
            "was put back from a backup, or rows of it are lost; `tamis serve --rebuild` builds "
            "the database anew from the log"
        )
    applied, moment = 0, last_moment(log)
    if 0 < start < log.begin:  # changes that it lacks were trimmed; the base has what is live
        state.clear()
        start = 0
    while start < end:
        stop = min(end, max(start, log.begin) + _SLICE)
        changes = log.changes(start, stop, details=True)
        state.apply(changes, stop, moment, _moments(log, changes, max(start, log.begin), stop))
        applied += changes.num_rows
        start = stop
    _remember(log, dedup, moment)
    return Recovered(end, applied, len(dedup), moment)


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


def _remember(log: Log, dedup: DedupKeys, now: int) -> None:
    """Read the last events for their keys: as many keys as are remembered."""
    sections = log.boundaries(log.begin, log.end)
    found: list[tuple[list[tuple[bytes, int]], int]] = []  # by pack, the last one first
    count, at = 0, len(sections)
    while at and count < MOST:
        end = at
        while (at and sections[end - 1].end - sections[at - 1].first <= _SLICE) or at == end > 0:
            if getattr(sections[at - 1], "appended", now) <= now - WINDOW:
                break
            at -= 1
        if at == end:
            break
        tables = list(log.events(sections[at].first, sections[end - 1].end))
        for first, table in reversed(tables):
            found.append((_keys(first, table), microseconds(appended(table))))
            count += len(found[-1][0])
    for keys, moment in reversed(found):
        dedup.remember(keys, moment)


def _keys(first: int, table: pa.Table) -> list[tuple[bytes, int]]:
    if "$source" not in table.column_names or "$id" not in table.column_names:
        return []
    pairs = zip(table["$source"].to_pylist(), table["$id"].to_pylist(), strict=True)
    return [
        (dedup_key(source, id), first + row)
        for row, (source, id) in enumerate(pairs)
        if source is not None and id is not None
    ]
