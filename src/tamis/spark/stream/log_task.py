"""What a task does with a range of the log: read its events, match them, and name the dead."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.validation import validate
from tamis.errors import StoreError
from tamis.files.os_errors import os_errors_as
from tamis.model.schema import Schema
from tamis.replay.event_columns import column_at
from tamis.replay.event_source import Logged
from tamis.replay.json_lines import JSON
from tamis.replay.live_subscriptions import Live
from tamis.replay.parts import RAW, REASON, SEQUENCE, SUBSCRIPTION
from tamis.spark.frames.frame_columns import column_types
from tamis.spark.runtime import worker_cache as worker
from tamis.spark.runtime.operator_reports import noting
from tamis.store.changes import ID_TYPES
from tamis.store.log import DOCUMENT, Log

Int64s = NDArray[np.int64]
_AT_ONCE = 8192  # events: their pairs are handed on before the next are matched
_KEPT = 8  # shards of versions that stay open, and logs
_VERSIONS = 2  # of which all shards stay open

_lives: OrderedDict[tuple[Any, ...], Live] = OrderedDict()
_logs: OrderedDict[tuple[Any, ...], Log] = OrderedDict()


@dataclass(frozen=True)
class Range:
    """Events of a log and a shard of the subscriptions: what one task matches."""

    log: str
    start: int
    end: int
    folder: str | None  # of the shard; None where all subscriptions come from the log
    sequence: int  # that its version knows
    shard: int
    shards: int
    columns: tuple[str, ...]
    modules: tuple[str, ...]  # that declare operators
    report: str | None = None  # the folder for what operators do


def answered(part: Range) -> Iterator[pa.RecordBatch]:
    """The pairs of a range, and the dead of it: those are told by the first shard alone."""
    for module in part.modules:
        import_module(module)
    which = _which(part.log)
    log = _log(which)
    live = _live(part, log, which)
    live.take(log.changes(live.sequence, part.end) if part.end > live.sequence else _NONE, part.end)
    document = json.dumps(log.schema)
    with noting(live.engines, part.report):
        for first, table in log.events(part.start, part.end):
            for at in range(0, table.num_rows, _AT_ONCE):
                some = _Some(table.slice(at, _AT_ONCE), first + at, document)
                yield from some.pairs(live, part.columns)
                if part.shard == 0 and some.dead:
                    yield some.dead_letters(live, part.columns)


class _Some:
    """Some events of one segment: those that are consistent, and why the others are not."""

    def __init__(self, table: pa.Table, first: int, document: str) -> None:
        self._raw, self._first, self._types = table, first, _types(document)
        parted = Logged(document, ()).parted(table)
        self.dead: dict[int, str] = dict(parted.refused)  # by row
        if parted.rows is not None:  # text, which was validated when it was parsed
            self._good, self._rows = parted.events, parted.rows
        else:
            validated = validate(worker.encoder(document), table)
            self.dead.update(validated.refused)
            self._good, self._rows = validated.good, validated.rows

    def pairs(self, live: Live, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        if not len(self._rows):
            return
        numbers, ids = live.match(self._good, self._first + self._rows)
        if not len(numbers):
            return
        at = np.searchsorted(self._rows, numbers - self._first)
        kept = {
            name: column_at(self._good, name.split(".")).take(pa.array(at)).cast(self._types[name])
            for name in columns
        }
        yield _batch(numbers, ids, kept)

    def dead_letters(self, live: Live, columns: tuple[str, ...]) -> pa.RecordBatch:
        rows = np.fromiter(self.dead, np.int64, len(self.dead))
        nothing = pa.nulls(len(rows), ID_TYPES[live.ids])
        kept = {name: pa.nulls(len(rows), self._types[name]) for name in columns}
        reasons = pa.array(self.dead.values(), pa.string())
        taken = self._raw.take(pa.array(rows))
        if taken.column_names == [JSON]:
            # As bytes: of a damaged segment, they may be no text.
            raw = [_text(each) for each in taken[JSON].cast(pa.binary()).to_pylist()]
        else:
            raw = [json.dumps(each, default=str, ensure_ascii=False) for each in taken.to_pylist()]
        return _batch(self._first + rows, nothing, kept, reasons, pa.array(raw, pa.string()))


def _batch(
    numbers: Int64s,
    ids: pa.Array,
    kept: dict[str, pa.Array],
    reasons: pa.Array | None = None,
    raw: pa.Array | None = None,
) -> pa.RecordBatch:
    nothing = pa.nulls(len(numbers), pa.string())
    return pa.RecordBatch.from_pydict(
        {
            SEQUENCE: pa.array(numbers, pa.int64()),
            SUBSCRIPTION: ids,
            **{name: _whole(column) for name, column in kept.items()},
            REASON: nothing if reasons is None else reasons,
            RAW: nothing if raw is None else raw,
        }
    )


@lru_cache(maxsize=4)
def _types(document: str) -> dict[str, pa.DataType]:
    """What Spark expects for each attribute."""
    from pyspark.sql.pandas.types import to_arrow_type

    declared = column_types(Schema.from_dict(json.loads(document)))
    return {name: to_arrow_type(kind, timezone="UTC") for name, kind in declared.items()}


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _text(given: Any) -> str | None:
    return given.decode(errors="replace") if isinstance(given, bytes) else given


def _which(folder: str) -> tuple[Any, ...]:
    """A log and not just its path, at which there may have been another one before."""
    with os_errors_as(StoreError, f"{folder}: cannot be read"):
        now = (Path(folder) / DOCUMENT).stat()
    return folder, now.st_dev, now.st_ino, now.st_mtime_ns


def _log(which: tuple[Any, ...]) -> Log:
    log = _logs.get(which)
    if log is None:
        log = _logs[which] = Log.open(which[0])
        while len(_logs) > _KEPT:
            _logs.popitem(last=False)
    _logs.move_to_end(which)
    return log


def _live(part: Range, log: Log, which: tuple[Any, ...]) -> Live:
    """The shard as this process has it, with all changes that it has heard of."""
    key = (which, part.folder, part.sequence, part.shard, part.shards, part.modules)
    live = _lives.get(key)
    # The engine is asked for each time: another may have been put in its place.
    base = None if part.folder is None else worker.opened(part.folder, shards=part.shards)
    if live is None or live.base is not base:
        live = _lives[key] = Live(
            Schema.from_dict(log.schema),
            log.ids,
            base,
            part.sequence,
            shard=part.shard,
            shards=part.shards,
        )
        while len(_lives) > max(_KEPT, _VERSIONS * part.shards):
            _lives.popitem(last=False)
    _lives.move_to_end(key)
    return live


_NONE = pa.table({name: [] for name in ("sequence", "kind", "id", "condition")})
