"""The interface of a database that holds the tables of one matcher."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis.errors import MatcherError
from tamis.files.arrays import Int64s
from tamis.match.topss.sql.statements import beginning, statements

Columns = Mapping[str, NDArray[Any]]
"""Columns of a table by name, all of the same length."""

DSN = "TAMIS_POSTGRESQL"
"""The environment variable with the PostgreSQL connection, used if the option `dsn` is not set."""

_RESTLESS = 1000  # minimum number of changed rows before maintenance of statistics and storage


class Database(ABC):
    """The tables of one matcher, in a session of their own that ends with the matcher."""

    kind: ClassVar[str]  # the value of the option `database`
    errors: ClassVar[type[Exception]]  # the driver's base exception

    def __init__(self, file: str) -> None:
        self._statements = statements(file, self.kind)
        self.rows = 0  # predicates of all subscriptions
        self._changed = 0  # rows changed since the last maintenance

    def insert(self, fresh: Columns) -> None:
        """Add subscriptions: columns sid, attr, op, val and total, one row per predicate."""
        self._run_change("insert", {"fresh": fresh}, len(fresh["sid"]))

    def delete(self, gone: Int64s, rows: int) -> None:
        """Delete subscriptions, which have `rows` rows in total."""
        self._run_change("delete", {"gone": {"sid": gone.astype(np.int32)}}, -rows)

    def _run_change(self, kind: str, given: Mapping[str, Columns], rows: int) -> None:
        """Run the statements of a kind, which change the number of rows by `rows`."""
        with self._in_words():
            self._settle()
            self._change(given, beginning(self._statements, kind))
        self.rows += rows
        self._changed += abs(rows)

    def match(self, events: Columns) -> tuple[Int64s, Int64s]:
        """The matching pairs (event, sid); the columns of `events` are event, attr and val."""
        with self._in_words():
            self._settle()
            return self._found(events)

    def match_each(self, events: Columns) -> tuple[Int64s, Int64s]:
        """Like `match`, by a statement for each event, with its values written in the statement."""
        statement, pair = self._statements["match_event"], self._statements["pair"]
        written: dict[int, list[str]] = {}
        rows = (events[name].tolist() for name in ("event", "attr", "val"))
        for event, attr, val in zip(*rows, strict=True):
            written.setdefault(event, []).append(pair.format(attr=attr, val=val))
        none = np.zeros(0, np.int64)
        event, sid = [none], [none]
        with self._in_words():
            self._settle()
            for number, pairs in written.items():
                sid.append(self._selected(statement.format(pairs=" OR ".join(pairs))))
                event.append(np.full(len(sid[-1]), number))
        return np.concatenate(event), np.concatenate(sid)

    @abstractmethod
    def ask(self, name: str) -> list[tuple[Any, ...]]:
        """The rows that a statement returns; for the tally and for checks."""

    @abstractmethod
    def clear(self) -> None:
        """Empty all tables and release the memory."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Size of the tables in bytes."""

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Turn the driver's errors into a `MatcherError` that says what failed and what to do."""
        try:
            yield
        except self.errors as error:
            what = str(error).strip().partition("\n")[0].rstrip(".")
            raise MatcherError(
                f"{self.kind} failed: {what}. Nothing was changed; if it stays unreachable, "
                "create the matcher again"
            ) from error

    def _settle(self) -> None:
        """Maintain the tables after many changes, before the next operation, which may raise."""
        if self._changed > max(_RESTLESS, self.rows // 4):
            self._look_after()
            self._changed = 0

    @abstractmethod
    def _found(self, events: Columns) -> tuple[Int64s, Int64s]:
        """Run the matching statement."""

    @abstractmethod
    def _selected(self, statement: str) -> Int64s:
        """The subscriptions that a statement for one event selects."""

    @abstractmethod
    def _change(self, given: Mapping[str, Columns], run: list[str]) -> None:
        """Run statements over the given tables, all in one transaction."""

    @abstractmethod
    def _look_after(self) -> None:
        """Update the statistics and reclaim the space of deleted rows."""
