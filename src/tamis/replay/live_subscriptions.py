"""Live subscriptions over a version: they come and go at their places in the sequence.

A version of the index has the subscriptions that are live at a sequence number. A process opens it
once, maps it into memory, and never changes it. Later subscriptions go into a small engine beside
it, and those that ended are recorded with the number at which they did. A pair counts if the
event's number lies between the two. So pairs depend on the log alone, and not on the version: a
replay gives the same pairs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.encode.encoder import Encoder
from tamis.encode.validation import ValidEvents, extends, same_codes
from tamis.engine import Engine
from tamis.engine.ids import Id
from tamis.errors import TamisError
from tamis.language.dialects import NATIVE
from tamis.model.schema import Schema
from tamis.store.changes import ID_TYPES
from tamis.store.log import Log

Int64s = NDArray[np.int64]
FOREVER = np.iinfo(np.int64).max
_AT_ONCE = 10_000  # rows: one that is wrong costs the others of its batch a second try
_GOLDEN = 0x9E3779B97F4A7C15  # spreads consecutive numbers over all shards
_WORD = (1 << 64) - 1
LANGUAGE = "language"  # the column of dialects
_NAMES = ("id", "condition", LANGUAGE)


def shard_of(id: Id, shards: int) -> int:
    """The shard of a subscription, the same in all processes and for ever."""
    if isinstance(id, str):
        return zlib.crc32(id.encode()) % shards
    return ((id * _GOLDEN & _WORD) >> 32) % shards


class LivePairs(NamedTuple):
    """Pairs: the place of an event in its batch, and the id of a subscription."""

    rows: Int64s
    ids: pa.Array


class LiveSubscriptions:
    """One shard of the subscriptions, from a version on.

    Args:
        schema: at `sequence`.
        ids: "text" or "int64".
        base: the engine of the version; None: all subscriptions come from the log.
        sequence: of the version, which has all changes before this number.
        shard: which of `shards` this is.

    A change costs as much as `Engine.subscribe`; a match costs that of both engines, and a lookup
    of the ids of its pairs among those that have ended.
    """

    def __init__(
        self,
        schema: Schema,
        ids: str,
        base: Engine | None = None,
        sequence: int = 0,
        *,
        shard: int = 0,
        shards: int = 1,
    ) -> None:
        self.schema, self.ids, self.base = schema, ids, base
        self.sequence = sequence  # all changes before this number are taken in
        self.shard, self.shards = shard, shards
        self._added = Engine(schema)
        if base is not None:  # its estimates of operators hold for later conditions too
            self._added.calls.expect(base.calls.known)
        # By number in that engine:
        self._id: list[Id] = []
        self._from: list[int] = []
        self._until: list[int] = []
        self._last: dict[Id, int] = {}  # by id: the live one
        self._gone: dict[Id, int] = {}  # of the version: when it ended
        self._tables: _Changes | None = None

    @property
    def engines(self) -> list[Engine]:
        """The engine of the version, and that of later subscriptions."""
        return [self._added] if self.base is None else [self.base, self._added]

    def take(self, log: Log, end: int) -> None:
        """Take in the changes of a log before `end` that are not taken in yet.

        Conditions are read by the schema of their number. Then the engines have the schema of the
        last row before `end`, or a later one: so each event is of this schema or an earlier one.
        """
        if end <= self.sequence:
            return
        changes = log.changes(self.sequence, end, details=True)
        numbers = np.asarray(changes["sequence"])
        for low, high, schema in log.schemas(self.sequence, end):
            self.extend(schema)
            first, last = np.searchsorted(numbers, (low, high)).tolist()
            self.take_changes(changes.slice(first, last - first), high)

    def extend(self, schema: Schema) -> None:
        """Go over to an extension of the schema; a schema that they have already is passed over."""
        for engine in self.engines:
            extend_engine(engine, schema)
        self.schema = self._added.schema

    def take_changes(self, changes: pa.Table, end: int) -> None:
        """Take in changes as `Log.changes` gives them, with details: all from `sequence` to `end`.

        What was taken in before is passed over, so that a range may be read again. So is what
        belongs to other shards.
        """
        if end <= self.sequence:
            return
        fresh: list[tuple[int, str, str | None]] = []
        names = ("sequence", "kind", "id", "condition", "language")
        columns = (changes[name].to_pylist() for name in names)
        for sequence, kind, id, condition, language in zip(*columns, strict=True):
            mine = self.shards == 1 or shard_of(id, self.shards) == self.shard
            if sequence < self.sequence or not mine or kind == "renew":
                continue
            # A second subscription under a live id replaces the first.
            self._leave(id, sequence)
            if kind in ("subscribe", "update"):
                self._last[id] = len(self._id)
                self._id.append(id)
                self._from.append(sequence)
                self._until.append(FOREVER)
                fresh.append((len(self._id) - 1, condition, language))
        self._subscribe(fresh)
        self.sequence = end
        self._tables = None

    def _leave(self, id: Id, sequence: int) -> None:
        at = self._last.pop(id, None)
        if at is not None:
            self._until[at] = sequence
        elif self.base is not None:
            self._gone.setdefault(id, sequence)

    def _subscribe(self, fresh: Sequence[tuple[int, str, str | None]]) -> None:
        """Wrong conditions are left out; the compilation of the next version reports them."""
        if fresh:
            numbers, conditions, languages = zip(*fresh, strict=True)
            columns = {
                "id": pa.array(numbers, pa.int64()),
                "condition": pa.array(conditions, pa.string()),
                "language": pa.array(languages, pa.string()),
            }
            subscribe_rows(self._added, pa.table(columns))

    @property
    def encoder(self) -> Encoder:
        """To validate events with: that of the version, whose codes are then ready."""
        base, added = self.base, self._added
        same = base is not None and same_codes(base.schema, self.schema)
        return base.encoder if base is not None and same else added.encoder

    def match(
        self, events: ValidEvents, numbers: Int64s, moments: Int64s | None = None
    ) -> LivePairs:
        """All pairs of events with their sequence numbers; `moments` are those of the events."""
        found = [
            self._of_version(events, numbers, moments),
            self._of_log(events, numbers, moments),
        ]
        return LivePairs(
            np.concatenate([rows for rows, _ in found]), pa.concat_arrays([ids for _, ids in found])
        )

    def _of_version(
        self, events: ValidEvents, numbers: Int64s, moments: Int64s | None
    ) -> LivePairs:
        if self.base is None or not len(self.base):
            return _no_pairs(self.ids)
        answer = self.base.match_batch(events.batch(self.base.encoder, moments))
        rows = answer.events
        ids = answer.arrow_ids(self.ids == "text")
        gone, when = self._now().gone, self._now().when
        if len(gone):
            # Most ids are not among those that went, and give null.
            left = pc.fill_null(pc.take(when, pc.index_in(ids, gone)), FOREVER)
            live = np.asarray(left) > numbers[rows]
            rows, ids = rows[live], ids.filter(pa.array(live))
        return LivePairs(rows, ids)

    def _of_log(self, events: ValidEvents, numbers: Int64s, moments: Int64s | None) -> LivePairs:
        if not len(self._added):
            return _no_pairs(self.ids)
        answer = self._added.match_batch(events.batch(self._added.encoder, moments))
        rows, entries = answer.events, answer.subscriptions.astype(np.int64)
        now, at = self._now(), numbers[rows]
        live = (now.since[entries] <= at) & (at < now.until[entries])
        return LivePairs(rows[live], now.ids.take(pa.array(entries[live])))

    def _now(self) -> _Changes:
        if self._tables is None:
            kind = ID_TYPES[self.ids]
            self._tables = _Changes(
                pa.array(self._gone, kind),
                pa.array(self._gone.values(), pa.int64()),
                np.array(self._from, np.int64),
                np.array(self._until, np.int64),
                pa.array(self._id, kind),
            )
        return self._tables


class _Changes(NamedTuple):
    """The changes as arrays."""

    gone: pa.Array  # ids of the version
    when: pa.Array
    since: Int64s  # of the added ones
    until: Int64s
    ids: pa.Array


def _no_pairs(ids: str) -> LivePairs:
    return LivePairs(np.zeros(0, np.int64), pa.array([], ID_TYPES[ids]))


def extend_engine(engine: Engine, schema: Schema) -> None:
    """Extend the schema of an engine, unless it has this one already, or a later one."""
    if not same_codes(schema, engine.schema) and extends(schema, engine.schema):
        engine.extend(schema)


class RefusedCondition(NamedTuple):
    """A row whose condition was refused."""

    row: int
    reason: str


def subscribe_rows(
    engine: Engine, table: pa.Table, *, stored: bool = True
) -> list[RefusedCondition]:
    """Subscribe all rows of a table of `id` and `condition`, and give those that are refused.

    A column `language` names the dialects of conditions; null is the language of tamis. `stored` is
    as in `Engine.subscribe`: what a log or a version holds was accepted before.

    A batch is taken whole or not at all. So one with a mistake is halved until that is alone: the
    other rows cost a few tries, not one for each row.
    """
    refused: list[RefusedCondition] = []
    if {LANGUAGE, "condition"} <= {*table.column_names}:
        native = np.asarray(pc.fill_null(pc.equal(table[LANGUAGE], NATIVE), True))
        refused += _in_dialects(engine, table, np.flatnonzero(~native), stored)
        kept = np.flatnonzero(native)
        rest = table.take(pa.array(kept)) if len(kept) < table.num_rows else table
        found = subscribe_rows(engine, rest.drop_columns([LANGUAGE]), stored=stored)
        refused += [each._replace(row=int(kept[each.row])) for each in found]
        return sorted(refused)
    todo = [(at, min(_AT_ONCE, table.num_rows - at)) for at in range(0, table.num_rows, _AT_ONCE)]
    todo.reverse()
    while todo:
        at, rows = todo.pop()
        try:
            engine.subscribe_table(table.slice(at, rows), stored=stored)
        except TamisError as why:
            if rows == 1:
                # Its row in a table that it is alone in says nothing.
                refused.append(RefusedCondition(at, str(why).removeprefix("row 0: ")))
            else:
                half = rows // 2
                todo += [(at + half, rows - half), (at, half)]
    return refused


def _in_dialects(
    engine: Engine, table: pa.Table, rows: Int64s, stored: bool
) -> Iterator[RefusedCondition]:
    """Subscribe the rows that are in other languages, one by one."""
    for row in rows.tolist():
        id, condition, language = (table[name][row].as_py() for name in _NAMES)
        try:
            engine.subscribe(condition, id, language=language, stored=stored)
        except TamisError as why:
            yield RefusedCondition(row, str(why))
