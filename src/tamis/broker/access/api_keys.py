"""API keys: who has one calls under a name, with roles.

A key has 256 random bits, so a plain digest of it is enough to store. It is shown once.
"""

from __future__ import annotations

import builtins
import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from tamis.broker.access.caller import ROLES, Caller
from tamis.broker.records import Records
from tamis.errors import BrokerError, NotFoundError, UnavailableError, suggestion

_PREFIX = "tamis"
_LONGEST = 200  # characters of a name
_AWAY = 600.0  # seconds for which a key is believed while the database is away


class ApiKey(NamedTuple):
    """A key as it may be shown: without its secret."""

    id: str
    name: str
    roles: tuple[str, ...]
    created: int  # microseconds since 1970


class ApiKeys:
    """The API keys of a broker."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._read: dict[str, tuple[float, list[tuple[Any, ...]]]] = {}  # when, and what

    def create(self, name: str, roles: Iterable[str]) -> str:
        """Create a key for a name and return it. It cannot be shown again."""
        chosen = sorted({*roles})
        for role in chosen:
            if role not in ROLES:
                raise BrokerError(f"there is no role {role!r}{suggestion(role, ROLES)}")
        if not chosen:
            raise BrokerError(f"a key needs a role: {', '.join(ROLES)}")
        if not name or len(name) > _LONGEST or not name.isprintable():
            raise BrokerError(
                f"a name must have 1 to {_LONGEST} printable characters, not {name!r}"
            )
        id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        self._records.execute_synced(
            "INSERT INTO keys VALUES (?, ?, ?, ?, ?)",
            (id, name, " ".join(chosen), _digest(secret), time.time_ns() // 1000),
        )
        return f"{_PREFIX}_{id}_{secret}"

    def caller(self, key: str) -> Caller | None:
        """Who has a key; None if it is not a key of this broker. This may ask a database."""
        id, secret = _parts(key)
        return _holder(self._rows(id), secret)

    @property
    def is_near(self) -> bool:
        """Whether `caller` takes microseconds: it asks this process, and no one else does now."""
        return not self._records.is_busy

    def caller_at_hand(self, key: str) -> Caller | None:
        """Who has a key, if that was asked a moment ago; None: ask `caller`."""
        id, secret = _parts(key)
        moment, rows = self._read.get(id, (0.0, []))
        return _holder(rows, secret) if self._is_fresh(moment) else None

    def remembers(self, key: str) -> bool:
        """Whether a caller has used this key since the start, and it was right. Asks nobody."""
        id, secret = _parts(key)
        return _holder(self._read.get(id, (0.0, []))[1], secret) is not None

    def _is_fresh(self, moment: float) -> bool:
        return time.monotonic() - moment < self._records.fresh

    def _rows(self, id: str) -> builtins.list[tuple[Any, ...]]:
        """The key with an id. It may be known from a moment ago, or while the database is away."""
        moment, rows = self._read.get(id, (0.0, []))
        if not rows or not self._is_fresh(moment):
            try:
                query = "SELECT name, roles, digest FROM keys WHERE id = ?"
                rows = self._records.select(query, (id,))
            except UnavailableError:
                if not rows or time.monotonic() - moment > _AWAY:
                    raise
                return rows
            if rows:
                self._read[id] = time.monotonic(), rows
            else:
                self._read.pop(id, None)
        return rows

    def list(self) -> list[ApiKey]:
        """All keys, the oldest first."""
        rows = self._records.select("SELECT id, name, roles, moment FROM keys ORDER BY moment, id")
        return [ApiKey(id, name, tuple(roles.split()), moment) for id, name, roles, moment in rows]

    def revoke(self, id: str) -> None:
        """End a key at once."""
        gone = self._records.execute_synced("DELETE FROM keys WHERE id = ?", (id,))
        self._read.pop(id, None)  # now: before, a caller could have had it read once more
        if not gone:
            raise NotFoundError(f"there is no key {id!r}")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def _parts(key: str) -> tuple[str, str]:
    """The id and the secret of a key; what is not a key has neither."""
    prefix, _, rest = key.partition("_")
    id, _, secret = rest.partition("_")
    return (id, secret) if prefix == _PREFIX else ("", "")


def _holder(rows: list[tuple[Any, ...]], secret: str) -> Caller | None:
    given = _digest(secret)
    for name, roles, digest in rows:
        if hmac.compare_digest(given, digest):
            return Caller(name, frozenset(roles.split()))
    return None
