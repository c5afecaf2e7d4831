"""The log: events, subscription changes and schema records in one sequence, in one folder.

    LOG/tamis-log.json      format, identity, schema, type of ids
    LOG/segments/           segments, named by first sequence number (see `segment` and `pack`)
    LOG/head                where the log ends (see `head`)
    LOG/base                after `trim`: the subscriptions that were live where the log now begins
    LOG/lock                held by the process that appends
    LOG/serving             held by a service: while it runs, nobody else appends
    LOG/compacting          held by the process that merges packs or trims the log

An append adds one pack to the last segment and syncs it. Then it updates the head. The log contains
a pack completely or not at all. The next process that appends removes what a killed process left.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tamis.errors import StoreError
from tamis.files.json_document import write_json
from tamis.files.lock import locked
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder, sync_folder
from tamis.model.schema import Schema
from tamis.store import changes as change_tables
from tamis.store import published
from tamis.store.base import BASE, Base, live_changes, read_base, write_base
from tamis.store.compaction import merge
from tamis.store.document import read_document, signed
from tamis.store.earlier.format_one import FormatOneFiles
from tamis.store.head import CLEAN, Head, create_head, this_boot
from tamis.store.log_locks import COMPACTING, LOCK, LogLocks
from tamis.store.pack import CHANGES, EVENTS, SCHEMAS, encode_table, first_chain, microseconds
from tamis.store.schema_records import SchemaRange, SchemaRecords
from tamis.store.segment_files import HEAD, SegmentFiles
from tamis.store.subscription_snapshot import SubscriptionSnapshot

FORMAT = 2
DOCUMENT, SEGMENTS = "tamis-log.json", "segments"


class LogSection(Protocol):
    """Rows of one kind that were appended together, or merged."""

    @property
    def first(self) -> int:
        """The sequence number of the first row."""

    @property
    def end(self) -> int:
        """The sequence number after the last row."""

    @property
    def kind(self) -> str:
        """What the rows are, such as `EVENTS`."""


class Appended(NamedTuple):
    """The sequence numbers of a pack."""

    events: range
    changes: range
    schemas: range


class Log:
    """Events and changes on disk, in the order of their sequence numbers.

    Several processes may append, and any number may read meanwhile. A pickled log is the path of
    its folder.

    >>> import tempfile; place = tempfile.TemporaryDirectory()
    >>> log = Log.create(place.name, {"attributes": {"price": "decimal"},
    ...                               "event_types": {"offer": {"price": "mandatory"}}})
    >>> log.change(change_tables.subscribe(["ann"], ["price < 5"]))
    range(0, 1)
    >>> log.publish(pa.table({"price": [4.0, 6.0]}))
    range(1, 3)
    >>> log.counts(0, log.end)
    (2, 1)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        document: Mapping[str, Any],
        files: SegmentFiles | None = None,
    ) -> None:
        self.folder = Path(folder).absolute()
        self.format: int = document["format"]
        self.ids: str = document["ids"]
        self.identity: str | None = document.get("log")  # unique to this log
        self.is_copy = "copy" in document and files is None  # of a log in a database
        self._locks = LogLocks(self.folder)
        self._files: SegmentFiles | FormatOneFiles
        if self.format == 1:
            self._files = FormatOneFiles(self.folder / SEGMENTS)
        else:
            self._files = files or segment_files(self.folder, str(self.identity))
        self._schemas = SchemaRecords(self._files, self._base, document["schema"])

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        schema: Mapping[str, Any] | Schema,
        ids: str = "text",
    ) -> Log:
        """Create an empty log. `schema` is a schema or its document; `ids` is "text" or "int64".

        In a log with "int64", a subscribe without an id gets its own sequence number as its id.
        """
        if ids not in change_tables.ID_TYPES:
            raise StoreError(f"the ids of a log are 'text' or 'int64', not {ids!r}")
        known = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
        place = Path(folder).absolute()
        with os_errors_as(StoreError, f"{place}: a log cannot be created here"):
            make_folder(place / SEGMENTS)
            with locked(place / LOCK):
                if (place / DOCUMENT).exists():
                    raise StoreError(f"{place}: there is a log already; open it with Log.open")
                if any((place / SEGMENTS).iterdir()):
                    raise StoreError(
                        f"{place}: has segments but no {DOCUMENT}; choose another folder, or put "
                        "the file back"
                    )
                identity = secrets.token_hex(16)
                document = {
                    "format": FORMAT,
                    "log": identity,
                    "schema": known.to_dict(),
                    "ids": ids,
                }
                create_head(place / HEAD, new_head(identity))
                write_json(place / DOCUMENT, signed(document))
            sync_folder(place.parent)
        return cls(place, document)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Log:
        """Open the log in a folder; a `StoreError` says what is there instead."""
        path = Path(folder).absolute() / DOCUMENT
        document = read_document(path, FORMAT)
        if not (path.parent / SEGMENTS).is_dir():
            raise StoreError(f"{path.parent}: is damaged, the folder {SEGMENTS!r} is missing")
        return cls(folder, document)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Log.open, (self.folder,))

    def __repr__(self) -> str:
        return f"Log({str(self.folder)!r})"

    # -- appending -------------------------------------------------------------------------------

    def publish(self, events: Any) -> range:
        """Append events and return their sequence numbers. They are on disk when this returns.

        `events` is a table with a column for each attribute, or with one column `json` of texts.
        It may also have reserved columns (see `published`). Only the form of the table is checked
        here. Readers of the log turn invalid events into dead letters.
        """
        return self.append(events=events).events

    def change(self, table: Any) -> range:
        """Append changes and return their sequence numbers. They are on disk when this returns.

        The functions `subscribe`, `renew`, `cancel` and `expire` build such tables.
        """
        return self.append(changes=table).changes

    def extend(self, schema: Schema) -> int:
        """Append a schema and return its sequence number. It is on disk when this returns.

        It applies to the rows after it: events and conditions are read by the schema of their
        number. It must extend the schema before it, by the methods of `Schema`.
        """
        if not isinstance(schema, Schema):
            raise StoreError(f"expected a Schema, got {type(schema).__name__}")
        self._schemas.check_new(schema)
        return self.append(schema=schema).schemas.start

    def append(
        self,
        *,
        events: Any = None,
        changes: Any = None,
        schema: Schema | None = None,
        moment: int | None = None,
    ) -> Appended:
        """Append events, changes and a schema as one pack: the whole pack is on disk, or nothing.

        They get their sequence numbers in this order. The schema applies to the rows after it. It
        must extend the previous schema. `moment` is the time of the pack, in microseconds since
        1970; the default is the system's.
        """
        rows = (
            None if events is None else published.validate(events),
            None if changes is None else change_tables.validate(changes, self.ids),
            schema,
        )
        with self._locks.appending():
            return self._append(*rows, moment)

    def _append(
        self,
        events: pa.Table | None,
        changes: pa.Table | None,
        schema: Schema | None,
        moment: int | None = None,
    ) -> Appended:
        """Append what was checked. The caller holds the lock."""
        if self.is_copy:
            raise StoreError(f"{self.folder}: is a copy of a log in a database, and only read")
        if not isinstance(self._files, SegmentFiles):
            raise StoreError(
                f"{self.folder}: has format {self.format}, which is only read; run `tamis log "
                f"upgrade {self.folder}` first"
            )
        sections = {}
        if events is not None and events.num_rows:
            sections[EVENTS] = events.num_rows, encode_table(events)
        if changes is not None and changes.num_rows:
            if changes["id"].null_count:
                first = self._files.ready().end + (0 if events is None else events.num_rows)
                changes = change_tables.numbered(changes, first)
            sections[CHANGES] = changes.num_rows, encode_table(change_tables.without_nulls(changes))
        if schema is not None:
            # Not the head as it is: a killed process may have appended a record.
            sections[SCHEMAS] = self._schemas.section(schema, self._files.ready().schema)
        moment = microseconds(datetime.now(UTC)) if moment is None else moment
        numbers = self._files.append(sections, moment)
        ranges = []
        first = numbers.start
        for kind in (EVENTS, CHANGES, SCHEMAS):
            count = sections[kind][0] if kind in sections else 0
            ranges.append(range(first, first + count))
            first += count
        return Appended(*ranges)

    def expire(self, snapshot: SubscriptionSnapshot, now: datetime) -> range:
        """Append an expire for every lease that has ended.

        This first brings `snapshot` up to date, under the lock. So no subscription expires after
        its renewal was acknowledged.
        """
        with self._locks.appending():
            end = self._files.ready().end if isinstance(self._files, SegmentFiles) else self.end
            snapshot.fold(self.changes(snapshot.sequence, end), end)
            ended = change_tables.validate(change_tables.expire(snapshot.due(now)), self.ids)
            return self._append(None, ended, None).changes

    def served(self) -> AbstractContextManager[None]:
        """Let nobody else append during the block; others may read, merge and trim."""
        return self._locks.served()

    def settle(self) -> int:
        """Decide what a killed process left behind, and return the end of the log.

        A whole pack that was not acknowledged becomes part of the log, a torn one is removed. The
        next append would do the same.
        """
        with self._locks.appending():
            return self._files.ready().end if isinstance(self._files, SegmentFiles) else self.end

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep others from appending, merging and trimming."""
        with (
            self._locks.held(COMPACTING, "cannot be changed"),
            self._locks.held(LOCK, "cannot be changed"),
        ):
            yield
            if isinstance(self._files, SegmentFiles):
                self._files.forget()

    def compact(self, before: int, rows: int = 100_000) -> int:
        """Merge neighbouring packs that end at or before a sequence number.

        Merged packs have at most `rows` rows. Others can append and read meanwhile.
        Processes that have mapped an old segment keep it. Returns how many fewer packs there are.
        """
        if not isinstance(self._files, SegmentFiles):
            return 0
        with self._locks.held(COMPACTING, "cannot be compacted"):
            return merge(self._files, before, rows)

    # -- reading ---------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The next sequence number."""
        return self._files.end

    @property
    def begin(self) -> int:
        """The first sequence number that is kept: 0, unless the log was trimmed."""
        return self._files.begin

    @property
    def schema(self) -> dict[str, Any]:
        """The document of the schema that holds at the end."""
        return self.schema_at().to_dict()

    def counts(self, start: int, end: int | None = None) -> tuple[int, int]:
        """Count the events and the changes from `start` to before `end`."""
        return self._files.counts(start, self._checked_end(start, end))

    def boundaries(self, start: int = 0, end: int | None = None) -> Sequence[LogSection]:
        """Return the rows of one kind that lie together, from `start` to before `end`."""
        return self._files.sections(start, self._checked_end(start, end))

    def events(self, start: int, end: int | None = None) -> Iterator[tuple[int, pa.Table]]:
        """Yield the events from `start` to before `end`: first sequence number and table, in turn.

        The tables are mapped and shared between processes. The function `appended` returns when a
        table was appended.
        """
        return self._files.tables(EVENTS, start, self._checked_end(start, end))

    def changes(self, start: int, end: int | None = None, *, details: bool = False) -> pa.Table:
        """Return the changes from `start` to before `end`; the first column is the sequence.

        If `start` is 0, a trimmed log returns a subscribe for each subscription that was live where
        the log now begins. With `details`, all columns are there; otherwise, only those that
        matching needs.
        """
        names = change_tables.ALL if details else change_tables.COLUMNS
        wanted = change_tables.change_schema(self.ids, names)
        wanted = wanted.insert(0, pa.field("sequence", pa.int64()))
        tables = [wanted.empty_table()]
        stop = self._checked_end(start, end)
        if start == 0 and (base := self._base()) is not None:
            tables.append(change_tables.completed(base.changes, wanted))
        for first, table in self._files.tables(CHANGES, max(start, self.begin), stop):
            numbers = pa.array(np.arange(first, first + table.num_rows, dtype=np.int64))
            named = table.replace_schema_metadata(None).add_column(0, "sequence", numbers)
            tables.append(change_tables.completed(named, wanted))
        return pa.concat_tables(tables).combine_chunks()

    def schema_at(self, sequence: int | None = None) -> Schema:
        """The schema for reading the row with a sequence number; None stands for the next row."""
        return self._schemas.at(sequence)

    def schemas(self, start: int = 0, end: int | None = None) -> list[SchemaRange]:
        """The schemas by which the rows of a range are read, each with its part of the range."""
        return self._schemas.ranges(start, self._checked_end(start, end))

    def _checked_end(self, start: int, end: int | None) -> int:
        """The end of a range; raises `StoreError` for a range that the log does not have."""
        last = self._files.end
        end = last if end is None else end
        if not 0 <= start <= end <= last:
            raise StoreError(
                f"{self.folder}: has no range from {start} to {end}; the log ends at {last}"
            )
        if 0 < start < self.begin:
            raise StoreError(
                f"{self.folder}: was trimmed; the first sequence number that it keeps is "
                f"{self.begin}, and {start} was asked for"
            )
        return end

    # -- trimming --------------------------------------------------------------------------------

    def trim(self, before: int) -> int:
        """Delete segments that end at or before a number, and return where the log now begins.

        The base of the log keeps the subscriptions that are live there. Only whole segments are
        deleted, so the log may begin before the given number.
        """
        files = self._files
        if not isinstance(files, SegmentFiles):
            raise StoreError(f"{self.folder}: has format 1; run `tamis log upgrade` first")
        with self._locks.held(COMPACTING, "cannot be trimmed"):
            begin = max(
                (first for first in files.list_names() if first <= min(before, files.end)),
                default=0,
            )
            if begin > files.begin:
                changes = live_changes(self.changes(0, begin, details=True), begin)
                (segment,) = files.covering(begin, begin + 1)
                number = segment.sections[0].schema
                document = self._schemas.document(number)
                earlier = self._schemas.earlier(changes, begin, number)
                base = Base(begin, number, segment.chain_before, changes, document, earlier)
                now = microseconds(datetime.now(UTC))
                write_base(self.folder / BASE, base, files.identity, now)
            files.delete_before(files.begin)
            return files.begin

    def _base(self) -> Base | None:
        files = self._files
        if isinstance(files, FormatOneFiles) or not files.begin:
            return None
        schema = change_tables.change_schema(self.ids, change_tables.ALL)
        empty = schema.insert(0, pa.field("sequence", pa.int64())).empty_table()
        return read_base(self.folder / BASE, files.identity, empty)


def segment_files(folder: Path, identity: str) -> SegmentFiles:
    """The segments of the log in a folder."""
    return SegmentFiles(folder / SEGMENTS, folder / HEAD, folder / BASE, bytes.fromhex(identity))


def new_head(identity: str) -> Head:
    """The head of an empty log."""
    name = bytes.fromhex(identity)
    return Head(name, 0, CLEAN, 0, 0, 0, 0, -1, first_chain(name), this_boot())
