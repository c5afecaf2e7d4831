"""The task of the stream: matches a range of the log with a shard of the live subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encode.arrow import one_chunk
from tamis.encode.lines.event_columns import column_at, list_column, placed
from tamis.encode.validation import extends, same_codes
from tamis.errors import StoreError
from tamis.files.checksum import crc32
from tamis.files.os_errors import os_errors_as
from tamis.replay.live_subscriptions import LivePairs, LiveSubscriptions
from tamis.replay.log_matching import match_log
from tamis.replay.parts import RAW, REASON, SEQUENCE, SUBSCRIPTION
from tamis.replay.pipeline import BatchPace, ReadEvents
from tamis.spark.runtime.operator_reports import noted_calls
from tamis.spark.runtime.worker_cache import VERSIONS, LruCache, open_engine
from tamis.spark.stream.log_slice import LogSlice
from tamis.store.changes import ID_TYPES
from tamis.store.log import DOCUMENT, Log

_AT_ONCE = 8192  # events: their pairs are handed on before the next are matched
_KEPT = 8  # shards of versions that stay open, and logs

_live_shards: LruCache[LiveSubscriptions] = LruCache()
_logs: LruCache[Log] = LruCache()


@dataclass(frozen=True)
class LogTask(LogSlice):
    """A slice that is matched."""

    def run(self) -> Iterator[pa.RecordBatch]:
        """The pairs of the range, and its dead letters, which the first shard alone gives."""
        for module in self.modules:
            import_module(module)
        log = self._log()
        live = self._live_shard(log)
        with noted_calls(live.engines, self.report):
            pace = BatchPace(_AT_ONCE, _AT_ONCE)
            for events, pairs in match_log(live, log, self.start, self.end, pace):
                if len(pairs.rows):
                    yield self._pair_rows(events, pairs)
                if self.shard == 0 and events.valid.refused:
                    yield self._dead_letters(events, live.ids)

    def _pair_rows(self, events: ReadEvents, pairs: LivePairs) -> pa.RecordBatch:
        rows, kept, nothing = pa.array(pairs.rows), {}, pa.nulls(len(pairs.rows), pa.string())
        for name, kind in self.columns:
            column = column_at(events.valid.table, name.split("."))
            if column is None or name not in events.valid.schema.attributes:
                # No event of the segment binds it, or it did not exist yet.
                kept[name] = pa.nulls(len(rows), kind)
            else:
                kept[name] = _typed(one_chunk(column).take(rows), kind)
        numbers = pa.array(events.numbers[pairs.rows])
        return pa.RecordBatch.from_pydict(
            {SEQUENCE: numbers, SUBSCRIPTION: pairs.ids, **kept, REASON: nothing, RAW: nothing}
        )

    def _dead_letters(self, events: ReadEvents, ids: str) -> pa.RecordBatch:
        rows = [row for row, _ in events.valid.refused]
        return pa.RecordBatch.from_pydict(
            {
                SEQUENCE: pa.array(events.chunk.numbers[rows]),
                SUBSCRIPTION: pa.nulls(len(rows), ID_TYPES[ids]),
                **{name: pa.nulls(len(rows), kind) for name, kind in self.columns},
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
        """The shard as this process has it, with all changes that it has taken in.

        If the log has extended the schema since, it has an engine of its own, which follows: other
        jobs use the engine of the version as it is.
        """
        # The engine is asked for each time: another may have taken its place.
        base = None if self.folder is None else open_engine(self.folder, shards=self.shards)
        if base is not None and self.folder is not None:
            schema = log.schema_at(self.end - 1)
            if not same_codes(schema, base.schema) and extends(schema, base.schema):
                base = open_engine(self.folder, shards=self.shards, follows=str(log.identity))
        key = (self._identity(), self.folder, self.sequence, self.shard, self.shards, self.modules)
        return _live_shards.get(
            (*key, id(base)),
            lambda: LiveSubscriptions(
                log.schema_at(self.sequence),
                log.ids,
                base,
                self.sequence,
                shard=self.shard,
                shards=self.shards,
            ),
            lambda: max(_KEPT, VERSIONS * self.shards),
        )


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in the type that Spark expects: that which the schema gave when the reader started.

    A single value may be written bare where several are allowed. Where several are allowed only
    since then, the first one is given.
    """
    several, listed = (pa.types.is_list(each) for each in (kind, column.type))
    if several and not listed:
        bound = np.asarray(column.is_valid())
        column = list_column(column.drop_null(), bound.astype(np.int64), ~bound)
    elif listed and not several:
        lengths = np.asarray(pc.list_value_length(column).fill_null(0)).astype(np.int64)
        filled = np.flatnonzero(lengths)
        firsts = pc.list_flatten(column).take(pa.array((np.cumsum(lengths) - lengths)[filled]))
        column = placed(firsts, filled, len(column))
    return column.cast(kind)
