"""A database that holds the tables of one matcher: what the matcher asks of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis.errors import MatcherError
from tamis.match.topss.sql.statements import beginning, statements

Int64s = NDArray[np.int64]
Columns = Mapping[str, NDArray[Any]]
"""Columns of a table by name, all of one length."""

DSN = "TAMIS_POSTGRESQL"
"""The environment variable that names a PostgreSQL where no option does."""

_RESTLESS = 1000  # changed rows before statistics and storage are looked after, at the least


class Database(ABC):
    """Tables of one matcher, in a session of their own that ends with it."""

    kind: ClassVar[str]  # as the option `database` names it
    errors: ClassVar[type[Exception]]  # what it raises when it cannot do as it is told

    def __init__(self, file: str) -> None:
        self._statements = statements(file, self.kind)
        self._rows = 0  # predicates of all subscriptions
        self._changed = 0  # of these, since the tables were last looked after

    def insert(self, fresh: Columns) -> None:
        """Add subscriptions: the columns sid, attr, op, val and total, a row for each predicate."""
        with self._in_words():
            self._settle()
            self._change({"fresh": fresh}, beginning(self._statements, "insert"))
        self._rows += len(fresh["sid"])
        self._changed += len(fresh["sid"])

    def delete(self, gone: Int64s, rows: int) -> None:
        """Delete subscriptions, which have so many rows together."""
        ids = {"sid": gone.astype(np.int32)}
        with self._in_words():
            self._settle()
            self._change({"gone": ids}, beginning(self._statements, "delete"))
        self._rows -= rows
        self._changed += rows

    def match(self, events: Columns) -> tuple[Int64s, Int64s]:
        """Pairs (event, sid) that match; the columns are event, attr and val."""
        with self._in_words():
            self._settle()
            return self._found(events)

    @abstractmethod
    def ask(self, name: str) -> list[tuple[Any, ...]]:
        """The rows that a statement gives; for the tally and for checks."""

    @abstractmethod
    def clear(self) -> None:
        """Make all tables empty, and give the memory back."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that the tables take."""

    @property
    def rows(self) -> int:
        """Predicates of all subscriptions."""
        return self._rows

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Say what the database did not do, and what to do about it."""
        try:
            yield
        except self.errors as error:
            what = str(error).strip().partition("\n")[0].rstrip(".")
            raise MatcherError(
                f"{self.kind} failed: {what}. Nothing was changed; if it stays unreachable, make "
                "the matcher anew"
            ) from error

    def _settle(self) -> None:
        """After many changes, look after the tables: at the next occasion, where it may fail."""
        if self._changed > max(_RESTLESS, self._rows // 4):
            self._look_after()
            self._changed = 0

    @abstractmethod
    def _found(self, events: Columns) -> tuple[Int64s, Int64s]:
        """Run the statement that matches."""

    @abstractmethod
    def _change(self, given: Mapping[str, Columns], run: list[str]) -> None:
        """Run statements over given tables: all of them, or none."""

    @abstractmethod
    def _look_after(self) -> None:
        """Renew statistics, and drop what deleted rows left behind."""
