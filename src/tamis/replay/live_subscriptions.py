"""Subscriptions that come and go while events are matched, each at its place in the sequence.

A version of the index holds what was live at some sequence number. It is opened once in a process,
mapped into memory, and never changed. What came after it is kept beside it: subscriptions that were
added go into a small engine of their own, and those that went are noted with the number at which
they did. A pair counts when the event's number lies between the two. So an answer depends on the
log alone, and not on the version it was found with: what is replayed gives what it gave before.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.encode.encoder import Encoder
from tamis.encode.validation import ValidEvents, same_codes
from tamis.engine import Engine
from tamis.engine.ids import Id
from tamis.model.schema import Schema
from tamis.operators.operator import Operator
from tamis.replay.subscribe_rows import subscribe_rows
from tamis.store.changes import ID_TYPES
from tamis.store.log import Log

Int64s = NDArray[np.int64]
FOREVER = np.iinfo(np.int64).max
_GOLDEN = 0x9E3779B97F4A7C15  # spreads numbers that are in a row over all shards
_WORD = (1 << 64) - 1


def shard_of(id: Id, shards: int) -> int:
    """The shard that a subscription belongs to, the same in all processes and for ever."""
    if isinstance(id, str):
        return zlib.crc32(id.encode()) % shards
    return ((id * _GOLDEN & _WORD) >> 32) % shards


class LivePairs(NamedTuple):
    """Pairs: the place of an event in its batch, and the id of a subscription."""

    rows: Int64s
    ids: pa.Array

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.rows)


class LiveSubscriptions:
    """One shard of the subscriptions, from a version on.

    Args:
        schema: of the events.
        ids: "text" or "int64".
        base: the engine of the version; None where there is none, and all comes from the log.
        sequence: what the version knows: all changes before this number.
        shard: which of `shards` this is.
        operators: that conditions may call, besides those registered.

    Taking in a change costs what `Engine.subscribe` costs; a match costs that of both engines, and
    looking up the ids of its pairs among those that have gone.
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
        operators: Iterable[Operator] = (),
    ) -> None:
        self.schema, self.ids, self.base = schema, ids, base
        self.sequence = sequence  # all changes before this number are taken in
        self.shard, self.shards = shard, shards
        self._added = Engine(schema, operators=operators)
        if base is not None:  # what it knows of operators from past events holds for others too
            self._added.calls.expect(base.calls.known)
        # Of what is in it, by number there:
        self._id: list[Id] = []
        self._from: list[int] = []
        self._until: list[int] = []
        self._last: dict[Id, int] = {}  # by id: the one that is live
        self._gone: dict[Id, int] = {}  # of the version: when it went
        self._tables: _Changes | None = None

    @property
    def engines(self) -> list[Engine]:
        """Those that match: of the version, and of what came after it."""
        return [self._added] if self.base is None else [self.base, self._added]

    def take(self, log: Log, end: int) -> None:
        """Take in the changes of a log before `end` that are not taken in yet."""
        if end > self.sequence:
            self.take_changes(log.changes(self.sequence, end), end)

    def take_changes(self, changes: pa.Table, end: int) -> None:
        """Take in changes as `Log.changes` gives them: all from `sequence` to `end`.

        What was taken in before is passed over, so that a range may be read again. So is what
        belongs to other shards.
        """
        if end <= self.sequence:
            return
        fresh: list[tuple[int, str]] = []
        columns = (changes[name].to_pylist() for name in ("sequence", "kind", "id", "condition"))
        for sequence, kind, id, condition in zip(*columns, strict=True):
            mine = self.shards == 1 or shard_of(id, self.shards) == self.shard
            if sequence < self.sequence or not mine or kind == "renew":
                continue
            # Who subscribes again under an id that is live takes the place of what was there.
            self._leave(id, sequence)
            if kind == "subscribe":
                self._last[id] = len(self._id)
                self._id.append(id)
                self._from.append(sequence)
                self._until.append(FOREVER)
                fresh.append((len(self._id) - 1, condition))
        self._subscribe(fresh)
        self.sequence = end
        self._tables = None

    def _leave(self, id: Id, sequence: int) -> None:
        at = self._last.pop(id, None)
        if at is not None:
            self._until[at] = sequence
        elif self.base is not None:
            self._gone.setdefault(id, sequence)

    def _subscribe(self, fresh: Sequence[tuple[int, str]]) -> None:
        """Those that are wrong are left out; whoever compiles the next version tells of them."""
        if fresh:
            numbers = pa.array([number for number, _ in fresh], pa.int64())
            conditions = [condition for _, condition in fresh]
            subscribe_rows(self._added, pa.table({"id": numbers, "condition": conditions}))

    @property
    def encoder(self) -> Encoder:
        """To validate events with: that of the version, whose codes are then ready."""
        base, added = self.base, self._added
        same = base is not None and same_codes(base.schema, self.schema)
        return base.encoder if base is not None and same else added.encoder

    def match(self, events: ValidEvents, numbers: Int64s) -> LivePairs:
        """All pairs of events with their sequence numbers."""
        found = [self._of_version(events, numbers), self._of_log(events, numbers)]
        return LivePairs(
            np.concatenate([rows for rows, _ in found]), pa.concat_arrays([ids for _, ids in found])
        )

    def _of_version(self, events: ValidEvents, numbers: Int64s) -> LivePairs:
        if self.base is None or not len(self.base):
            return _no_pairs(self.ids)
        answer = self.base.match_batch(events.batch(self.base.encoder))
        rows = answer.events
        ids = pa.array(answer.subscriptions, ID_TYPES[self.ids])
        gone, when = self._now().gone, self._now().when
        if len(gone):
            # Most ids are not among those that went, and give null.
            left = pc.fill_null(pc.take(when, pc.index_in(ids, gone)), FOREVER)
            live = np.asarray(left) > numbers[rows]
            rows, ids = rows[live], ids.filter(pa.array(live))
        return LivePairs(rows, ids)

    def _of_log(self, events: ValidEvents, numbers: Int64s) -> LivePairs:
        if not len(self._added):
            return _no_pairs(self.ids)
        answer = self._added.match_batch(events.batch(self._added.encoder))
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
    """What has changed, as arrays."""

    gone: pa.Array  # ids of the version
    when: pa.Array
    since: Int64s  # of what was added
    until: Int64s
    ids: pa.Array


def _no_pairs(ids: str) -> LivePairs:
    return LivePairs(np.zeros(0, np.int64), pa.array([], ID_TYPES[ids]))
