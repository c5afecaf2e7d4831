"""Move a data folder into a PostgreSQL database, and back: the log, notifications and records.

No service runs meanwhile. Packs and parts are moved byte by byte, so sequence numbers, ids, tickets
and cursors stay what they are. What is derived is derived again where it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tamis.broker.data_folder import DataFolder
from tamis.broker.delivery.outbox import CURSORS
from tamis.broker.maintenance.own_folder import own_folder
from tamis.broker.shared.shared_notifications import SharedNotifications
from tamis.broker.state import State
from tamis.errors import BrokerError, counted
from tamis.files.json_document import read_object, write_json
from tamis.replay.coverage import coverage
from tamis.replay.manifests import counting_manifests
from tamis.replay.matching_shifts import INLINE, MatchingShifts
from tamis.store.base import BASE
from tamis.store.changes import ID_TYPES
from tamis.store.document import signed
from tamis.store.log import DOCUMENT, Log, segment_files
from tamis.store.postgresql.session import Connection, Session
from tamis.store.postgresql.shared_log import (
    SharedLog,
    create_tables,
    put_document,
    refuse_another,
    shared_document,
)
from tamis.store.segment import opened_segment, segment_name

_TABLES = {  # the records, in the order of their columns
    "keys": "id, name, roles, digest, moment",
    "consumers": "owner, name, cursor",
    "deliveries": "subscription, sequence, attempts, due, error",
    "dead_deliveries": "id, subscription, sequence, attempts, error, moment",
    "sink_rotations": "subscription, rotation, moment",
}
_DIGEST = "server key "  # how the facts begin that are digests of server keys


class MovedLog(NamedTuple):
    """What was moved."""

    rows: int
    ranges: int
    records: int

    def __str__(self) -> str:
        return (
            f"{counted(self.rows, 'row')} of the log, {counted(self.ranges, 'range')} of "
            f"notifications, {counted(self.records, 'record')}"
        )


def upload(folder: Path, url: str) -> MovedLog:
    """Move a data folder into a database without a log. The folder then holds copies."""
    places = own_folder(folder)
    session = Session(url)
    try:
        with places.served():
            log = places.own_log()
            if log.ids != "int64" or log.identity is None:
                raise BrokerError(
                    f"{folder}: its log has text ids or an old format; a database holds a log with "
                    "numbers as ids"
                )
            path = log.folder / DOCUMENT
            document = {
                name: value for name, value in read_object(path, BrokerError).items()
                if name != "sum"
            }  # fmt: skip
            with session.transaction() as base:
                _refuse_full(base, session.name)
                head = segment_files(log.folder, log.identity).head()
                create_tables(base)
                put_document(base, document, head.end, head.chain)
                _insert_packs(base, log)
                ranges = _insert_notifications(base, places.notifications, log.begin)
                records = _insert_records(base, State(places.state, log.ids, log.identity))
            write_json(path, signed({**document, "copy": True}))
            return MovedLog(head.end - log.begin, ranges, records)
    finally:
        session.close()


def download(url: str, folder: Path) -> MovedLog:
    """Move what a database holds into a data folder, which has the server key. The database stays.

    A folder of a service on this database will do, and so will a new one.
    """
    places = DataFolder(folder)
    if not places.key.exists():
        raise BrokerError(
            f"{places.key}: is missing; copy the file from a service of this database, and let "
            "nobody else read it"
        )
    session = Session(url)
    try:
        with places.served():
            document = shared_document(session)
            refuse_another(places.log, document, session.name)
            _refuse_served(session)
            log = SharedLog.copied(places.log, session, document)
            files = SharedNotifications(places.notifications, ID_TYPES[log.ids], session, log.end)
            records = _take_records(session, State(places.state, log.ids, str(log.identity)))
            ranges = len(coverage(places.notifications, log.begin).ranges)
            if files.matched < log.begin:
                raise BrokerError(f"{session.name}: notifications are missing before the log")
            write_json(places.log / DOCUMENT, signed(document))
            MatchingShifts(places.folder).begin(Log.open(places.log), INLINE)
            return MovedLog(log.end - log.begin, ranges, records)
    finally:
        session.close()


def _refuse_full(base: Connection, name: str) -> None:
    found = base.execute("SELECT to_regclass('tamis.log')").fetchone()
    if found is not None and found[0] is not None:
        raise BrokerError(f"{name}: holds a log already; choose another database")


def _refuse_served(session: Session) -> None:
    """Refuse while a service runs: what it appends would be left behind."""
    with session.transaction() as base:
        row = base.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name LIKE 'tamis %%' AND application_name <> %s",
            (f"tamis {os.getpid()}",),
        ).fetchone()
    if row is not None and row[0]:
        raise BrokerError(f"{session.name}: a service uses this database; stop it first")


def _insert_packs(base: Connection, log: Log) -> None:
    files = segment_files(log.folder, str(log.identity))
    if files.begin:
        content = (log.folder / BASE).read_bytes()
        base.execute("INSERT INTO base (first, content) VALUES (%s, %s)", (files.begin, content))
    with base.cursor().copy("COPY packs (first, content) FROM STDIN (FORMAT binary)") as rows:
        rows.set_types(["int8", "bytea"])
        for segment in files.covering(files.begin, files.end):
            for first, content in _packs(
                files.folder / segment_name(segment.first), files.identity
            ):
                if first < files.end:
                    rows.write_row((first, content))


def _packs(path: Path, identity: bytes) -> Iterator[tuple[int, bytes]]:
    """The packs of a segment, checked, with their first sequence numbers."""
    with opened_segment(path) as file:
        at = 0
        while at < file.size:
            pack = file.pack_at(at, identity)
            file.check_body(pack, at)
            yield pack.first, bytes(file.content(at, pack.size))
            at += pack.size


def _insert_notifications(base: Connection, folder: Path, begin: int) -> int:
    found = coverage(folder, begin)
    documents = counting_manifests(folder) if found.ranges else {}
    for each in found.ranges:
        base.execute('INSERT INTO ranges (start, "end") VALUES (%s, %s)', (each.start, each.end))
        for part in documents[each.manifest]["parts"]:
            content = (folder / part["folder"] / part["name"]).read_bytes()
            base.execute(
                "INSERT INTO parts (start, folder, name, rows, content) "
                "VALUES (%s, %s, %s, %s, %s)",
                (each.start, part["folder"], part["name"], part["rows"], content),
            )
    base.execute("UPDATE matching SET matched = %s", (found.end,))
    return len(found.ranges)


def _insert_records(base: Connection, state: State) -> int:
    try:
        moved = 0
        cursor = base.cursor()
        for table, columns in _TABLES.items():
            rows = state.select(f"SELECT {columns} FROM {table}")
            marks = ", ".join(["%s"] * len(columns.split(",")))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})".encode(), rows)
            moved += len(rows)
        base.execute(
            "SELECT setval(pg_get_serial_sequence('tamis.dead_deliveries', 'id'), "
            "(SELECT coalesce(max(id), 0) + 1 FROM dead_deliveries), false)"
        )
        for name, value in state.select("SELECT name, value FROM facts"):
            if name in CURSORS:
                base.execute("INSERT INTO facts VALUES (%s, %s)", (name, value))
            elif name.startswith(_DIGEST):
                generation = int(name.removeprefix(_DIGEST))
                base.execute("INSERT INTO server_keys VALUES (%s, %s)", (generation, value))
        return moved
    finally:
        state.close()


def _take_records(session: Session, state: State) -> int:
    try:
        moved = 0
        with session.transaction() as base, state.transaction() as own:
            for table, columns in _TABLES.items():
                rows: list[tuple[Any, ...]] = base.execute(
                    f"SELECT {columns} FROM {table}".encode()
                ).fetchall()
                own.execute(f"DELETE FROM {table}")
                marks = ", ".join("?" * len(columns.split(",")))
                own.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)
                moved += len(rows)
            facts = base.execute("SELECT name, value FROM facts").fetchall()
            digests = base.execute("SELECT generation, digest FROM server_keys").fetchall()
            own.execute(f"DELETE FROM facts WHERE name LIKE '{_DIGEST}%'")
            put = (
                "INSERT INTO facts VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            )
            own.executemany(put, [row for row in facts if row[0] in CURSORS])
            own.executemany(put, [(f"{_DIGEST}{each}", bytes(digest)) for each, digest in digests])
        return moved
    finally:
        state.close()
