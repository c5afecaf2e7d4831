"""Which of the events that a log keeps a condition would have matched.

It counts a few thousand events at a time, in one process, or the parts of a range in several.
Events are read by the schemas of their numbers, and the condition by the schema at the end of the
log.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from tamis.engine import Engine
from tamis.errors import StoreError
from tamis.replay.event_source import Int64s
from tamis.replay.log_events import LogEvents
from tamis.replay.pipeline import BatchPace, match_with
from tamis.store.log import Log
from tamis.store.pack import EVENTS

BUCKETS, SAMPLES = 60, 5
_AT_ONCE = 4096  # events: between two of these, others get their turn
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads numbers, so that samples are of all times


class TimeBucket(NamedTuple):
    """Events that were appended from `begin` to before `end`."""

    begin: datetime
    end: datetime
    events: int
    matched: int


class LogBacktest(NamedTuple):
    """What a condition would have matched."""

    first: int  # the range of the log
    end: int
    events: int
    matched: int
    dead: int  # events that are not valid
    over_time: list[TimeBucket]
    samples: list[int]  # numbers of matched events


class BacktestCancelledError(StoreError):
    """A back-test that was asked to stop."""


def range_of(
    log: Log,
    first: int | None = None,
    end: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[int, int]:
    """The part of a log between two numbers and two moments; what is not given is not limited."""
    low = log.begin if first is None else min(max(first, log.begin), log.end)
    high = log.end if end is None else min(end, log.end)
    for section in log.boundaries(log.begin, log.end):
        moment = _EPOCH + timedelta(microseconds=int(getattr(section, "appended", 0)))
        if since is not None and moment < since:
            low = max(low, section.end)
        if until is not None and moment >= until:
            high = min(high, section.first)
    return low, max(low, high)


class TimeGrid:
    """The buckets of a range of a log, by the times at which its packs were appended."""

    def __init__(self, log: Log, first: int, end: int, buckets: int) -> None:
        self.first, self.end = first, end
        sections = [each for each in log.boundaries(first, end) if each.kind == EVENTS]
        self._firsts = np.array([each.first for each in sections], np.int64)
        self._times = np.array([int(getattr(each, "appended", 0)) for each in sections], np.int64)
        times = self._times
        low, high = (int(times.min()), int(times.max()) + 1) if len(times) else (0, 1)
        self.many = max(1, min(buckets, high - low))
        self._edges = low + (np.arange(self.many + 1, dtype=np.int64) * (high - low)) // self.many

    def count(self, numbers: Int64s) -> Int64s:
        """How many of some events are in each bucket."""
        moments = self._times[np.searchsorted(self._firsts, numbers, "right") - 1]
        places = np.searchsorted(self._edges, moments, "right") - 1
        return np.bincount(places, minlength=self.many)

    def report(self, counts: RangeCounts) -> LogBacktest:
        """The back-test of the range, from the counts of all its parts."""
        totals, matches, edges = counts.totals, counts.matches, self._edges
        over_time = [
            TimeBucket(_moment(edges[at]), _moment(edges[at + 1]), totals[at], matches[at])
            for at in range(self.many if len(self._times) else 0)
        ]
        found = (counts.events, sum(matches), counts.dead, over_time, sorted(counts.samples))
        return LogBacktest(self.first, self.end, *found)


class RangeCounts(NamedTuple):
    """What was counted in a part of a range."""

    events: int
    dead: int
    totals: list[int]  # events by bucket
    matches: list[int]
    samples: list[int]  # numbers of matched events

    def plus(self, other: RangeCounts, samples: int) -> RangeCounts:
        """The counts of both parts, with so many samples."""
        both = np.array([*self.samples, *other.samples], np.int64)
        return RangeCounts(
            self.events + other.events,
            self.dead + other.dead,
            [one + two for one, two in zip(self.totals, other.totals, strict=True)],
            [one + two for one, two in zip(self.matches, other.matches, strict=True)],
            _sampled(both, samples).tolist(),
        )


def backtest_log(
    log: Log,
    engine: Engine,
    first: int,
    end: int,
    *,
    buckets: int = BUCKETS,
    samples: int = SAMPLES,
    progress: Callable[[int], bool] = lambda events: True,
) -> LogBacktest:
    """Count the events of a range that an engine with one subscription matches.

    `progress` is called with the events that are done, now and then. False ends the back-test with
    `BacktestCancelledError`.
    """
    grid = TimeGrid(log, first, end, buckets)
    return grid.report(count_range(log, engine, grid, (first, end), samples, progress))


def count_range(
    log: Log,
    engine: Engine,
    grid: TimeGrid,
    part: tuple[int, int],
    samples: int,
    progress: Callable[[int], bool] = lambda events: True,
) -> RangeCounts:
    """Count the events of a part of the range of a grid."""
    totals, matches = np.zeros(grid.many, np.int64), np.zeros(grid.many, np.int64)
    kept = np.zeros(0, np.int64)
    done = dead = 0
    source = LogEvents(str(log.folder), (part,))
    pace = BatchPace(_AT_ONCE, _AT_ONCE)
    for events, found in match_with(engine, source.chunks(0), pace):
        numbers = events.chunk.numbers
        done += len(numbers)
        dead += len(events.valid.refused)
        hit = events.numbers[np.diff(found.starts) > 0]
        totals += grid.count(numbers)
        matches += grid.count(hit)
        kept = _sampled(np.concatenate([kept, hit]), samples)
        if not progress(done):
            raise BacktestCancelledError("the back-test was cancelled")
    return RangeCounts(done, dead, totals.tolist(), matches.tolist(), kept.tolist())


def _sampled(numbers: Int64s, samples: int) -> Int64s:
    """Some of the numbers: always the same ones of the same events."""
    ranks = numbers.astype(np.uint64) * _MIX
    return numbers[np.argsort(ranks, kind="stable")[:samples]]


def _moment(microseconds: np.int64) -> datetime:
    return _EPOCH + timedelta(microseconds=int(microseconds))
