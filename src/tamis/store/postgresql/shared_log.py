"""A log whose packs are rows of PostgreSQL, with a copy of them in a folder.

The database is the truth. The copy is a log like any other, so everything that reads logs reads it;
if it is lost, it is copied again. An append locks the row with the end of the log, copies what
others have appended, inserts its pack, moves the end, and commits: then its pack is copied too.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from psycopg import errors

from tamis.errors import StoreError
from tamis.files.atomic import atomic_file
from tamis.files.json_document import write_json
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder
from tamis.model.schema import Schema
from tamis.store.base import BASE
from tamis.store.document import signed
from tamis.store.head import Head, create_head
from tamis.store.log import DOCUMENT, FORMAT, SEGMENTS, Log, new_head
from tamis.store.log_locks import LOCK
from tamis.store.pack import (
    HEADER,
    BadPackError,
    Bytes,
    Pack,
    check_chain,
    check_section,
    decode_header,
    first_chain,
)
from tamis.store.postgresql.session import Connection, Session
from tamis.store.segment_files import HEAD, SegmentFiles

TABLES = 2  # the version of the tables
_BASE_TABLE = (
    "CREATE TABLE IF NOT EXISTS tamis.base (one boolean PRIMARY KEY DEFAULT true CHECK (one), "
    "first bigint NOT NULL, content bytea NOT NULL)"
)
GROWN = "tamis_log"  # the channel on which appends are told
_CREATING = 0x74616D6973  # an advisory lock: one service creates the tables
_AT_ONCE = 64  # packs that are copied at once


class CopiedFiles(SegmentFiles):
    """Segments that are a copy: a pack is committed elsewhere first."""

    def __init__(
        self, folder: Path, identity: bytes, commit: Callable[[Pack, bytes], None]
    ) -> None:
        super().__init__(folder / SEGMENTS, folder / HEAD, folder / BASE, identity)
        self._commit = commit

    def _put(self, opened: int, head: Head, pack: Pack, parts: list[Bytes]) -> None:
        self._commit(pack, b"".join(bytes(each) for each in parts))
        try:
            super()._put(opened, head, pack, parts)
        except OSError as why:  # not a full disk for the caller: the pack is in the log
            raise StoreError(
                f"{self.folder}: the copy of the log cannot be written: {why.strerror}"
            ) from None

    def copy(self, content: bytes) -> None:
        """Add a pack as it is, after those that are there. The caller holds the lock of the log."""
        try:
            pack = decode_header(content, self.identity)
            check_chain(pack)
            for section in pack.sections("", 0, 0):
                check_section(section, content[section.offset : section.offset + section.size])
        except BadPackError as why:
            raise StoreError(f"a pack in the database is damaged: {why}") from None
        with self._opened_head(os.O_RDWR) as (opened, found):
            head = self._ready(opened, found)
            if (pack.first, pack.chain_before) != (head.end, head.chain):
                raise StoreError(
                    f"{self.folder.parent}: is not a copy of the log in the database: they differ "
                    f"before the row {pack.first}"
                )
            super()._put(opened, head, pack, [content[:HEADER], content[HEADER:]])


class SharedLog(Log):
    """The log in a database, with a copy in a folder."""

    def __init__(self, folder: Path, session: Session, document: Mapping[str, Any]) -> None:
        self._session = session
        self._base_connection: Connection | None = None  # while it is this process's turn
        identity = bytes.fromhex(document["log"])
        self._copied = CopiedFiles(folder.absolute(), identity, self._commit)
        super().__init__(folder, document, self._copied)

    @classmethod
    def copied(cls, folder: Path, session: Session, document: Mapping[str, Any]) -> SharedLog:
        """Open the log in a database, and copy what the folder lacks."""
        with os_errors_as(StoreError, f"{folder}: cannot hold a copy of the log"):
            make_folder(folder / SEGMENTS)
            if not (folder / DOCUMENT).exists():
                create_head(folder / HEAD, _first_head(folder, session, document["log"]))
                write_json(folder / DOCUMENT, signed({**document, "copy": True}))
        log = cls(folder, session, document)
        log.follow()
        with log.turn():  # refuses a copy that is ahead of the database
            return log

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Append alone. What others have appended is in the folder when the block begins."""
        with self._session.transaction() as base:
            row = base.execute('SELECT "end", chain FROM log FOR UPDATE').fetchone()
            head = self._copied.head()
            if row is not None and head.end < row[0]:
                self._copy(base)
                head = self._copied.head()
            if row is None or (head.end, head.chain) != (row[0], bytes(row[1])):
                raise StoreError(
                    f"{self.folder}: ends at {head.end}, and the log in {self._session.name} "
                    "ends elsewhere: the database was put back from a backup, or rows of it are "
                    "lost; `tamis serve --rebuild` copies it anew"
                )
            self._base_connection = base
            try:
                yield
            finally:
                self._base_connection = None

    def follow(self) -> int:
        """Copy what others have appended; returns the end of the copy."""
        with self._session.transaction() as base:
            self._copy(base)
        return self.end

    def _copy(self, base: Connection) -> None:
        query = "SELECT first, content FROM packs WHERE first >= %s ORDER BY first LIMIT %s"
        while True:
            with self._locks.held(LOCK, "cannot be copied to"):
                end = self._copied.ready().end
                packs = base.execute(query, (end, _AT_ONCE), binary=True).fetchall()
                if packs and packs[0][0] > end:
                    raise StoreError(
                        f"{self.folder}: ends at {end:,}, and the log in {self._session.name} was "
                        f"trimmed up to {packs[0][0]:,} meanwhile; `tamis serve --rebuild` copies "
                        "it anew"
                    )
                for _, content in packs:
                    self._copied.copy(bytes(content))
            if len(packs) < _AT_ONCE:
                return

    def trim(self, before: int) -> int:
        """Trim the copy, and the log in the database to where the copy then begins.

        A copy that ends before that cannot follow any more, and is copied anew.
        """
        begin = super().trim(before)
        if begin:
            put = (
                "INSERT INTO base (first, content) VALUES (%s, %s) ON CONFLICT (one) DO UPDATE SET "
                "first = excluded.first, content = excluded.content WHERE base.first < %s"
            )
            with self._session.transaction() as base:
                base.execute(put, (begin, (self.folder / BASE).read_bytes(), begin))
                base.execute("DELETE FROM packs WHERE first < (SELECT first FROM base)")
        return begin

    def _commit(self, pack: Pack, content: bytes) -> None:
        """Commit a pack to the database. It is durable when this returns."""
        base = self._base_connection
        if base is None:
            raise StoreError(f"{self.folder}: is a copy; append through the service")
        base.execute(
            "WITH added AS (INSERT INTO packs (first, content) VALUES (%s, %s)), "
            'moved AS (UPDATE log SET "end" = %s, chain = %s) SELECT pg_notify(%s, %s)',
            (pack.first, content, pack.end, pack.chain_after, GROWN, str(pack.end)),
        )
        base.commit()


