"""Rewrites a log of an earlier format in the current format, in the same folder.

The new segments are written next to the old files. Then the document of the log is replaced. From
that moment on, the log has the new format. Then the old files are deleted. A killed process leaves
a log of the old format or of the new format. Running the upgrade again finishes the work.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from tamis.errors import StoreError
from tamis.files.json_document import read_json, write_json
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import sync_folder
from tamis.store.document import signed
from tamis.store.earlier.format_one import FormatOneFiles, old_names
from tamis.store.head import create_head
from tamis.store.log import DOCUMENT, FORMAT, SEGMENTS, Log, new_head, segment_files
from tamis.store.pack import appended, encode_table, microseconds
from tamis.store.segment import first_in
from tamis.store.segment_files import HEAD

_ROWS = 100_000  # at most this many rows in a pack, unless they were appended together


def upgrade(folder: Path) -> Iterator[tuple[int, int]]:
    """Upgrade the log in a folder; yields how many of its rows are done, and how many it has.

    Sequence numbers, the identity and the times of appends stay the same. Events that the current
    format would refuse also stay: readers turn them into dead letters.
    """
    log = Log.open(folder)
    place = log.folder / SEGMENTS
    with log.exclusive(), os_errors_as(StoreError, f"{log.folder}: cannot be upgraded"):
        document = read_json(log.folder / DOCUMENT, "a log", StoreError, newest=FORMAT)
        if document["format"] == 1:
            identity = str(document.get("log") or secrets.token_hex(16))
            yield from _rewrite(log.folder, FormatOneFiles(place), identity)
            document |= {"format": FORMAT, "log": identity}
            write_json(log.folder / DOCUMENT, signed(document))
        for name in old_names(place):
            (place / name).unlink()
        sync_folder(place)


def _rewrite(folder: Path, old: FormatOneFiles, identity: str) -> Iterator[tuple[int, int]]:
    for name in names_in(old.folder):  # left by an upgrade that was killed
        if first_in(name) is not None:
            (old.folder / name).unlink()
    create_head(folder / HEAD, new_head(identity))
    files = segment_files(folder, identity)
    for first, rows, kind, table, moment in _joined(old):
        done = files.append({kind: (rows, encode_table(table))}, microseconds(moment))
        if done.start != first:
            raise StoreError(f"{folder}: the row {first} became {done.start}; please report this")
        yield done.stop, old.end


def _joined(old: FormatOneFiles) -> Iterator[tuple[int, int, str, pa.Table, datetime]]:
    """The rows of the old log; small neighbours of the same kind and form are joined."""
    waiting: list[pa.Table] = []
    first, rows, kind = 0, 0, ""
    for section in old.sections(0, old.end):
        table = old.read(section)
        form = table.replace_schema_metadata(None).schema
        same = waiting and kind == section.kind and waiting[0].schema.remove_metadata() == form
        if waiting and not (same and rows + section.rows <= _ROWS):
            yield first, rows, kind, pa.concat_tables(waiting), appended(waiting[-1])
            waiting, first, rows = [], section.first, 0
        kind = section.kind
        waiting.append(table)
        rows += section.rows
    if waiting:
        yield first, rows, kind, pa.concat_tables(waiting), appended(waiting[-1])
