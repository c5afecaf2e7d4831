"""The state database: what is derived from the log, in a form that can be asked.

The subscriptions and the keys of requests are derived: they are the fold of all changes before
`applied`, and are built anew from the log if they are lost. Each transaction stores its effect
together with `applied`, so a crash repeats nothing. API keys and the cursors of consumers are the
database's own: each is on disk when a call returns.

SQLite through apsw, which brings its own SQLite: that of the system may be one whose write-ahead
log can lose data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import apsw
import pyarrow as pa
import pyarrow.compute as pc

from tamis.broker.sqlite_errors import database_errors, refuse_unsafe
from tamis.broker.subscription_query import SubscriptionQuery
from tamis.errors import BrokerError, RequestKeyError
from tamis.store.changes import CANCEL, DETAILS, EXPIRE, RENEW, SUBSCRIBE, UPDATE
from tamis.store.pack import microseconds
from tamis.store.subscription_snapshot import Id

FORMAT = 1
_AT_ONCE = 1000  # ids that one question names
_ID = {"int64": "INTEGER", "text": "TEXT"}
_REMEMBERED = 86_400_000_000  # microseconds for which the key of a request is remembered
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value);
CREATE TABLE subscriptions (
    id {id} PRIMARY KEY, added INTEGER, condition TEXT, until INTEGER, owner TEXT, name TEXT,
    language TEXT, request_key TEXT, sink TEXT, nonce BLOB, key_generation INTEGER, metadata TEXT);
CREATE INDEX subscriptions_owner ON subscriptions (owner, id);
CREATE INDEX subscriptions_sink ON subscriptions (id) WHERE sink IS NOT NULL;
CREATE INDEX subscriptions_until ON subscriptions (until) WHERE until IS NOT NULL;
CREATE TABLE ended (
    id {id} PRIMARY KEY, owner TEXT, nonce BLOB, key_generation INTEGER, sink TEXT,
    sequence INTEGER);
CREATE INDEX ended_owner ON ended (owner, id);
CREATE INDEX ended_sink ON ended (sequence) WHERE sink IS NOT NULL;
CREATE TABLE requests (
    owner TEXT, request_key TEXT, id {id}, nonce BLOB, key_generation INTEGER, until INTEGER,
    digest BLOB, moment INTEGER, PRIMARY KEY (owner, request_key, digest)) WITHOUT ROWID;
CREATE INDEX requests_moment ON requests (moment);
CREATE TABLE keys (id TEXT PRIMARY KEY, name TEXT, roles TEXT, digest BLOB, moment INTEGER);
CREATE TABLE deliveries (
    subscription {id}, sequence INTEGER, attempts INTEGER, due INTEGER, error TEXT,
    PRIMARY KEY (subscription, sequence)) WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (due);
CREATE TABLE dead_deliveries (
    id INTEGER PRIMARY KEY, subscription {id}, sequence INTEGER, attempts INTEGER, error TEXT,
    moment INTEGER);
CREATE TABLE sink_rotations (subscription {id} PRIMARY KEY, rotation INTEGER, moment INTEGER);
CREATE TABLE consumers (
    owner TEXT, name TEXT, cursor INTEGER, PRIMARY KEY (owner, name)) WITHOUT ROWID;
"""
_DETAILS = tuple(DETAILS)
_COLUMNS = ", ".join(("id", "added", "condition", "until", *_DETAILS))
_INSERT = f"INSERT OR REPLACE INTO subscriptions ({_COLUMNS}) VALUES (?{', ?' * 11})"


class StoredSubscription(NamedTuple):
    """A live subscription with everything that the log says about it."""

    id: Id
    added: int  # the number of its subscribe, or of its last update
    condition: str
    until: int | None  # when its lease ends, in microseconds since 1970 UTC; None: never
    owner: str | None
    name: str | None
    language: str | None
    request_key: str | None
    sink: str | None
    nonce: bytes | None
    key_generation: int | None
    metadata: str | None


def after_change(
    live: StoredSubscription | None, row: Mapping[str, Any], number: int
) -> StoredSubscription | None:
    """A live subscription after a change with a number."""
    if live is None or row["kind"] in (CANCEL, EXPIRE):
        return None
    if row["kind"] == RENEW:
        return live._replace(until=row["until"])
    given = {name: row[name] for name in StoredSubscription._fields if name in row}
    return live._replace(**(given | {"added": number}))


