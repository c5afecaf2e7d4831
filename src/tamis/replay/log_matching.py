"""Events of a log, matched with the subscriptions that are live at their numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tamis.replay.event_source import EventChunk
from tamis.replay.live_subscriptions import LivePairs, LiveSubscriptions
from tamis.replay.log_events import event_ranges, row_layout
from tamis.replay.pipeline import BatchPace, ReadEvents, read_events
from tamis.store.log import Log
from tamis.store.pack import moments
from tamis.store.published import without_reserved
from tamis.store.schema_records import SchemaRange


def match_log(
    live: LiveSubscriptions, log: Log, start: int, end: int, pace: BatchPace
) -> Iterator[tuple[ReadEvents, LivePairs]]:
    """Match the events of a range, some at a time: each is validated by the schema of its number.

    The engines may have a later schema. An event means the same there: an extension changes no
    answer about what was there before.
    """
    live.take(log, end)
    for part in event_ranges(log, start, end):
        for events in read_events(_chunks(log, part), live.encoder, pace):
            yield events, live.match(events.valid, events.numbers, events.moments)


def _chunks(log: Log, part: SchemaRange) -> Iterator[EventChunk]:
    layout = row_layout(part.schema)
    for first, table in log.events(part.start, part.end):
        numbers = np.arange(first, first + table.num_rows)
        yield EventChunk(numbers, without_reserved(table), layout, moments(table))
