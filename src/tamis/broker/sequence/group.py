"""The requests of one commit, and the tables that they add to the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tamis.broker import metrics
from tamis.broker.sequence.requests import Publish, PublishedEvent, Request, Row
from tamis.errors import BrokerError
from tamis.model.schema import Schema
from tamis.store.changes import ALL, EXPIRE, change_schema
from tamis.store.log import Appended, Log
from tamis.store.published import JSON, RESERVED


class CommitGroup:
    """The requests of one commit, and what they add to the log."""

    def __init__(self, ids: str) -> None:
        self._row_schema = change_schema(ids, ALL)
        self.events: list[PublishedEvent] = []
        self.rows: list[Row] = []
        self.tables: list[pa.Table] = []  # of changes that come after the rows
        self.schema: Schema | None = None
        self.touched: set[Any] = set()  # ids and request keys: each at most once in a group
        self.subscribed: dict[str | None, int] = {}  # by owner
        # Called with the pack, once it is on disk:
        self.answers: list[Callable[[Appended], None]] = []
        self.requests: list[Request[Any]] = []

    def add_events(self, events: Iterable[PublishedEvent]) -> None:
        """Add events, unless Arrow cannot hold them: that must not stop the others' commit."""
        given = list(events)
        with _refusals():
            _event_columns(given)
        self.events += given

    def add_rows(self, rows: list[Row]) -> None:
        """Add changes, unless Arrow cannot hold them."""
        with _refusals():
            pa.Table.from_pylist(rows, self._row_schema)
        self.rows += rows

    def event_table(self) -> pa.Table | None:
        return pa.table(_event_columns(self.events)) if self.events else None

    def change_table(self) -> pa.Table | None:
        """All changes; None without changes."""
        rows = [pa.Table.from_pylist(self.rows, self._row_schema)] if self.rows else []
        return pa.concat_tables([*rows, *self.tables]) if rows or self.tables else None

    def append_to(self, log: Log, moment: int) -> Appended:
        """Append the group to a log as one pack, and count it."""
        with metrics.COMMIT_SECONDS.time():
            numbers = log.append(
                events=self.event_table(),
                changes=self.change_table(),
                schema=self.schema,
                moment=moment,
            )
        self._count()
        return numbers

    def _count(self) -> None:
        publishes = sum(isinstance(each, Publish) for each in self.requests)
        metrics.PUBLISHES.inc(publishes)
        metrics.EVENTS.inc(len(self.events))
        metrics.EVENT_BYTES.inc(sum(map(_bytes, self.events)))
        metrics.CHANGES.inc(len(self.rows))
        metrics.LEASES_ENDED.inc(sum(row["kind"] == EXPIRE for row in self.rows))
        metrics.GROUP_ROWS.observe(len(self.events) + len(self.rows))


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as why:
        raise BrokerError(f"the log cannot hold this: {why}") from None


def _bytes(event: PublishedEvent) -> int:
    return len(event.text) if event.text.isascii() else len(event.text.encode())


def _event_columns(events: list[PublishedEvent]) -> dict[str, pa.Array]:
    columns = {JSON: pa.array([event.text for event in events], pa.string())}
    given: dict[str, list[Any]] = {
        "$source": [event.source for event in events],
        "$id": [event.id for event in events],
        "$time": [event.time for event in events],
        "$envelope": [event.envelope for event in events],
    }
    for name, values in given.items():
        if any(value is not None for value in values):
            columns[name] = pa.array(values, RESERVED[name])
    return columns
