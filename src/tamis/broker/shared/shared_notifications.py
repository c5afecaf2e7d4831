"""Notifications in PostgreSQL, with copies of them in files.

One service matches, and inserts what it found: the files of a range as rows, in the transaction
that moves `matched` from the start of the range to its end. If `matched` is not where the service
believes it to be, another one has gone on meanwhile, and nothing of the range is stored. The other
services copy the files.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.broker.matching.notification_files import NotificationFiles, NotificationPairs
from tamis.errors import StoreError
from tamis.files.atomic import atomic_file
from tamis.files.names import plain_name
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder
from tamis.replay.coverage import drop_lost
from tamis.replay.matching_shifts import SupersededError
from tamis.replay.parts import DEAD, NOTIFICATIONS
from tamis.store.postgresql.session import Connection, Session

MATCHED = "tamis_matched"  # the channel on which new notifications are told
_QUERY = "shared"
_AT_ONCE = 16  # ranges that are copied at once


class SharedNotifications(NotificationFiles):
    """The notifications of a log in a database, and their copy in a folder."""

    def __init__(self, folder: Path, ids: pa.DataType, session: Session, end: int) -> None:
        drop_lost(folder, 0)  # what is missing is copied again
        super().__init__(folder, ids)
        self._session = session
        with session.transaction() as base:
            row = base.execute("SELECT matched FROM matching").fetchone()
        if row is None or row[0] < self.matched:
            raise StoreError(
                f"{folder}: has notifications up to {self.matched:,}, and {session.name} has fewer:"
                " it was put back from a backup; `tamis serve --rebuild` copies them anew"
            )
        self.follow(end)

    def write_shared(
        self, start: int, end: int, found: list[NotificationPairs], dead: list[pa.Table]
    ) -> None:
        """Store the notifications and dead letters of a range for all services.

        Raises `SupersededError` if another service has stored some of them.
        """
        parts = self.write_parts(_QUERY, found, dead)
        try:
            with self._session.transaction() as base:
                moved = base.execute(
                    "UPDATE matching SET matched = %s WHERE matched = %s", (end, start)
                )
                if not moved.rowcount:
                    raise SupersededError(f"another service has matched from {start:,} on")
                self._insert(base, start, end, parts)
        except BaseException:
            for part in parts:
                with suppress(OSError):
                    self._path(part).unlink()
            raise
        self.commit(_QUERY, start, end, parts)

    def _insert(self, base: Connection, start: int, end: int, parts: list[dict[str, Any]]) -> None:
        base.execute('INSERT INTO ranges (start, "end") VALUES (%s, %s)', (start, end))
        for part in parts:
            base.execute(
                "INSERT INTO parts (start, folder, name, rows, content) "
                "VALUES (%s, %s, %s, %s, %s)",
                (start, part["folder"], part["name"], part["rows"], self._path(part).read_bytes()),
            )
        base.execute("SELECT pg_notify(%s, %s)", (MATCHED, str(end)))

    def follow(self, last: int) -> int:
        """Copy what other services have found up to a number; returns where the copy ends."""
        while True:
            with self._session.transaction() as base:
                ranges = base.execute(
                    'SELECT start, "end" FROM ranges WHERE start >= %s AND "end" <= %s '
                    "ORDER BY start LIMIT %s",
                    (self.matched, last, _AT_ONCE),
                ).fetchall()
                rows: list[tuple[Any, ...]] = []
                if ranges:
                    cursor = base.cursor(binary=True)
                    cursor.execute(
                        "SELECT start, folder, name, rows, content FROM parts "
                        "WHERE start BETWEEN %s AND %s",
                        (ranges[0][0], ranges[-1][0]),
                    )
                    rows = cursor.fetchall()
            for start, end in ranges:
                if start != self.matched and self._covered:
                    raise StoreError(
                        f"{self._session.name}: the notifications from {self.matched:,} to "
                        f"{start:,} are not kept any more; `tamis serve --rebuild` copies the rest"
                    )
                self._copy(start, end, [row[1:] for row in rows if row[0] == start])
            if len(ranges) < _AT_ONCE:
                return self.matched

    def note_removal(self) -> None:
        """Remove from the database what this copy does not keep any more."""
        with self._session.transaction() as base:
            old = 'SELECT start FROM ranges WHERE "end" <= %s'
            base.execute(f"DELETE FROM parts WHERE start IN ({old})", (self.begin,))
            base.execute('DELETE FROM ranges WHERE "end" <= %s', (self.begin,))

    def _copy(self, start: int, end: int, rows: list[tuple[Any, ...]]) -> None:
        parts = []
        for folder, name, count, content in rows:
            if folder not in (NOTIFICATIONS, DEAD):
                raise StoreError(f"{self._session.name}: is damaged, a part lies in {folder!r}")
            plain_name(name, f"{self._session.name}: is damaged, a part", StoreError)
            part = {"folder": folder, "name": name, "rows": count}
            path = self._path(part)
            with os_errors_as(StoreError, f"{path}: cannot be written"):
                make_folder(path.parent)
                with atomic_file(path) as file:
                    file.write(content)
            parts.append(part)
        self.commit(_QUERY, start, end, parts)

    def _path(self, part: dict[str, Any]) -> Path:
        return self.folder / str(part["folder"]) / str(part["name"])
