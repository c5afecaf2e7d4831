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
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from tamis.encode.arrow import encode, one_chunk
from tamis.encode.batch import EventBatch
from tamis.encode.sifting import Refused, sift
from tamis.errors import EventError, SparkError
from tamis.spark.part_files import DEAD, NOTIFICATIONS, RAW, REASON, SEQUENCE, SUBSCRIPTION, Part
from tamis.spark.row_groups import Rows
from tamis.spark.worker import opened

if TYPE_CHECKING:
    from tamis.engine import Engine
    from tamis.match.answers import Matches

Int64s = NDArray[np.int64]
_READ = 1 << 16  # rows that are read at once
_PAIRS = 1 << 21  # about as many pairs as are wanted of the events that are matched at once
_FEWEST = 1 << 10  # events that are matched at once
DONE = (
    "task int, events long, matched long, pairs long, dead long, bits binary, "
    "parts array<struct<folder: string, name: string, rows: long>>"
)


class Layout(NamedTuple):
    """Where files with the same columns have what is needed."""

    attributes: tuple[tuple[str, tuple[str, ...]], ...]  # and the way to each
    extras: tuple[str, ...]  # columns that are handed on


class Job(NamedTuple):
    """All that tasks have to know. A task is a share of the rows and a shard."""

    files: tuple[str, ...]
    layouts: tuple[Layout, ...]
    layout_of: tuple[int, ...]  # by file
    shares: tuple[tuple[Rows, ...], ...]
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
        return len(self.shares) * max(1, len(self.shards))

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes numbers of tasks, gives what became of them."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _row(number, self._task(number))

    def _task(self, number: int) -> _Done:
        # All shares of one shard before the next shard: what is not in use need not be in memory.
        shard, share = divmod(number, len(self.shares))
        if not self.shards:
            events = sum(piece.num_rows for _, piece, _ in self._pieces(self.shares[share]))
            return _Done(events, 0, 0, 0, b"", [])
        engine = opened(self.shards[shard], self.operators)
        task = _Task(self, engine, first=shard == 0)
        try:
            for first, piece, layout in self._pieces(self.shares[share]):
                task.take(first, piece, layout)
            return task.done()
        except BaseException:
            task.discard()
            raise

    def _pieces(self, share: Sequence[Rows]) -> Iterator[tuple[int, pa.Table, Layout]]:
        """The rows of a share, some at a time, and the number of the first of each."""
        for rows in share:
            layout = self.layouts[self.layout_of[rows.file]]
            names = [".".join(path) for _, path in layout.attributes]
            names += [name for name in layout.extras if name not in names]
            for at, batch in _read(self.files[rows.file], rows, names):
                yield rows.first + at - rows.start, pa.Table.from_batches([batch]), layout


class _Done(NamedTuple):
    """What became of a task."""

    events: int
    matched: int
    pairs: int
    dead: int
    bits: bytes  # which events matched, where that is for the driver to join
    parts: list[dict[str, Any]]


class _Task:
    """One share against one shard. The first shard also counts events, and tells of the dead."""

    def __init__(self, job: Job, engine: Engine, first: bool) -> None:
        self._job, self._engine, self._first = job, engine, first
        self._step = _FEWEST
        self._events = self._matched = self._pairs = self._dead = 0
        self._bits: list[NDArray[np.bool_]] = []
        self._files = {
            folder: Part(Path(job.out) / folder, f"part-{job.name}-{uuid.uuid4().hex}.parquet")
            for folder in (NOTIFICATIONS, DEAD)
            if job.out is not None
        }

    def take(self, first: int, piece: pa.Table, layout: Layout) -> None:
        """Match a piece, as many events at once as give a good number of pairs."""
        at = 0
        while at < piece.num_rows:
            some = piece.slice(at, self._step)
            pairs = self._some(first + at, some, layout)
            at += some.num_rows
            each = max(pairs / some.num_rows, 1e-9)
            fitting = int(_PAIRS / each) // _FEWEST * _FEWEST
            self._step = min(max(fitting, _FEWEST), 4 * self._step, _READ)

    def _some(self, first: int, table: pa.Table, layout: Layout) -> int:
        job = self._job
        events = pa.table([_at(table, path) for _, path in layout.attributes],
                          names=[name for name, _ in layout.attributes])  # fmt: skip
        batch, rows, refused = self._encoded(events)
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
            extras = self._extras(table, first)
            self._write(found, rows, extras)
            if refused and self._first:
                self._files[DEAD].write(_letters(refused, extras, events))
        return found.total

    def _encoded(self, events: pa.Table) -> tuple[EventBatch, Int64s | None, list[Refused]]:
        """The events in codes, which rows they are (None: all), and why the others are none."""
        engine = self._engine
        if self._job.trusted:
            return _trusted(engine, events)
        try:
            return engine.encode(events), None, []
        except EventError:
            sifted = sift(engine.encoder, events)
            return engine.encode(sifted.good), sifted.rows, sifted.refused

    def _extras(self, table: pa.Table, first: int) -> dict[str, pa.Array]:
        """The id of each event, and the columns that were asked for."""
        job = self._job
        numbers = np.arange(first, first + table.num_rows, dtype=np.int64)
        found = {SEQUENCE: pa.array(numbers)} if job.id is None else {}
        return found | {name: one_chunk(table[name]) for name in job.extras}

    def _write(self, found: Matches, rows: Int64s | None, extras: dict[str, pa.Array]) -> None:
        if not found.total:
            return
        counts = np.diff(found.starts)
        taken = {name: _repeated(column, rows, counts) for name, column in extras.items()}
        id, *kept = taken
        ids = _ids(found, self._job.texts)
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