class KnownRequest(NamedTuple):
    """What a subscribe with a request key was answered with."""

    id: Id
    nonce: bytes | None
    key_generation: int | None
    until: int | None


class KnownSubscription(NamedTuple):
    """Whose a subscription is or was."""

    id: Id
    owner: str | None
    nonce: bytes | None
    key_generation: int | None
    sink: str | None = None


class State:
    """The state of one log. Threads may share it: calls take turns."""

    fresh = 0.0

    def __init__(self, path: Path, ids: str, identity: str) -> None:
        refuse_unsafe()
        self._lock = RLock()
        self.path = path
        self.watcher: Callable[[pa.Table], object] = lambda changes: None  # sees what is applied
        self._counts: Counter[str | None] | None = None  # by owner, once they are asked for
        with database_errors(path):
            self._base = apsw.Connection(str(path))
            self._base.set_busy_timeout(10_000)
            # `tamis keys` writes beside a service: a transaction must not begin as a reader.
            self._base.transaction_mode = "IMMEDIATE"
            self._base.pragma("journal_mode", "wal")
            # Derived data may be lost in a power cut; it is derived again.
            self._base.pragma("synchronous", "normal")
            self._prepare(ids, identity)

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def _prepare(self, ids: str, identity: str) -> None:
        if self._base.pragma("user_version") == 0:
            with self._base:
                self._base.execute(_TABLES.format(id=_ID[ids]))
                self._base.execute(
                    "INSERT INTO facts VALUES ('log', ?), ('applied', 0), ('ids', ?)",
                    (identity, ids),
                )
                self._base.pragma("user_version", FORMAT)
            return
        facts = dict(self._base.execute("SELECT name, value FROM facts"))
        if self._base.pragma("user_version") != FORMAT:
            raise BrokerError(f"{self.path}: was written by another version of tamis")
        if facts.get("log") != identity:
            raise BrokerError(f"{self.path}: belongs to another log; move it away, or put the log "
                              "of this database back")  # fmt: skip

    # -- the fold of the changes -----------------------------------------------------------------

    @property
    def applied(self) -> int:
        """All changes before this sequence number are in the database."""
        return int(self._rows("SELECT value FROM facts WHERE name = 'applied'")[0][0])

    def clear(self) -> None:
        """Forget everything that is derived from the log."""
        with self._lock, database_errors(self.path), self._base:
            self._counts = None
            for table in ("subscriptions", "ended", "requests"):
                self._base.execute(f"DELETE FROM {table}")
            self._base.execute("UPDATE facts SET value = 0 WHERE name = 'applied'")

    def apply(
        self, changes: pa.Table, end: int, moment: int, moments: Sequence[int] | None = None
    ) -> None:
        """Apply changes as `Log.changes` returns them with details: all before `end`.

        Changes before `applied` are skipped. `moment` is when the last of them was appended, and
        `moments` says it for each, if they differ.
        """
        with self._lock, database_errors(self.path), self._counting(), self._base:
            applied = self.applied
            times = moments or repeat(moment)
            fresh = pc.all(pc.greater_equal(changes["sequence"], applied)).as_py()
            if fresh and pc.all(pc.equal(changes["kind"], SUBSCRIBE)).as_py():
                self._apply_subscribes(changes, times)
            else:
                for row, then in zip(changes.to_pylist(), times, strict=False):
                    if row["sequence"] >= applied:
                        self._apply(row, then)
            self._base.execute("UPDATE facts SET value = ? WHERE name = 'applied'", (end,))
            self._base.execute("DELETE FROM requests WHERE moment < ?", (moment - _REMEMBERED,))
        self.watcher(changes)

    def _apply_subscribes(self, changes: pa.Table, moments: Iterable[int]) -> None:
        """Apply subscribes as columns: a dict for each row would cost twice as much."""
        names = ["id", "sequence", "condition", "until", *_DETAILS]
        columns = [
            (changes[name].cast(pa.int64()) if name == "until" else changes[name]).to_pylist()
            for name in names
        ]
        self._base.executemany(_INSERT, zip(*columns, strict=True))
        if self._counts is not None:
            self._counts.update(changes["owner"].to_pylist())
        if changes["request_key"].null_count == changes.num_rows:
            return
        for values, moment in zip(zip(*columns, strict=True), moments, strict=False):
            row = dict(zip(names, values, strict=True))
            if row["request_key"] is not None:
                self._remember(row, row["until"], moment)

    def _remember(self, row: Mapping[str, Any], until: int | None, moment: int) -> None:
        """Remember the key of a request, and what it was answered with."""
        self._base.execute(
            "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (row["owner"] or "", row["request_key"], row["id"], row["nonce"],
             row["key_generation"], until, _digest(row), moment),
        )  # fmt: skip

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Forget the counts if a transaction fails: they may be ahead of the database."""
        try:
            yield
        except BaseException:
            self._counts = None
            raise

    def _apply(self, row: dict[str, Any], moment: int) -> None:
        kind, id, until = row["kind"], row["id"], _microseconds(row["until"])
        if kind in (SUBSCRIBE, UPDATE):
            details = (row[name] for name in _DETAILS)
            self._base.execute(_INSERT, (id, row["sequence"], row["condition"], until, *details))
            if kind == SUBSCRIBE and self._counts is not None:
                self._counts[row["owner"]] += 1
            if kind == SUBSCRIBE and row["request_key"] is not None:
                self._remember(row, until, moment)
        elif kind == RENEW:
            self._base.execute("UPDATE subscriptions SET until = ? WHERE id = ?", (until, id))
        elif kind in (CANCEL, EXPIRE):
            # Its notifications stay, and may be read by those who could read them before.
            self._base.execute(
                "INSERT OR REPLACE INTO ended SELECT id, owner, nonce, key_generation, sink, "
                "? FROM subscriptions WHERE id = ?",
                (row["sequence"], id),
            )
            left = self._base.execute(
                "DELETE FROM subscriptions WHERE id = ? RETURNING owner", (id,)
            )
            for (owner,) in list(left):
                if self._counts is not None:
                    self._counts[owner] -= 1

    # -- questions -------------------------------------------------------------------------------

    def subscription(self, id: Id) -> StoredSubscription | None:
        """A live subscription."""
        rows = self._rows(f"SELECT {_COLUMNS} FROM subscriptions WHERE id = ?", (id,))
        return StoredSubscription(*rows[0]) if rows else None

    def subscriptions(
        self,
        owner: str | None = None,
        *,
        containing: str | None = None,
        after: Id | None = None,
        most: int = 100,
    ) -> list[StoredSubscription]:
        """Live subscriptions in the order of their ids: of an owner, or of all."""
        return self.search(SubscriptionQuery(owner, containing, after=after), most)

    def search(self, query: SubscriptionQuery, most: int) -> list[StoredSubscription]:
        """A page of live subscriptions."""
        rows = self._rows(*query.sql(_COLUMNS, most))
        return [StoredSubscription(*row) for row in rows]

    def taken_among(self, owners: Mapping[Id, str | None]) -> set[Id]:
        """Which ids are live, or were those of others than the owners who want them now."""
        taken = {row[0] for row in self._among("SELECT id FROM subscriptions", list(owners))}
        for id, owner, nonce in self._among("SELECT id, owner, nonce FROM ended", list(owners)):
            if nonce is not None and owner != owners[id]:  # who has an id reads all of it
                taken.add(id)
        return taken

    def owners_among(self, ids: Sequence[Id]) -> dict[Id, str | None]:
        """The owners of some subscriptions that are live or were."""
        query = "SELECT id, owner FROM"
        ended = dict(self._among(f"{query} ended", ids))
        return ended | dict(self._among(f"{query} subscriptions", ids))

    def _among(self, query: str, ids: Sequence[Id]) -> Iterator[Any]:
        for at in range(0, len(ids), _AT_ONCE):
            some = tuple(ids[at : at + _AT_ONCE])
            yield from self._rows(f"{query} WHERE id IN ({', '.join('?' * len(some))})", some)

    def known(self, id: Id) -> KnownSubscription | None:
        """A subscription that is live or was."""
        rows = self._rows(
            "SELECT id, owner, nonce, key_generation, sink FROM subscriptions WHERE id = ?1 "
            "UNION ALL SELECT id, owner, nonce, key_generation, sink FROM ended WHERE id = ?1",
            (id,),
        )
        return KnownSubscription(*rows[0]) if rows else None

    def has_tickets(self) -> bool:
        """Whether a subscription that is live, or was, has a ticket."""
        some = "SELECT 1 FROM {} WHERE nonce IS NOT NULL LIMIT 1"
        return any(self._rows(some.format(each)) for each in ("subscriptions", "ended"))

    def sinks(self, after: int) -> list[tuple[Id, str]]:
        """The sinks of the subscriptions that are live, or ended after a number."""
        query = (
            "SELECT id, sink FROM subscriptions WHERE sink IS NOT NULL "
            "UNION ALL SELECT id, sink FROM ended WHERE sink IS NOT NULL AND sequence > ?"
        )
        return [(row[0], row[1]) for row in self._rows(query, (after,))]

    def ids_of(self, owner: str) -> list[Id]:
        """The ids of all subscriptions that an owner has or had."""
        query = (
            "SELECT id FROM subscriptions WHERE owner = ?1 "
            "UNION SELECT id FROM ended WHERE owner = ?1"
        )
        return [row[0] for row in self._rows(query, (owner,))]

    def request(self, row: Mapping[str, Any]) -> KnownRequest | None:
        """What an earlier subscribe like this row, with the same key, was answered with.

        An owner who uses a key for another request is refused. Anonymous callers do not know each
        other's keys: only the same request counts as a repeated one.
        """
        rows = self._rows(
            "SELECT id, nonce, key_generation, until, digest FROM requests "
            "WHERE owner = ? AND request_key = ?",
            (row.get("owner") or "", row["request_key"]),
        )
        digest = _digest(row)
        for *known, other in rows:
            if other == digest:
                return KnownRequest(*known)
        if rows and row.get("owner"):
            raise RequestKeyError("this key was used for another request; choose a new one")
        return None

    def count(self) -> int:
        """How many subscriptions are live."""
        with self._lock:
            self.count_of(None)
            return 0 if self._counts is None else self._counts.total()

    def count_of(self, owner: str | None) -> int:
        """How many subscriptions of an owner are live; None: of anonymous callers."""
        with self._lock:
            if self._counts is None:
                query = "SELECT owner, count(*) FROM subscriptions GROUP BY owner"
                self._counts = Counter(dict(self._rows(query)))
            return self._counts[owner]

    def due(self, moment: int, most: int) -> list[Id]:
        """Subscriptions whose lease has ended, the earliest first."""
        query = "SELECT id FROM subscriptions WHERE until <= ? ORDER BY until, id LIMIT ?"
        return [row[0] for row in self._rows(query, (moment, most))]

    def ending(self, after: int, until: int, most: int | None) -> list[StoredSubscription]:
        """Subscriptions whose lease ends after a moment, up to another, the earliest first."""
        query = f"SELECT {_COLUMNS} FROM subscriptions WHERE until > ? AND until <= ?"
        rows = self._rows(f"{query} ORDER BY until LIMIT ?", (after, until, most or -1))
        return [StoredSubscription(*row) for row in rows]

    # -- its own ---------------------------------------------------------------------------------

    def execute_synced(self, statement: str, values: tuple[Any, ...]) -> int:
        """Change what is not derived, on disk when this returns; how many rows it changed."""
        with self._lock, database_errors(self.path):
            self._base.pragma("synchronous", "full")
            try:
                with self._base:
                    self._base.execute(statement, values)
                    changed = int(self._base.changes())
            finally:
                self._base.pragma("synchronous", "normal")
            return changed

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """Change several rows together. A power cut may lose the last transactions."""
        with self._lock, database_errors(self.path), self._base:
            yield self._base

    @property
    def is_busy(self) -> bool:
        """Whether a question would wait for another one, or for what is written."""
        free = self._lock.acquire(blocking=False)
        if free:
            self._lock.release()
        return not free

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        return self._rows(query, values)

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, database_errors(self.path):
            return list(self._base.execute(query, values))


def _microseconds(moment: Any) -> int | None:
    return None if moment is None else microseconds(moment)


def _digest(row: Mapping[str, Any]) -> bytes:
    """What a subscribe asks for, apart from its lease."""
    names = ("condition", "language", "name", "sink", "metadata")
    return sha256(repr([row.get(name) for name in names]).encode()).digest()
