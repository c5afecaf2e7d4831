"""An engine that follows a log: it has the subscriptions that are live at a sequence number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.engine import Engine
from tamis.errors import TamisError
from tamis.language.dialects import NATIVE
from tamis.model.schema import Schema
from tamis.replay.live_subscriptions import subscribe_rows
from tamis.store.changes import RENEW, SUBSCRIBE, UPDATE
from tamis.store.log import Log
from tamis.store.version import OF
from tamis.store.versions import Versions

_MANY = 64  # subscribes in a row that are loaded as a table


class LogEngine:
    """An engine with the subscriptions that are live after all changes before `sequence`.

    It changes in place: a caller matches all events before a change, then takes the change in.
    """

    def __init__(self, engine: Engine, sequence: int) -> None:
        self.engine, self.sequence = engine, sequence
        self.refused = 0  # conditions that the log holds and this engine does not accept

    @classmethod
    def at(cls, log: Log, index: Path, sequence: int) -> LogEngine:
        """Open the latest version that is not after a number, and take in what came since."""
        version = Versions(index).at(sequence) if index.is_dir() else None
        if version is not None and (
            version.made.get(OF) != log.identity or len(version.shards) != 1
        ):
            version = None
        if version is None:
            follower = cls(Engine(log.schema_at(0)), 0)
        else:
            follower = cls(Engine.open(version.shard_folders[0]), version.sequence)
        follower.advance(log, sequence)
        return follower

    def advance(self, log: Log, end: int) -> None:
        """Take in all changes before a number, each by its own schema, and the schema there."""
        if end > self.sequence:
            changes = log.changes(self.sequence, end, details=True)
            numbers = np.asarray(changes["sequence"])
            for low, high, schema in log.schemas(self.sequence, end):
                self.extend(schema)
                first, last = np.searchsorted(numbers, (low, high)).tolist()
                self.take(changes.slice(first, last - first))
            self.extend(log.schema_at(end))
            self.sequence = end

    def extend(self, schema: Schema) -> None:
        """Go on with an extended schema."""
        if schema.to_dict() != self.engine.schema.to_dict():
            self.engine.extend(schema)

    def take(self, changes: pa.Table) -> None:
        """Take in changes in the order of the log."""
        waiting: list[dict[str, Any]] = []
        for row in changes.select(["kind", "id", "condition", "language"]).to_pylist():
            fresh = row["kind"] == SUBSCRIBE and row["id"] not in self.engine
            if fresh and row["language"] is None:
                waiting.append(row)
                continue
            self._subscribe(waiting)
            waiting = []
            self._change(row)
        self._subscribe(waiting)

    def _subscribe(self, rows: list[dict[str, Any]]) -> None:
        """Add new subscriptions, as a table if they are many."""
        unique = {row["id"]: row for row in rows}
        if len(unique) < len(rows) or len(rows) < _MANY:
            for row in rows:
                self._change(row)
            return
        table = pa.table(
            {"id": list(unique), "condition": [row["condition"] for row in unique.values()]}
        )
        self.refused += len(subscribe_rows(self.engine, table))

    def _change(self, row: dict[str, Any]) -> None:
        kind, id = row["kind"], row["id"]
        if kind == RENEW:
            return
        if id in self.engine:
            self.engine.unsubscribe(id)
        if kind in (SUBSCRIBE, UPDATE):
            try:
                self.engine.subscribe(
                    row["condition"], id, language=row["language"] or NATIVE, stored=True
                )
            except TamisError:
                self.refused += 1
