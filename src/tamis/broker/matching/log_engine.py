"""An engine that follows a log: it has the subscriptions that are live at a sequence number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.broker.matching.matcher_compilation import STAND_IN, MatcherCompilation
from tamis.engine import Engine
from tamis.engine.change_matcher import change_matcher
from tamis.engine.engine import DEFAULT
from tamis.errors import OperatorError, TamisError
from tamis.language.dialects import NATIVE
from tamis.model.schema import Schema
from tamis.operators.enabled_operators import EnabledOperators
from tamis.replay.live_subscriptions import subscribe_rows
from tamis.store.changes import RENEW, SUBSCRIBE, UPDATE
from tamis.store.log import Log
from tamis.store.subscription_snapshot import Id
from tamis.store.version import OF, Version
from tamis.store.versions import Versions

OPERATORS = "operators"  # key in `made` of a version: those that were enabled
LEFT_OUT = "left_out"  # key in `made`: the subscriptions that were left out, by reason
_MANY = 64  # subscribes in a row that are loaded as a table
_LONGEST = 300  # characters of a reason


class LogEngine:
    """An engine with the subscriptions that are live after all changes before `sequence`.

    It changes in place: a caller matches all events before a change, then takes the change in.
    Conditions that the log holds and the engine does not accept are left out, with the reason: one
    calls an operator that is not enabled any more, for example. They match nothing until they are
    accepted again.
    """

    def __init__(self, engine: Engine, sequence: int) -> None:
        self.engine, self.sequence = engine, sequence
        self.left_out: dict[Id, str] = {}
        self._compilation: MatcherCompilation | None = None  # while another matcher stands in

    @classmethod
    def at(
        cls,
        log: Log,
        index: Path,
        sequence: int,
        operators: EnabledOperators | None = None,
        *,
        at_once: bool = False,
    ) -> LogEngine:
        """Open the latest version that is not after a number, and take in what came since.

        With `at_once`, a simple matcher stands in if the default one is not compiled on this
        machine; `settle` goes over to that one.
        """
        enabled = EnabledOperators() if operators is None else operators
        version = Versions(index).at(sequence) if index.is_dir() else None
        follower = None
        if version is not None and _is_usable(version, log, enabled):
            follower = cls._opened(version, enabled)
        if follower is None:
            waits = at_once and MatcherCompilation.is_needed()
            matcher = STAND_IN if waits else DEFAULT
            follower = cls(Engine(log.schema_at(0), matcher, operators=enabled), 0)
            if waits:
                follower._compilation = MatcherCompilation()
        follower.advance(log, sequence)
        return follower

    def settle(self) -> None:
        """Go over to the default matcher, once it is compiled. Called between two batches."""
        if self._compilation is not None and self._compilation.has_ended:
            self._compilation = None
            change_matcher(self.engine, DEFAULT)

    def close(self) -> None:
        """Stop what runs for the engine."""
        if self._compilation is not None:
            self._compilation.stop()
        self.engine.close()

    @classmethod
    def _opened(cls, version: Version, enabled: EnabledOperators) -> LogEngine | None:
        """The engine of a version; None if one of its conditions calls an operator that is gone."""
        try:
            engine = Engine.open(version.shard_folders[0], operators=enabled)
        except OperatorError:
            return None
        follower = cls(engine, version.sequence)
        for reason, ids in version.made.get(LEFT_OUT, {}).items():
            follower.left_out |= dict.fromkeys(ids, reason)
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
        if self._are_new(changes):
            self._load(changes.select(["id", "condition"]))
            return
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

    def _are_new(self, changes: pa.Table) -> bool:
        """Whether changes are many subscribes with new ids, which are loaded as they are."""
        return (
            changes.num_rows >= _MANY
            and changes["language"].null_count == changes.num_rows
            and pc.all(pc.equal(changes["kind"], SUBSCRIBE)).as_py()
            and pc.count_distinct(changes["id"]).as_py() == changes.num_rows
            and not any(
                id in self.engine or id in self.left_out for id in changes["id"].to_pylist()
            )
        )

    def _subscribe(self, rows: list[dict[str, Any]]) -> None:
        """Add new subscriptions, as a table if they are many."""
        unique = {row["id"]: row for row in rows}
        if len(unique) < len(rows) or len(rows) < _MANY:
            for row in rows:
                self._change(row)
            return
        self._load(
            pa.table(
                {"id": list(unique), "condition": [row["condition"] for row in unique.values()]}
            )
        )

    def _load(self, table: pa.Table) -> None:
        for at, reason in subscribe_rows(self.engine, table):
            self._leave_out(table["id"][at].as_py(), reason)

    def _change(self, row: dict[str, Any]) -> None:
        kind, id = row["kind"], row["id"]
        if kind == RENEW:
            return
        self.left_out.pop(id, None)
        if id in self.engine:
            self.engine.unsubscribe(id)
        if kind in (SUBSCRIBE, UPDATE):
            try:
                self.engine.subscribe(
                    row["condition"], id, language=row["language"] or NATIVE, stored=True
                )
            except TamisError as why:
                self._leave_out(id, str(why))

    def _leave_out(self, id: Id, reason: str) -> None:
        first = reason.partition("\n")[0]
        self.left_out[id] = first[:_LONGEST]


def _is_usable(version: Version, log: Log, enabled: EnabledOperators) -> bool:
    """Whether a version is of this log, and lacks nothing that would be accepted now."""
    made = version.made
    same = not made.get("refused") or made.get(OPERATORS) == sorted(enabled)
    # The changes after a version that is older than the log's beginning are gone; its base is not.
    kept = version.sequence >= log.begin
    return made.get(OF) == log.identity and len(version.shards) == 1 and same and kept