def _trusted(engine: Engine, events: pa.Table) -> tuple[EventBatch, Int64s | None, list[Refused]]:
    """Events of which only some attributes were read: what they lack is no reason to doubt them."""
    encoded = encode(engine.encoder, events)
    rows: Int64s | None = None
    bad = np.unique(encoded.certain)
    if len(bad):
        good = np.ones(events.num_rows, np.bool_)
        good[bad] = False
        rows = np.flatnonzero(good)
        encoded = encode(engine.encoder, events.filter(pa.array(good)))
    batch = EventBatch(
        encoded.table.num_rows,
        columns=encoded.columns,
        texts=encoded.texts,
        stamp=engine.encoder.stamp,
    )
    reason = "a value is not in the domain of its attribute"
    return batch, rows, [Refused(row, reason) for row in bad.tolist()]


def _repeated(column: pa.Array, rows: Int64s | None, counts: Int64s) -> pa.Array:
    """Of each event (None: all rows) its value, as often as it has pairs."""
    if pa.types.is_int64(column.type) and not column.null_count:
        values = np.asarray(column)
        return pa.array(np.repeat(values if rows is None else values[rows], counts))
    places = np.arange(len(column)) if rows is None else rows
    return column.take(pa.array(np.repeat(places, counts)))


def _ids(found: Matches, texts: bool) -> pa.Array:
    """The ids of the subscriptions of all pairs.

    Of a million subscriptions that are hit in no order, Arrow takes the ids three times as fast as
    NumPy does, which is a seventh of all that the job does.
    """
    known = found._ids
    if not texts and known is not None:
        return pa.array(known.number).take(pa.array(found.slots))
    ids = found.subscriptions
    if not texts:
        return pa.array(ids)
    try:
        return pa.array(ids, pa.string())
    except pa.ArrowException:  # some are numbers: all become text
        return pa.array([str(each) for each in ids], pa.string())


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


# -- reading ---------------------------------------------------------------------------------------


def _read(file: str, rows: Rows, names: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows of a row group in batches, each with the place of its first row in the row group."""
    try:
        with parquet.ParquetFile(file) as source:
            at = 0
            groups = source.iter_batches(
                _READ, row_groups=[rows.group], columns=list(names), use_threads=False
            )
            for batch in groups:
                begin, end = max(at, rows.start), min(at + batch.num_rows, rows.stop)
                if begin < end:
                    yield begin, batch.slice(begin - at, end - begin)
                at += batch.num_rows
                if at >= rows.stop:
                    return
    except FileNotFoundError:
        raise SparkError(
            f"{file}: a worker cannot find it; on a cluster, events have to be in a folder that "
            "all machines share"
        ) from None


def _at(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    """A column, or a field of a struct in one."""
    name = ".".join(path)
    if name in table.column_names:
        return table[name]
    found: Any = table[path[0]]
    for part in path[1:]:
        found = pc.struct_field(found, part)
    column: pa.ChunkedArray = found
    return column


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
        ]
    )
    return pa.RecordBatch.from_pylist([{"task": number, **done._asdict()}], types)
