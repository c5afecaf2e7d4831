"""What a worker does with rows of parquet files: read them, match them, write the pairs down.

Nothing of that passes through the JVM, which only hears how many there were. Events are read a
piece at a time, and their pairs written before the next are matched, so that a task needs room for
a piece, whatever the size of its share.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.arrow import encode, one_chunk
from tamis.encode.batch import EventBatch
from tamis.encode.validation import Refused
from tamis.replay.event_source import Checked, FileEvents, Pace, Piece, checked
from tamis.replay.parts import DEAD, NOTIFICATIONS, RAW, REASON, SEQUENCE, SUBSCRIPTION, Part
from tamis.spark.runtime.operator_reports import NOTHING, since, written
from tamis.spark.runtime.worker_cache import opened

if TYPE_CHECKING:
    from tamis.engine import Engine
    from tamis.match.answers import Matches

Int64s = NDArray[np.int64]
DONE = (
    "task int, events long, matched long, pairs long, dead long, bits binary, "
    "parts array<struct<folder: string, name: string, rows: long>>, operators string"
)


class Matching(NamedTuple):
    """All that tasks have to know. A task is a share of the rows and a shard."""

    events: FileEvents
    shards: tuple[str, ...]  # none: rows are read, and that is all
    operators: bytes
    texts: bool  # whether ids of subscriptions are text
    id: str | None  # the column that tells events apart; None: their numbers do
    extras: tuple[str, ...]
    trusted: bool
    out: str | None  # None: pairs are counted only
    name: str  # of the job, in the names of its parts

    @property
    def tasks(self) -> int:
        """How many there are."""
        return len(self.events.shares) * max(1, len(self.shards))

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes numbers of tasks, gives what became of them."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _row(number, self._task(number))

    def _task(self, number: int) -> _Done:
        # All shares of one shard before the next shard: what is not in use need not be in memory.
        shard, share = divmod(number, len(self.events.shares))
        if not self.shards:
            events = sum(piece.table.num_rows for piece in self.events.pieces(share))
            return _Done(events, 0, 0, 0, b"", [])
        engine = opened(self.shards[shard], self.operators, shards=len(self.shards))
        task, before = _Task(self, engine, first=shard == 0), engine.report()
        try:
            pace = Pace()
            for piece in self.events.pieces(share):
                pace.over(piece, task.take)
            return task.done()._replace(operators=written(since(before, engine.report())))
        except BaseException:
            task.discard()
            raise


class _Done(NamedTuple):
    """What became of a task."""

    events: int
    matched: int
    pairs: int
    dead: int
    bits: bytes  # which events matched, where that is for the driver to join
    parts: list[dict[str, Any]]
    operators: str = written(NOTHING)  # what they were asked, and did wrong


class _Task:
    """One share against one shard. The first shard also counts events, and tells of the dead."""

    def __init__(self, job: Matching, engine: Engine, first: bool) -> None:
        self._job, self._engine, self._first = job, engine, first
        self._events = self._matched = self._pairs = self._dead = 0
        self._bits: list[NDArray[np.bool_]] = []
        self._files = {
            folder: Part(Path(job.out) / folder, f"part-{job.name}-{uuid.uuid4().hex}.parquet")
            for folder in (NOTIFICATIONS, DEAD)
            if job.out is not None
        }

    def take(self, some: Piece) -> int:
        """Match some events; how many pairs there were."""
        job, table = self._job, some.table
        events = some.layout.parted(table).events
        batch, rows, refused = self._checked(events)
        found = self._engine.match_batch(batch)
        hit = np.diff(found.starts) > 0
        if len(job.shards) > 1:
            bits = np.zeros(table.num_rows, np.bool_)
            bits[slice(None) if rows is None else rows] = hit
            self._bits.append(bits)
        self._events += table.num_rows
        self._matched += int(np.count_nonzero(hit))
        self._pairs += found.total
        self._dead += len(refused)
        if job.out is not None:
            extras = self._extras(some)
            self._write(found, rows, extras)
            if refused and self._first:
                self._files[DEAD].write(_letters(refused, extras, events))
        return found.total

    def _checked(self, events: pa.Table) -> Checked:
        return (_trusted if self._job.trusted else checked)(self._engine, events)

    def _extras(self, some: Piece) -> dict[str, pa.Array]:
        """The id of each event, and the columns that were asked for."""
        job = self._job
        found = {SEQUENCE: pa.array(some.numbers)} if job.id is None else {}
        return found | {name: one_chunk(some.table[name]) for name in job.extras}

    def _write(self, found: Matches, rows: Int64s | None, extras: dict[str, pa.Array]) -> None:
        if not found.total:
            return
        counts = np.diff(found.starts)
        taken = {name: _repeated(column, rows, counts) for name, column in extras.items()}
        id, *kept = taken
        ids = found.arrow_ids(self._job.texts)
        columns = {id: taken[id], SUBSCRIPTION: ids} | {name: taken[name] for name in kept}
        self._files[NOTIFICATIONS].write(pa.table(columns))

    def done(self) -> _Done:
        """Close the parts."""
        parts = [file.close() for file in self._files.values() if file.rows]
        bits = np.packbits(np.concatenate(self._bits)).tobytes() if self._bits else b""
        if self._first:
            return _Done(self._events, self._matched, self._pairs, self._dead, bits, parts)
        return _Done(0, 0, self._pairs, 0, bits, parts)

    def discard(self) -> None:
        """Leave nothing of a task that failed."""
        for file in self._files.values():
            file.discard()


def _trusted(engine: Engine, events: pa.Table) -> Checked:
    """Events of which only some attributes were read: what they lack is no reason to doubt them."""
    codes = encode(engine.encoder, events)
    rows: Int64s | None = None
    bad = np.unique(codes.certain)
    if len(bad):
        good = np.ones(events.num_rows, np.bool_)
        good[bad] = False
        rows = np.flatnonzero(good)
        codes = encode(engine.encoder, events.filter(pa.array(good)))
    batch = EventBatch(
        codes.table.num_rows,
        columns=codes.columns,
        texts=codes.texts,
        stamp=engine.encoder.stamp,
    )
    reason = "a value is not in the domain of its attribute"
    return Checked(batch, rows, [Refused(row, reason) for row in bad.tolist()])


def _repeated(column: pa.Array, rows: Int64s | None, counts: Int64s) -> pa.Array:
    """Of each event (None: all rows) its value, as often as it has pairs."""
    if pa.types.is_int64(column.type) and not column.null_count:
        values = np.asarray(column)
        return pa.array(np.repeat(values if rows is None else values[rows], counts))
    places = np.arange(len(column)) if rows is None else rows
    return column.take(pa.array(np.repeat(places, counts)))


def _letters(refused: Sequence[Refused], extras: dict[str, pa.Array], events: pa.Table) -> pa.Table:
    """Dead letters: which event, what is wrong with it, and what it was."""
    rows = pa.array([row for row, _ in refused], pa.int64())
    texts = [
        json.dumps(each, default=str, ensure_ascii=False) for each in events.take(rows).to_pylist()
    ]
    return pa.table(
        {
            **{name: column.take(rows) for name, column in extras.items()},
            REASON: pa.array([reason for _, reason in refused], pa.string()),
            RAW: pa.array(texts, pa.string()),
        }
    )


def _row(number: int, done: _Done) -> pa.RecordBatch:
    parts = pa.struct([("folder", pa.string()), ("name", pa.string()), ("rows", pa.int64())])
    types = pa.schema(
        [
            ("task", pa.int32()),
            ("events", pa.int64()),
            ("matched", pa.int64()),
            ("pairs", pa.int64()),
            ("dead", pa.int64()),
            ("bits", pa.binary()),
            ("parts", pa.list_(parts)),
            ("operators", pa.string()),
        ]
    )
    return pa.RecordBatch.from_pylist([{"task": number, **done._asdict()}], types)
