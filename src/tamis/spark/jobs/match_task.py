"""The task of `match_files`: matches a share of the rows with a shard, and writes the pairs.

The JVM only hears how many pairs there were. Pairs are written before the next events are matched,
so the memory of a task does not grow with its share.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.arrow import one_chunk
from tamis.engine.doors.event_moments import depends_on_now
from tamis.replay.event_source import EventSource
from tamis.replay.parts import DEAD, NOTIFICATIONS, SEQUENCE, SUBSCRIPTION, PartWriter
from tamis.replay.pipeline import BatchPace, ReadEvents, match_with
from tamis.spark.runtime.operator_reports import NOTHING, CallCount, report_json
from tamis.spark.runtime.worker_cache import open_engine

if TYPE_CHECKING:
    from tamis.match.answers import Matches

Int64s = NDArray[np.int64]
_PART = pa.struct([("folder", pa.string()), ("name", pa.string()), ("rows", pa.int64())])
MATCHED = pa.schema(
    [
        ("task", pa.int32()),
        ("events", pa.int64()),
        ("matched", pa.int64()),
        ("pairs", pa.int64()),
        ("dead", pa.int64()),
        ("bits", pa.binary()),  # which events matched, where the driver joins shards
        ("parts", pa.list_(_PART)),
        ("operators", pa.string()),  # a report
    ]
)


class MatchTask(NamedTuple):
    """What all tasks need. A task is a share of the rows and a shard."""

    events: EventSource
    shards: tuple[str, ...]  # none: rows are read, and nothing else
    operators: bytes = b""
    texts: bool = False  # whether ids of subscriptions are text
    id: str | None = None  # the column that identifies events; None: their numbers do
    kept: tuple[str, ...] = ()  # the columns that pairs have, the id among them
    trusted: bool = False
    out: str | None = None  # None: pairs are counted only
    name: str = ""  # of the job, in the names of its parts
    now: int | None = None  # the moment of all events

    @property
    def tasks(self) -> int:
        return len(self.events.shares) * max(1, len(self.shards))

    def run(self, number: int) -> Iterator[dict[str, Any]]:
        # All shares of one shard before the next shard: others need not be in memory.
        shard, share = divmod(number, len(self.events.shares))
        chunks, end = self.events.chunks(share), _PairWriter(self, first=shard == 0)
        if not self.shards:
            end.events = sum(len(chunk.numbers) for chunk in chunks)
            yield {"task": number, "operators": report_json(NOTHING), **end.done()}
            return
        engine = open_engine(self.shards[shard], self.operators, shards=len(self.shards))
        calls = CallCount([engine])
        try:
            now = self.now if depends_on_now(engine) else None
            matched = match_with(
                engine, chunks, BatchPace(), partial=self.trusted, when=lambda _: now
            )
            for events, found in matched:
                end.take(events, found)
            yield {"task": number, "operators": report_json(calls.report()), **end.done()}
        except BaseException:
            end.discard()
            raise


class _PairWriter:
    """Writes and counts the pairs of a task. The first shard also counts events and the dead."""

    def __init__(self, task: MatchTask, first: bool) -> None:
        self._task, self._first = task, first
        self.events = self._matched = self._pairs = self._dead = 0
        self._bits: list[NDArray[np.bool_]] = []
        self._parts = {
            folder: PartWriter(
                Path(task.out) / folder, f"part-{task.name}-{uuid.uuid4().hex}.parquet"
            )
            for folder in (NOTIFICATIONS, DEAD)
            if task.out is not None
        }

    def take(self, events: ReadEvents, found: Matches) -> None:
        """Count and write the pairs of some events."""
        task, valid = self._task, events.valid
        rows = valid.rows if valid.refused else None
        counts = np.diff(found.starts)
        if len(task.shards) > 1:
            bits = np.zeros(len(events.chunk.numbers), np.bool_)
            bits[slice(None) if rows is None else rows] = counts > 0
            self._bits.append(bits)
        self.events += len(events.chunk.numbers)
        self._matched += int(np.count_nonzero(counts))
        self._pairs += found.total
        self._dead += len(valid.refused)
        if task.out is not None:
            kept = self._kept(events)
            if found.total:
                id, *others = (_repeated(each, rows, counts) for each in kept.values())
                columns = [id, found.arrow_ids(task.texts), *others]
                names = [next(iter(kept)), SUBSCRIPTION, *list(kept)[1:]]
                self._parts[NOTIFICATIONS].write(pa.table(columns, names))
            if valid.refused and self._first:
                self._parts[DEAD].write(_dead_letters(events, kept))

    def _kept(self, events: ReadEvents) -> dict[str, pa.Array]:
        """The id of each event, and the columns that were asked for."""
        task, table = self._task, events.table
        found = {SEQUENCE: pa.array(events.chunk.numbers)} if task.id is None else {}
        return found | {name: one_chunk(table[name]) for name in task.kept}

    def done(self) -> dict[str, Any]:
        """Close the parts, and give the counts."""
        first = self._first
        return {
            "events": self.events if first else 0,
            "matched": self._matched if first else 0,
            "pairs": self._pairs,
            "dead": self._dead if first else 0,
            "bits": np.packbits(np.concatenate(self._bits)).tobytes() if self._bits else b"",
            "parts": [part.close() for part in self._parts.values() if part.rows],
        }

    def discard(self) -> None:
        """Leave nothing of a task that failed."""
        for part in self._parts.values():
            part.discard()


def _repeated(column: pa.Array, rows: Int64s | None, counts: Int64s) -> pa.Array:
    """The value of each event (None: all rows), repeated for each of its pairs."""
    if pa.types.is_int64(column.type) and not column.null_count:
        values = np.asarray(column)
        return pa.array(np.repeat(values if rows is None else values[rows], counts))
    places = np.arange(len(column)) if rows is None else rows
    return column.take(pa.array(np.repeat(places, counts)))


def _dead_letters(events: ReadEvents, kept: dict[str, pa.Array]) -> pa.Table:
    """Which event, why it is refused, and the event as it came."""
    rows = pa.array([row for row, _ in events.valid.refused], pa.int64())
    ids = {name: column.take(rows) for name, column in kept.items()}
    return pa.table({**ids, **events.refusals()})
