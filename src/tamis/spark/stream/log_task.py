"""The task of the stream: matches a range of the log with a shard of the live subscriptions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.encode.arrow import one_chunk
from tamis.errors import StoreError
from tamis.files.checksum import crc32
from tamis.files.os_errors import os_errors_as
from tamis.model.schema import Schema
from tamis.replay.event_columns import column_at
from tamis.replay.event_source import EventChunk, RowLayout
from tamis.replay.live_subscriptions import LivePairs, LiveSubscriptions
from tamis.replay.parts import RAW, REASON, SEQUENCE, SUBSCRIPTION
from tamis.replay.pipeline import BatchPace, ReadEvents, read_events
from tamis.spark.frames.frame_columns import column_types
from tamis.spark.runtime.operator_reports import noted_calls
from tamis.spark.runtime.worker_cache import VERSIONS, LruCache, open_engine
from tamis.store.changes import ID_TYPES
from tamis.store.log import DOCUMENT, Log
from tamis.store.published import without_reserved

_AT_ONCE = 8192  # events: their pairs are handed on before the next are matched
_KEPT = 8  # shards of versions that stay open, and logs

_live_shards: LruCache[LiveSubscriptions] = LruCache()
_logs: LruCache[Log] = LruCache()


@dataclass(frozen=True)
class LogTask:
    """A range of a log, and a shard of the subscriptions."""

    log: str
    start: int
    end: int
    folder: str | None  # of the shard; None where all subscriptions come from the log
    sequence: int  # of the version
    shard: int
    shards: int
    columns: tuple[str, ...]
    modules: tuple[str, ...]  # that declare operators
    report: str | None = None  # the folder for reports of operators

    def run(self) -> Iterator[pa.RecordBatch]:
        """The pairs of the range, and its dead letters, which the first shard alone gives."""
        for module in self.modules:
            import_module(module)
        log = self._log()
        live = self._live_shard(log)
        live.take(log, self.end)
        document = json.dumps(log.schema)
        layout, types = RowLayout(document=document), _types(document)
        chunks = (
            EventChunk(np.arange(first, first + table.num_rows), without_reserved(table), layout)
            for first, table in log.events(self.start, self.end)
        )

        with noted_calls(live.engines, self.report):
            pace = BatchPace(_AT_ONCE, _AT_ONCE)
            for events in read_events(chunks, live.encoder, pace):
                pairs = live.match(events.valid, events.numbers)
                if len(pairs.rows):
                    yield self._pair_rows(events, pairs, types)
                if self.shard == 0 and events.valid.refused:
                    yield self._dead_letters(events, live.ids, types)

    def _pair_rows(
        self, events: ReadEvents, pairs: LivePairs, types: dict[str, pa.DataType]
    ) -> pa.RecordBatch:
        rows, kept, nothing = pa.array(pairs.rows), {}, pa.nulls(len(pairs.rows), pa.string())
        for name in self.columns:
            column = column_at(events.valid.table, name.split("."))
            if column is None:  # no event of the segment binds it
                kept[name] = pa.nulls(len(rows), types[name])
            else:
                kept[name] = one_chunk(column).take(rows).cast(types[name])
        numbers = pa.array(events.numbers[pairs.rows])
        return pa.RecordBatch.from_pydict(
            {SEQUENCE: numbers, SUBSCRIPTION: pairs.ids, **kept, REASON: nothing, RAW: nothing}
        )

    def _dead_letters(
        self, events: ReadEvents, ids: str, types: dict[str, pa.DataType]
    ) -> pa.RecordBatch:
        rows = [row for row, _ in events.valid.refused]
        return pa.RecordBatch.from_pydict(
            {
                SEQUENCE: pa.array(events.chunk.numbers[rows]),
                SUBSCRIPTION: pa.nulls(len(rows), ID_TYPES[ids]),
                **{name: pa.nulls(len(rows), types[name]) for name in self.columns},
                **events.refusals(),
            }
        )

    def _identity(self) -> tuple[Any, ...]:
        """A log and not only its path, which may have been that of another log before."""
        with os_errors_as(StoreError, f"{self.log}: cannot be read"):
            path = Path(self.log) / DOCUMENT
            now, document = path.stat(), path.read_bytes()
        # The time of a file may repeat, and so may its number; a log has an identity in it.
        return self.log, now.st_dev, now.st_ino, now.st_mtime_ns, crc32(document)

    def _log(self) -> Log:
        return _logs.get(self._identity(), lambda: Log.open(self.log), lambda: _KEPT)

    def _live_shard(self, log: Log) -> LiveSubscriptions:
        """The shard as this process has it, with all changes that it has taken in."""
        # The engine is asked for each time: another may have taken its place.
        base = None if self.folder is None else open_engine(self.folder, shards=self.shards)
        key = (self._identity(), self.folder, self.sequence, self.shard, self.shards, self.modules)
        return _live_shards.get(
            (*key, id(base)),
            lambda: LiveSubscriptions(
                Schema.from_dict(log.schema),
                log.ids,
                base,
                self.sequence,
                shard=self.shard,
                shards=self.shards,
            ),
            lambda: max(_KEPT, VERSIONS * self.shards),
        )


@lru_cache(maxsize=4)
def _types(document: str) -> dict[str, pa.DataType]:
    """The Arrow type that Spark expects for each attribute."""
    from pyspark.sql.pandas.types import to_arrow_type

    declared = column_types(Schema.from_dict(json.loads(document)))
    return {name: to_arrow_type(kind, timezone="UTC") for name, kind in declared.items()}
