"""A connection to PostgreSQL that is opened again after it broke; errors that say what to do."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from tamis.errors import FullError, StoreError, UnavailableError

PATIENCE = 3  # seconds: a service that is paused for longer loses its locks
_OLDEST = 140_000  # the first server that ends idle sessions
_TRUSTED = 1.0  # seconds for which a connection is used without a look
_PAUSE = 0.5  # seconds between two attempts to connect, at least
# A server that cannot be reached must not hold anybody up for minutes.
_USUAL = {
    "connect_timeout": PATIENCE,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}
_AWAY = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.IdleInTransactionSessionTimeout,
    errors.ReadOnlySqlTransaction,
)

Connection = psycopg.Connection[tuple[Any, ...]]


class Session:
    """A connection to the database of a log. Threads may share it: transactions take turns."""

    def __init__(self, url: str) -> None:
        self.url, self.name = url, _shown(url)
        self._lock = RLock()
        self._base: Connection | None = None
        self._used = self._retry_at = float("-inf")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction, which ends with the block: committed, or rolled back by an error.

        Raises `UnavailableError` if the database cannot be reached. The block may commit earlier.
        """
        with self._lock, database_errors(self.name):
            base = self._connected()
            try:
                yield base
                base.commit()
            except BaseException:
                with suppress(psycopg.Error):
                    base.rollback()
                raise
            self._used = time.monotonic()

    def close(self) -> None:
        with self._lock:
            if self._base is not None:
                self._base.close()

    def _connected(self) -> Connection:
        base, now = self._base, time.monotonic()
        if base is not None and not base.closed and now - self._used > _TRUSTED:
            with suppress(psycopg.Error):  # the server may have started again
                base.execute("SELECT 1")
                base.rollback()
        if base is None or base.closed:
            if now < self._retry_at:
                raise UnavailableError(f"{self.name}: the database cannot be reached now")
            try:
                self._base = base = connect(self.url)
            except psycopg.Error:
                # A server that does not answer must not hold up callers all the time.
                failed = time.monotonic()
                self._retry_at = failed + _PAUSE + 3 * (failed - now)
                raise
        return base


def connect(url: str, *, autocommit: bool = False) -> Connection:
    """A new connection. What is committed through it is on disk."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error as why:
        raise StoreError(f"{_shown(url)}: is not the address of a database: {why}") from None
    # The number of the process lets people see in the database which service holds a lock.
    usual: dict[str, Any] = {**_USUAL, "application_name": f"tamis {os.getpid()}"}
    wanted = {name: value for name, value in usual.items() if name not in given}
    base = psycopg.connect(url, autocommit=autocommit, **wanted)
    if base.info.server_version < _OLDEST:
        base.close()
        raise StoreError(
            f"{_shown(url)}: the server is too old; tamis needs PostgreSQL 14 or later"
        )
    base.execute("SET search_path TO tamis")
    # The server ends the transaction of a service that does not go on with it: others wait for it.
    base.execute(f"SET idle_in_transaction_session_timeout = '{PATIENCE}s'")
    base.execute("SET lock_timeout = '10s'")
    (synced,) = base.execute("SHOW synchronous_commit").fetchone() or ("off",)
    if synced == "off":
        base.execute("SET synchronous_commit TO on")
    base.commit()
    return base


@contextmanager
def database_errors(name: str) -> Iterator[None]:
    """Errors of the database as errors of tamis."""
    try:
        yield
    except errors.DiskFull as why:
        raise FullError(f"{name}: the disk of the database is full; make room") from why
    except errors.InsufficientPrivilege as why:
        raise StoreError(
            f"{name}: the account lacks a right: {_first_line(why)}; it must own the schema "
            "`tamis`, or may create it"
        ) from why
    except _AWAY as why:
        raise UnavailableError(f"{name}: the database cannot be used: {_first_line(why)}") from why
    except psycopg.Error as why:
        raise StoreError(f"{name}: {_first_line(why)}") from why


def _first_line(why: psycopg.Error) -> str:
    return (str(why).strip().splitlines() or [type(why).__name__])[0]


def _shown(url: str) -> str:
    """A database by its host and name: without a password."""
    try:
        found = conninfo_to_dict(url)
    except psycopg.Error:
        return "the database"
    host = found.get("host") or found.get("hostaddr") or "local"
    return f"postgresql://{host}/{found.get('dbname') or ''}"
