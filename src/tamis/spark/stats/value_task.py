"""The task of `gather_stats`: hands the values of its events to Spark.

It gives a row for each value: the attribute and the code, or the text itself. Spark's aggregates
count all rows by attribute in one pass. Codes are in the order of their values, so Spark counts
whole numbers whatever the domain. A column for each attribute would be the usual table, but its
rows cost as much as there are attributes: with 200, of which events bind a few, a hundred times as
much.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from tamis.encode.encoder import Encoder
from tamis.encode.lines.event_columns import schema_encoder
from tamis.encode.validation import ValidEvents, validate
from tamis.errors import SparkError, StoreError
from tamis.files.atomic import atomic_file
from tamis.files.os_errors import os_errors_as
from tamis.model.dynamic import Dynamic
from tamis.model.schema import EVENT_TYPE
from tamis.replay.event_source import EventSource
from tamis.replay.pipeline import BatchPace, ReadEvents, encoder_of, read_events
from tamis.spark.backtest.tally import ranks
from tamis.spark.stats.attribute_values import attribute_values, event_table

Int64s = NDArray[np.int64]
RANK = "`rank`"  # a column of the sample's parts; no attribute has a backquote
LONGEST = 200  # characters of a text that are counted
ALL, PART = -1, -2  # in place of an attribute: all events; a file with a part of the sample
VALUES = pa.schema(
    [
        ("attribute", pa.int32()),  # its place among the tracked ones
        ("code", pa.int64()),
        ("text", pa.string()),
        # Once for each batch:
        ("events", pa.int64()),  # that bind the attribute; for ALL: the good ones
        ("rest", pa.int64()),  # their values; for ALL: the dead
    ]
)
_AT_ONCE = 1 << 16  # events whose values are handed on together
_ROWS = 1 << 18  # rows that are handed on together, about


class ValueTask(NamedTuple):
    """What all tasks need. A task is a share of the events."""

    events: EventSource
    document: str  # of the schema
    most: int  # events of a sample
    limit: int  # ranks of events that may get into it
    seed: int
    work: str  # the folder for parts of the sample

    def run(self, share: int) -> Iterator[pa.RecordBatch]:
        encoder, sample = schema_encoder(self.document), _ShareSample(self)
        pace = BatchPace(_AT_ONCE, _AT_ONCE)
        chunks = self.events.chunks(share)
        for events in read_events(chunks, encoder, pace, for_operators=False):
            yield from _value_rows(encoder, events.valid.recoded(encoder))
            sample.offer(events, encoder)
        part = sample.written()
        if part is not None:
            yield _rows(PART, 0, 0, pa.array([part]))


def tracked(encoder: Encoder) -> list[str]:
    """The attributes that are counted: the event type only if there are several.

    A dynamic attribute has values of several types, and statistics have one for each attribute.
    """
    several = len(encoder.schema.event_types) > 1
    return [
        name
        for name, domain in encoder.schema.attributes.items()
        if (several or name != EVENT_TYPE) and not isinstance(domain, Dynamic)
    ]


def _value_rows(encoder: Encoder, valid: ValidEvents) -> Iterator[pa.RecordBatch]:
    reason = min((reason for _, reason in valid.refused), default=None)
    yield _rows(ALL, len(valid), len(valid.refused), pa.array([reason], pa.string()))
    waiting: list[pa.RecordBatch] = []
    for at, name in enumerate(tracked(encoder)):
        found = attribute_values(encoder, valid, name)
        if found is None:
            continue
        counted = encoder.schema.attributes[name].hashable  # others are only present or not
        values = _short(found.array) if counted else found.array.slice(0, 0)
        waiting.append(_rows(at, found.bound, len(found.array), values))
        if sum(each.num_rows for each in waiting) > _ROWS:
            yield pa.concat_batches(waiting)
            waiting = []
    if waiting:
        yield pa.concat_batches(waiting)


def _short(array: pa.Array) -> pa.Array:
    if not pa.types.is_string(array.type):
        return array
    longest = pc.max(pc.binary_length(array)).as_py() or 0
    return pc.utf8_slice_codeunits(array, 0, LONGEST) if longest > LONGEST else array


def _rows(attribute: int, events: int, rest: int, values: pa.Array) -> pa.RecordBatch:
    """Rows with a value each; the first one has the counts."""
    rows = max(1, len(values))
    texts = pa.types.is_string(values.type)
    given = {"text" if texts else "code": values, "events": pa.array([events], pa.int64()),
             "rest": pa.array([rest], pa.int64())}  # fmt: skip
    columns = [pa.array(np.full(rows, attribute, np.int32))]
    for each in list(VALUES)[1:]:
        found = given.get(each.name, pa.array([], each.type))
        missing = pa.nulls(rows - len(found), each.type)
        columns.append(pa.concat_arrays([found, missing]) if len(missing) else found)
    return pa.RecordBatch.from_arrays(columns, schema=VALUES)


# -- the sample ------------------------------------------------------------------------------------


class _ShareSample:
    """The events of a share with the lowest ranks. A rank depends on the event's number alone.

    All events of a sample may come from one share, so a task keeps as many. It skips ranks above a
    limit, below which there are a few times as many events as needed.
    """

    def __init__(self, job: ValueTask) -> None:
        self._job = job
        self._ranks = np.zeros(0, np.uint64)
        self._events: list[pa.Table] = []

    def offer(self, events: ReadEvents, encoder: Encoder) -> None:
        """Take the events that may get into the sample."""
        rank = ranked(events.numbers, self._job.seed)
        rows = np.flatnonzero(rank <= np.uint64(self._job.limit))
        if len(rows):
            own = encoder_of(events.chunk, encoder)
            some = validate(own, events.valid.table.take(pa.array(rows))).recoded(encoder)
            self._ranks = np.concatenate([self._ranks, rank[rows]])
            self._events.append(event_table(encoder, some, tracked(encoder)))
            if len(self._ranks) > 4 * self._job.most:
                self._cut()

    def _cut(self) -> None:
        order = np.argsort(self._ranks)[: self._job.most]
        self._ranks = self._ranks[order]
        self._events = [joined_events(self._events).take(pa.array(order)).combine_chunks()]

    def written(self) -> str | None:
        """Write them to a file, and give its name; None if there are no events."""
        if not len(self._ranks):
            return None
        self._cut()
        name = f"{uuid.uuid4().hex}.parquet"
        table = self._events[0].append_column(RANK, pa.array(self._ranks))
        path = Path(self._job.work) / name
        with os_errors_as(StoreError, f"{path}: cannot be written"), atomic_file(path) as file:
            parquet.write_table(table, file)
        return name


def ranked(numbers: Int64s, seed: int) -> NDArray[np.uint64]:
    """Ranks of events by their numbers and a seed."""
    other = ranks(np.array([seed], np.int64)).view(np.int64)
    return ranks(numbers ^ other)


def joined_events(tables: list[pa.Table]) -> pa.Table:
    """Events of several tables; an opaque attribute may lack a column in some of them."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as why:
        raise SparkError(
            f"an opaque attribute has several types, which do not fit in one sample: {why}"
        ) from None
