"""PostgreSQL, over a connection owned by the matcher."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from tamis.errors import MatcherError
from tamis.files.arrays import Int64s
from tamis.match.topss.sql.database import DSN, Columns, Database
from tamis.match.topss.sql.statements import beginning, statements

# Tables are in the temporary schema: no other session sees them, and they disappear with the
# connection. With its defaults, the server would spend longer on JIT compilation than most plans
# run, and would sort where it could hash.
_SETTINGS = {
    "search_path": "pg_temp",
    "jit": "off",
    "work_mem": "256MB",
    "temp_buffers": "256MB",
}
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"


class Postgres(Database):
    """Tables are passed by binary COPY, events and results as binary arrays: no text is parsed."""

    kind = "postgresql"
    errors = psycopg.Error

    def __init__(self, file: str, dsn: str | None) -> None:
        super().__init__(file)
        self._shared = statements("postgresql", self.kind)
        self._match = self._shared["match"].format(match=self._statements["match"])
        self._connection = _connect(dsn)
        weakref.finalize(self, self._connection.close)
        for statement in beginning(self._shared, "create"):
            self._run(statement)
        for statement in beginning(self._statements, "create"):
            self._run(statement)
        listed = "SELECT relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()"
        tables = self._run(listed + " AND relkind = 'r'").fetchall()
        self._tables = ", ".join(sorted(name for (name,) in tables))

    def clear(self) -> None:
        self.rows = self._changed = 0
        self._run(f"TRUNCATE {self._tables}")

    def _found(self, events: Columns) -> tuple[Int64s, Int64s]:
        arrays = [events[name].tolist() for name in ("event", "attr", "val")]
        cursor = self._connection.cursor(binary=True)
        cursor.execute(self._match.encode(), arrays, prepare=True)
        assert cursor.pgresult is not None
        event, sid = (cursor.pgresult.get_value(0, column) for column in (0, 1))
        return _array(event), _array(sid)

    def _selected(self, statement: str) -> Int64s:
        cursor = self._connection.cursor(binary=True)
        cursor.execute(self._shared["match_event"].format(match=statement).encode())
        assert cursor.pgresult is not None
        return _array(cursor.pgresult.get_value(0, 0))

    def ask(self, name: str) -> list[tuple[Any, ...]]:
        return self._run(self._statements[name]).fetchall()

    @property
    def nbytes(self) -> int:
        return int(self._run(self._shared["nbytes"]).fetchall()[0][0])

    def _change(self, given: Mapping[str, Columns], run: list[str]) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for name, columns in given.items():
                copying = f"COPY {name} ({', '.join(columns)}) FROM STDIN (FORMAT binary)"
                with cursor.copy(copying.encode()) as copy:
                    copy.write(_SIGNATURE + _records(columns) + _END)
            for statement in run:
                cursor.execute(statement.encode())

    def _look_after(self) -> None:
        self._run(f"VACUUM (ANALYZE) {self._tables}")

    def _run(self, statement: str) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(statement.encode())


def _connect(dsn: str | None) -> psycopg.Connection[tuple[Any, ...]]:
    dsn = dsn or os.environ.get(DSN)
    if not dsn:
        raise MatcherError(
            "no PostgreSQL connection is given; set the option dsn or the environment variable "
            f"{DSN}, for example to 'host=localhost dbname=tamis user=tamis'"
        )
    try:
        connection = psycopg.connect(dsn, autocommit=True)
        for name, value in _SETTINGS.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
    except psycopg.Error as error:
        raise MatcherError(f"cannot open a PostgreSQL session: {str(error).strip()}") from error
    return connection


def _records(columns: Columns) -> bytes:
    """Rows in the binary COPY format: the number of fields, then a length and a value per field."""
    kinds: list[tuple[str, str]] = [("fields", ">i2")]
    for name, column in columns.items():
        kinds += [(f"{name} length", ">i4"), (name, f">i{column.dtype.itemsize}")]
    records: NDArray[Any] = np.zeros(len(next(iter(columns.values()))), np.dtype(kinds))
    records["fields"] = len(columns)
    for name, column in columns.items():
        records[f"{name} length"] = column.dtype.itemsize
        records[name] = column
    return records.tobytes()


def _array(value: bytes | None) -> Int64s:
    """Decode a binary integer[]: a header of five words, then a length and a value per item."""
    if value is None:
        return np.zeros(0, np.int64)
    items = np.frombuffer(value, np.dtype([("length", ">i4"), ("item", ">i4")]), offset=20)
    return items["item"].astype(np.int64)
