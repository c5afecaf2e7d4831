"""Records in PostgreSQL, for all services that share it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tamis.store.postgresql.session import Connection, Session


class SharedRecords:
    """The records of a database. Each change is on disk when a call returns."""

    fresh = 1.0
    is_busy = True  # the database is elsewhere

    def __init__(self, session: Session) -> None:
        self._session = session

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        with self._session.transaction() as base:
            return base.execute(_marked(query), values).fetchall()

    def execute_synced(self, statement: str, values: tuple[Any, ...]) -> int:
        """Change rows, on disk when this returns; how many it changed."""
        with self._session.transaction() as base:
            return base.execute(_marked(statement), values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[_SharedChanges]:
        """Change several rows together."""
        with self._session.transaction() as base:
            yield _SharedChanges(base)


class _SharedChanges:
    """A transaction, with the calls that SQLite has too."""

    def __init__(self, base: Connection) -> None:
        self._cursor = base.cursor()

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> object:
        return self._cursor.execute(_marked(statement), tuple(values))

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        given = [tuple(row) for row in rows]
        if given:
            self._cursor.executemany(_marked(statement), given)

    def changes(self) -> int:
        return self._cursor.rowcount


def _marked(statement: str) -> bytes:
    """A statement with the marks of psycopg in place of those of SQLite."""
    return statement.replace("?", "%s").encode()