def _first_head(folder: Path, session: Session, identity: str) -> Head:
    """The head of a copy without rows: where the log begins. The base is put next to it."""
    with session.transaction() as base:
        row = base.execute("SELECT content FROM base").fetchone()
    head = new_head(identity)
    if row is None:
        return head
    content = bytes(row[0])
    try:
        pack = decode_header(content, bytes.fromhex(identity))
    except BadPackError as why:
        raise StoreError(f"{session.name}: the base of the log is damaged: {why}") from None
    with atomic_file(folder / BASE) as file:
        file.write(content)
    return head._replace(
        end=pack.first, segment=pack.first, schema=pack.schema, chain=pack.chain_before
    )


def refuse_another(folder: Path, document: Mapping[str, Any], database: str) -> None:
    """Raise `StoreError` if a folder has another log than that of a database."""
    if (folder / DOCUMENT).exists() and Log.open(folder).identity != document["log"]:
        raise StoreError(
            f"{folder}: has another log than {database}; choose another folder, or another database"
        )


def shared_document(
    session: Session, schema: Schema | Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The document of the log in a database, which is created if there is a schema."""
    with session.transaction() as base:
        base.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
        found = base.execute("SELECT to_regclass('tamis.log')").fetchone()
        if found is None or found[0] is None:
            if schema is None:
                raise StoreError(f"{session.name}: there is no log yet; a new one needs a schema")
            return _create(base, schema)
        row = base.execute("SELECT format, document FROM log").fetchone()
        if row is not None and row[0] == 1:  # a log that could not be trimmed
            base.execute(_BASE_TABLE)
            base.execute("UPDATE log SET format = %s", (TABLES,))
            row = TABLES, row[1]
    if row is None:
        raise StoreError(f"{session.name}: is damaged, the row with the end of the log is missing")
    if row[0] != TABLES:
        raise StoreError(f"{session.name}: was made by another version of tamis")
    return dict(json.loads(row[1]))


def _create(base: Connection, schema: Schema | Mapping[str, Any]) -> dict[str, Any]:
    known = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
    identity = secrets.token_hex(16)
    document = {"format": FORMAT, "log": identity, "schema": known.to_dict(), "ids": "int64"}
    create_tables(base)
    put_document(base, document, 0, first_chain(bytes.fromhex(identity)))
    return document


def create_tables(base: Connection) -> None:
    """Create the tables of a log."""
    try:
        base.execute("CREATE SCHEMA IF NOT EXISTS tamis")
        base.execute((files(__package__) / "tables.sql").read_bytes())
    except errors.DuplicateTable as why:
        raise StoreError(f"the schema `tamis` of the database holds other tables: {why}") from None


def put_document(base: Connection, document: Mapping[str, Any], end: int, chain: bytes) -> None:
    """Put the row of a log that ends at a number."""
    base.execute(
        'INSERT INTO log (format, document, "end", chain) VALUES (%s, %s, %s, %s)',
        (TABLES, json.dumps(document), end, chain),
    )
