"""The log: events and changes of subscriptions in one sequence, in one folder.

    LOG/tamis-log.json      format, schema, type of ids
    LOG/segments/           Arrow IPC files, named by first sequence number, count and kind
    LOG/lock                held by the process that appends
    LOG/compacting          held by the process that merges segments

A segment is written under a name that readers ignore, synced, and renamed: it is in the log
complete or not at all. The next process that appends deletes what a killed one left behind.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import StoreError
from tamis.files.atomic import atomic_file
from tamis.files.json_document import read_json, write_json
from tamis.files.lock import locked
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder, sync_folder
from tamis.model.schema import Schema
from tamis.store import changes, segments
from tamis.store.compaction import merge
from tamis.store.segments import CHANGES, EVENTS, GapError, Listing, Segment, unpack
from tamis.store.subscription_snapshot import SubscriptionSnapshot

FORMAT = 1
DOCUMENT, SEGMENTS, LOCK, COMPACTING = "tamis-log.json", "segments", "lock", "compacting"
_APPENDING = ".append-"  # prefix of unfinished files
# Some file systems keep a folder's time in steps of up to 10 ms: a folder that changed just now may
# change again with the same time.
_SETTLED = 50_000_000  # nanoseconds
_ATTEMPTS = 20
_EMPTY = Listing()


class Log:
    """Events and changes on disk, in the order of their sequence numbers.

    Several processes may append, and any number may read meanwhile. A pickled log is the path of
    its folder.

    >>> import tempfile; place = tempfile.TemporaryDirectory()
    >>> log = Log.create(place.name, {"attributes": {"price": "decimal"},
    ...                               "event_types": {"offer": {"price": "mandatory"}}})
    >>> log.change(changes.subscribe(["ann"], ["price < 5"]))
    range(0, 1)
    >>> log.publish(pa.table({"price": [4.0, 6.0]}))
    range(1, 3)
    >>> log.counts(0, log.end)
    (2, 1)
    """

    def __init__(self, folder: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
        self.folder = Path(folder).absolute()
        self.schema: dict[str, Any] = document["schema"]
        self.ids: str = document["ids"]
        self.identity: str | None = document.get("log")  # unique to this log
        self._segments = self.folder / SEGMENTS
        self._seen = _Seen(_EMPTY, None)
        self._packs: dict[str, list[Segment]] = {}  # the content of each, which never changes
        self._tail: tuple[bytes, int] | None = None  # token of its last append, and the end after

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        schema: Mapping[str, Any] | Schema,
        ids: str = "text",
    ) -> Log:
        """Create an empty log. `schema` is a schema or its document; `ids` is "text" or "int64"."""
        if ids not in changes.ID_TYPES:
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
                document = {
                    "format": FORMAT,
                    "log": secrets.token_hex(16),
                    "schema": known.to_dict(),
                    "ids": ids,
                }
                write_json(place / DOCUMENT, document)
            sync_folder(place.parent)
        return cls(place, document)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Log:
        """Open the log in a folder; a `StoreError` says what is there instead."""
        path = Path(folder).absolute() / DOCUMENT
        document = read_json(path, "a log", StoreError, newest=FORMAT)
        if not isinstance(document.get("schema"), dict) or document.get("ids") not in (
            *changes.ID_TYPES,
        ):
            raise StoreError(f"{path}: is damaged, it lacks 'schema' or 'ids'")
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
        Events are not validated here: readers of the log turn bad ones into dead letters.
        """
        table = changes.arrow_table(events, "events")
        if not table.num_columns:
            raise StoreError("the events have no columns; expected one for each attribute")
        return self._append(EVENTS, table)

    def change(self, table: Any) -> range:
        """Append changes and return their sequence numbers. They are on disk when this returns.

        The functions `subscribe`, `renew`, `cancel` and `expire` build such tables.
        """
        return self._append(CHANGES, changes.validate(table, self.ids))

    def expire(self, snapshot: SubscriptionSnapshot, now: datetime) -> range:
        """Append an expire for every lease that has ended.

        First `snapshot` is brought up to date, under the lock: so no subscription expires after
        its renewal was acknowledged.
        """
        with self._locked(LOCK, "cannot be appended to") as lock:
            end = self._locked_end(lock)
            snapshot.fold(self.changes(snapshot.sequence, end), end)
            rows = changes.validate(changes.expire(snapshot.due(now)), self.ids)
            return self._append_locked(lock, CHANGES, rows)

    @contextmanager
    def _locked(self, name: str, failure: str) -> Iterator[int]:
        what = f"{self.folder}: {failure}"
        with os_errors_as(StoreError, what), locked(self.folder / name) as lock:
            yield lock

    def _append(self, kind: str, table: pa.Table) -> range:
        with self._locked(LOCK, "cannot be appended to") as lock:
            return self._append_locked(lock, kind, table)

    def _append_locked(self, lock: int, kind: str, table: pa.Table) -> range:
        segment = Segment(self._locked_end(lock), table.num_rows, kind)
        if not segment.rows:
            return range(segment.first, segment.first)
        # Before anything else: if this process dies halfway, the next one must list the folder.
        self._tail, token = None, secrets.token_bytes(8)
        os.pwrite(lock, token, 0)
        temporary = self._segments / f"{_APPENDING}{token.hex()}"
        # If the last sync fails, the rows stay: somebody may have read them already.
        with atomic_file(self._segments / segment.name, temporary=temporary) as file:
            segments.write(file, table)
        self._tail = token, segment.end
        return range(segment.first, segment.end)

    def _locked_end(self, lock: int) -> int:
        """Return the end of the log. The caller holds the lock.

        The file of the lock has the token of the last append. If that was by this object, it knows
        the end without a listing, which takes 30 ms for 50,000 segments; an append takes 0.5 ms.
        """
        if self._tail is not None and os.pread(lock, 8, 0) == self._tail[0]:
            return self._tail[1]
        # A merge of the last files may overtake the first listing, which then ends too early. The
        # merged file is in place before the others go, so the second listing has it.
        self._list()
        listing, names = self._list()
        for name in names:
            if name.startswith(_APPENDING):  # of a dead process: nobody else has the lock
                (self._segments / name).unlink(missing_ok=True)
        return listing.end

    def compact(self, before: int, rows: int = 100_000) -> int:
        """Merge neighbouring files that end at or before a sequence number.

        Merged files have at most `rows` rows. Appending and reading go on meanwhile; processes
        that have an old file mapped keep it. Returns by how many files there are less.
        """
        with self._locked(COMPACTING, "cannot be compacted"):
            return merge(self._segments, self._list()[0], before, rows)

    # -- reading ---------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The next sequence number, which is the number of events and changes so far."""
        return self._current().end

    def counts(self, start: int, end: int | None = None) -> tuple[int, int]:
        """Count the events and the changes from `start` to before `end`."""
        listing, end = self._covering(start, end)
        return listing.counts(start, end)

    def boundaries(self, start: int = 0, end: int | None = None) -> list[Segment]:
        """Return the segments with a row from `start` to before `end`; no file is opened."""
        listing, end = self._covering(start, end)
        return list(listing.within(start, end))

    def events(self, start: int, end: int | None = None) -> Iterator[tuple[int, pa.Table]]:
        """Yield the events from `start` to before `end`: first sequence number and table, in turn.

        The tables are mapped and shared between processes. `appended` returns when one was
        appended.
        """
        listing, end = self._covering(start, end)  # at once, not when iteration begins
        return self._rows(EVENTS, listing, start, end)

    def changes(self, start: int, end: int | None = None) -> pa.Table:
        """Return the changes from `start` to before `end`; the first column is the sequence."""
        wanted = changes.change_schema(self.ids).insert(0, pa.field("sequence", pa.int64()))
        tables = [wanted.empty_table()]
        listing, end = self._covering(start, end)
        for first, table in self._rows(CHANGES, listing, start, end):
            numbers = pa.array(np.arange(first, first + table.num_rows, dtype=np.int64))
            named = table.replace_schema_metadata(None).add_column(0, "sequence", numbers)
            if not named.schema.equals(wanted):
                raise StoreError(f"{self.folder}: the segment at {first} does not hold changes")
            tables.append(named)
        return pa.concat_tables(tables).combine_chunks()

    def _rows(
        self, kind: str, listing: Listing, start: int, end: int
    ) -> Iterator[tuple[int, pa.Table]]:
        attempts = 0
        while start < end:
            try:
                for segment in listing.within(start, end):
                    if segment.kind == kind:
                        table = segments.read(self._segments, segment)
                        first, last = max(start, segment.first), min(end, segment.end)
                        yield first, table.slice(first - segment.first, last - first)
                    start, attempts = min(end, segment.end), 0
            except FileNotFoundError as why:  # merged meanwhile
                attempts += 1
                if attempts == _ATTEMPTS:
                    raise StoreError(f"{why.filename}: is missing from the log") from None
                self._list()
                listing, end = self._covering(start, end)

    # -- listing ---------------------------------------------------------------------------------

    def _covering(self, start: int, end: int | None) -> tuple[Listing, int]:
        """Return a listing that covers a range: the known one if possible."""
        known = self._seen.listing
        if end is None or end > known.end:
            known = self._current()
            end = known.end if end is None else end
        if not 0 <= start <= end <= known.end:
            raise StoreError(
                f"{self.folder}: has no range from {start} to {end}; the log ends at {known.end}"
            )
        return known, end

    def _current(self) -> Listing:
        """Return the current listing; the folder is read again only if it changed."""
        with os_errors_as(StoreError, f"{self._segments}: cannot be read"):
            stat = self._segments.stat()
        seen = self._seen
        return seen.listing if seen.stamp == _stamp(stat) else self._list()[0]

    def _list(self) -> tuple[Listing, set[str]]:
        """Read the folder; return its segments and the names of all files."""
        known = self._seen.listing
        reached = known.end
        for attempt in range(_ATTEMPTS):
            with os_errors_as(StoreError, f"{self._segments}: cannot be read"):
                stat, now = self._segments.stat(), time.time_ns()
                names = names_in(self._segments)
                # A power cut must not undo what a reader has seen.
                sync_folder(self._segments)
            try:
                listing = self._after(known, names)
                if listing.end < reached:  # a merge of the last files overtook it
                    raise GapError(f"it ends at {listing.end}, and ended at {reached} before")
            except GapError as why:
                gap, known = why, _EMPTY
                time.sleep(0.001 * attempt)
                continue
            self._packs = {name: self._packs[name] for name in names & self._packs.keys()}
            settled = now - stat.st_mtime_ns > _SETTLED
            self._seen = _Seen(listing, _stamp(stat) if settled else None)
            return listing, names
        raise StoreError(f"{self.folder}: is damaged: {gap}")

    def _after(self, known: Listing, names: set[str]) -> Listing:
        """Return the listing of all names; extend an earlier one if files were only appended.

        Raises `GapError` if files were merged while the system listed the folder.
        """
        fresh = segments.named(names - known.names)
        if not known.names <= names or any(file.first < known.end for file in fresh.values()):
            known, fresh = _EMPTY, segments.named(names)  # some were merged since
        return known.extended(fresh, self._unpack) if fresh else known

    def _unpack(self, name: str) -> list[Segment]:
        found = self._packs.get(name)
        if found is None:
            try:
                found = self._packs[name] = unpack(self._segments, name)
            except FileNotFoundError:
                raise GapError(f"{name} is missing") from None
        return found


class _Seen(NamedTuple):
    """The folder as it was last seen. Replaced as a whole, because threads share it."""

    listing: Listing
    stamp: tuple[int, int] | None  # of the folder; None if a later change may not alter it


def _stamp(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_ino, stat.st_mtime_ns
