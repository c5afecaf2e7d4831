"""What a broker does when it starts: bring everything that is derived up to the log's end."""

from __future__ import annotations

from typing import NamedTuple

from tamis.broker.sequence.appended_rows import apply_arguments, event_keys, last_moment
from tamis.broker.sequence.dedup import MOST, WINDOW, DedupKeys
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
        arguments = apply_arguments(log, start, stop, moment)
        state.apply(*arguments)
        applied += arguments[0].num_rows
        start = stop
    _remember(log, dedup, moment)
    return Recovered(end, applied, len(dedup), moment)


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
            found.append((event_keys(first, table), microseconds(appended(table))))
            count += len(found[-1][0])
    for keys, moment in reversed(found):
        dedup.remember(keys, moment)
