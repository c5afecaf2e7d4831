"""The matcher around a database: verification, chunks and pickling."""

from __future__ import annotations

import importlib
from typing import Any, ClassVar

import numpy as np

from tamis.encode.batch import Pairs
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.files.arrays import Int8s, Int32s, Int64s, offsets
from tamis.index.elementary_predicates import IF_SINGLE, elementary_predicates
from tamis.match.base import Slots
from tamis.match.options import Option, choice, whole_number
from tamis.match.topss.sql.database import DSN, Columns, Database
from tamis.match.topss.verification import CandidateMatcher

_COMPARISONS = 20_000_000  # per statement, of predicates with events; bounds its memory


class SqlMatcher(CandidateMatcher):
    """Store subscriptions as rows of a database; one statement matches a batch of events.

    Tally: `predicates` has the rows whose attribute an event binds, `nodes` the statements.
    """

    file: ClassVar[str]  # the file with the statements
    counts_twice: ClassVar[bool]  # whether a predicate may count once per value of an attribute

    database = choice("duckdb", "the database that holds the subscriptions", "duckdb", "postgresql")
    dsn: Option[str | None] = Option(
        None,
        f"connection to PostgreSQL; without one, what the variable {DSN} says",
        values="a connection string",
        valid=lambda value: value is None or isinstance(value, str),
        saved=False,  # it may hold a password
    )
    threads = whole_number(1, "threads of DuckDB", least=1, most=256)
    statement = choice("join", "how events reach the database", "join", "per-event")

    _database: Database | None = None

    def check_options(self) -> None:
        if self.dsn is not None and self.database != "postgresql":
            raise MatcherError("dsn is for PostgreSQL; set database='postgresql' as well")
        if self.threads > 1 and self.database != "duckdb":
            raise MatcherError("threads is for DuckDB; PostgreSQL sets its own parallelism")

    def clear(self) -> None:
        super().clear()
        if self._database is None:
            self._database = self._open()
        else:
            self._database.clear()
        self._compared: Int64s | None = np.zeros(0, np.int64)  # predicates by attribute, if known

    def _open(self) -> Database:
        module, name = {
            "duckdb": ("tamis.match.topss.sql.duck", "Duck"),
            "postgresql": ("tamis.match.topss.sql.postgres", "Postgres"),
        }[self.database]
        try:
            made = getattr(importlib.import_module(module), name)
        except ImportError as error:
            raise MatcherError(
                f"{error.name} is not installed; run pip install 'tamis[sql]'"
            ) from error
        database = made(self.file, self.threads if self.database == "duckdb" else self.dsn)
        assert isinstance(database, Database)
        return database

    @property
    def _tables(self) -> Database:
        assert self._database is not None
        return self._database

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._tables.nbytes

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_database": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild the database rows from the pickled table of clauses."""
        self.__dict__.update(state)
        self.rebuild()

    def chunk_size(self) -> int:
        return max(1, _COMPARISONS // max(1, self._tables.rows))

    def candidates(self, pairs: Pairs) -> tuple[Int64s, Int64s]:
        n = len(pairs.starts) - 1
        events: Columns = {
            "event": np.repeat(np.arange(n, dtype=np.int32), np.diff(pairs.starts)),
            "attr": pairs.attribute,
            "val": pairs.code,
        }
        event, slots = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if self._tables.rows and len(pairs.code):
            if self.statement == "per-event":
                event, slots = self._tables.match_each(events)
                self.tally.nodes += int((np.diff(pairs.starts) > 0).sum())
            else:
                event, slots = self._tables.match(events)
                self.tally.nodes += 1
            self._count_compared(pairs.attribute)
        self.tally.subscriptions += len(slots)
        return offsets(np.bincount(event, minlength=n)), slots[np.argsort(event, kind="stable")]

    def _count_compared(self, attribute: Int32s) -> None:
        """Tally the predicates that the statement compared; queried once after each change."""
        if self._compared is None:
            self._compared = np.zeros(self.clauses.width, np.int64)
            for attr, predicates in self._tables.ask("compared"):
                self._compared[attr] = predicates
        known = attribute[attribute < len(self._compared)]
        self.tally.predicates += int(self._compared[known].sum())

    def check(self) -> None:
        super().check()
        live = self.clauses.live_slots()
        found = elementary_predicates(self.clauses.view, live)
        sid = np.repeat(live, np.diff(found.starts))
        columns = (sid, found.attribute, found.comparator, found.constant)
        wanted = sorted(zip(*(column.tolist() for column in columns), strict=True))
        assert sorted(self._tables.ask("dump")) == wanted, "rows and clauses agree"
        assert self._tables.rows == len(wanted)

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        found = elementary_predicates(self.clauses.view, slots)
        counts = np.diff(found.starts)
        if len(found.constant):
            self._tables.insert(
                {
                    "sid": np.repeat(slots, counts).astype(np.int32),
                    "attr": found.attribute,
                    "op": found.comparator.astype(np.int16),
                    "val": found.constant,
                    "total": np.repeat(counts, counts).astype(np.int32),
                }
            )
        self._note(slots, counts > 0, self._exactness(found.exact))
        self._compared = None

    def drop_clauses(self, slots: Slots) -> None:
        found = elementary_predicates(self.clauses.view, slots)
        counts = np.diff(found.starts)
        if len(found.constant):
            self._tables.delete(slots, len(found.constant))
        self._forget(slots, counts > 0)
        self._compared = None

    def _exactness(self, exact: Int8s) -> Int8s:
        return np.maximum(exact, IF_SINGLE).astype(np.int8) if self.counts_twice else exact
