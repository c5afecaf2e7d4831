"""What a broker does when it starts: bring everything that is derived up to the log's end."""

from __future__ import annotations

from typing import NamedTuple

from tamis.broker.sequence.dedup import MOST, WINDOW, DedupKeys, dedup_key
from tamis.broker.state import State
from tamis.errors import BrokerError
from tamis.store.log import Log
from tamis.store.pack import EVENTS, appended, microseconds

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
        state.apply(changes, stop, moment)
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


def _remember(log: Log, dedup: DedupKeys, now: int) -> None:
    """Read the last events for their keys: as many as are remembered."""
    start, end, events = log.begin, log.end, 0
    for section in reversed(log.boundaries(log.begin, end)):
        if section.kind == EVENTS:
            events += section.end - section.first
        if events > MOST or getattr(section, "appended", now) <= now - WINDOW:
            break
        start = section.first
    for first, table in log.events(start, end):
        if "$source" not in table.column_names or "$id" not in table.column_names:
            continue
        pairs = zip(table["$source"].to_pylist(), table["$id"].to_pylist(), strict=True)
        keys = [
            (dedup_key(source, id), first + row)
            for row, (source, id) in enumerate(pairs)
            if source is not None and id is not None
        ]
        dedup.remember(keys, microseconds(appended(table)))
