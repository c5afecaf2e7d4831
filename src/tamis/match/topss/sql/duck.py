"""DuckDB, in this process and in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from tamis.files.arrays import Int64s
from tamis.match.topss.sql.database import Columns, Database
from tamis.match.topss.sql.statements import beginning


class Duck(Database):
    """Tables are passed as Arrow without a copy; results are returned as NumPy arrays."""

    kind = "duckdb"
    errors = duckdb.Error

    def __init__(self, file: str, threads: int) -> None:
        super().__init__(file)
        self._threads = threads
        self.clear()

    def clear(self) -> None:
        self.rows = self._changed = 0
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "threads": self._threads,
                "autoinstall_known_extensions": False,  # never download anything silently
                "temp_directory": str(Path(tempfile.gettempdir()) / "tamis-duckdb"),
            },
        )
        for statement in beginning(self._statements, "create"):
            self._connection.execute(statement)
        # Parsed once, but planned for each batch: the best plan depends on the current tables.
        self._match = self._connection.extract_statements(self._statements["match"])[0]

    def _found(self, events: Columns) -> tuple[Int64s, Int64s]:
        self._connection.register("ev", _table(events))
        found = self._connection.execute(self._match).fetchnumpy()
        self._connection.unregister("ev")
        return found["event"].astype(np.int64), found["sid"].astype(np.int64)

    def _selected(self, statement: str) -> Int64s:
        return self._connection.execute(statement).fetchnumpy()["sid"].astype(np.int64)

    def ask(self, name: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(self._statements[name]).fetchall()
        return rows

    @property
    def nbytes(self) -> int:
        question = "SELECT coalesce(sum(memory_usage_bytes), 0)::bigint FROM duckdb_memory()"
        return int(self._connection.execute(question).fetchall()[0][0])

    def _change(self, given: Mapping[str, Columns], run: list[str]) -> None:
        for name, columns in given.items():
            self._connection.register(name, _table(columns))
        try:
            self._connection.begin()
            try:
                for statement in run:
                    self._connection.execute(statement)
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()
        finally:
            for name in given:
                self._connection.unregister(name)

    def _look_after(self) -> None:
        self._connection.execute("CHECKPOINT")


def _table(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(column) for name, column in columns.items()})
