"""Records: what a broker keeps that no log can give back.

API keys, cursors of consumers, deliveries to try again, dead letters. The statements are those that
SQLite and PostgreSQL share, with `?` for values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class RecordChanges(Protocol):
    """Changes of several records, all or none of them."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> object:
        """Change some rows."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Change rows, once for each row of values."""

    def changes(self) -> int:
        """How many rows the last statement changed."""


class Records(Protocol):
    """The records of a broker. Threads may share them."""

    fresh: float
    """Seconds for which what was read may be used again; 0: reading costs nothing."""

    @property
    def is_busy(self) -> bool:
        """Whether a question would wait for another one, or for what is written."""

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows of a question."""

    def execute_synced(self, statement: str, values: tuple[Any, ...]) -> int:
        """Change rows, on disk when this returns; how many it changed."""

    def transaction(self) -> AbstractContextManager[RecordChanges]:
        """Change several rows together. A power cut may lose the last transactions."""
