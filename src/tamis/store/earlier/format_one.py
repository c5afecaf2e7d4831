"""Logs of format 1, which can be read and upgraded, but not appended to.

    LOG/segments/FIRST-ROWS-events.arrow     an Arrow IPC file with events
    LOG/segments/FIRST-ROWS-changes.arrow    an Arrow IPC file with changes
    LOG/segments/FIRST-ROWS-packed           several such files, then a table of their places

Format 1 has no checksums: damage is noticed only if Arrow notices it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.errors import StoreError, counted
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as
from tamis.store.pack import APPENDED, CHANGES, EVENTS

_NAME = re.compile(r"(\d{20})-(\d{10})-(events(?=\.)|changes(?=\.)|packed$)(?:\.arrow)?")
_PACKED = "packed"
_END = struct.Struct("<q")
_COLUMNS = ("first", "rows", "kind", "offset", "bytes")
_DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError, struct.error)


class OldSection(NamedTuple):
    """Rows of one kind with the sequence numbers from `first` on."""

    first: int
    rows: int
    kind: str
    file: str
    offset: int = 0
    bytes: int = -1  # the whole file

    @property
    def end(self) -> int:
        """The sequence number after the last row."""
        return self.first + self.rows


def old_names(folder: Path) -> list[str]:
    """The names of all files of format 1 in a folder."""
    with os_errors_as(StoreError, f"{folder}: cannot be read"):
        return sorted(name for name in names_in(folder) if _NAME.fullmatch(name))


class FormatOneFiles:
    """The segments of a log of format 1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sections = list(self._listed())

    begin = 0  # such a log cannot be trimmed

    @property
    def end(self) -> int:
        """The next sequence number."""
        return self._sections[-1].end if self._sections else 0

    def _listed(self) -> Iterator[OldSection]:
        found = []
        for name in old_names(self.folder):
            first, rows, kind = _NAME.fullmatch(name).groups()  # type: ignore[union-attr]
            found.append(OldSection(int(first), int(rows), kind, name))
        end = 0
        # If files begin at the same row, the largest comes first: it contains the others.
        for file in sorted(found, key=lambda each: (each.first, -each.rows)):
            if file.first == end:
                yield from self._unpacked(file) if file.kind == _PACKED else [file]
                end = file.end
            elif file.end > end:
                raise StoreError(
                    f"{self.folder.parent}: is damaged: {file.file} does not follow on sequence "
                    f"number {end}"
                )

    def _unpacked(self, pack: OldSection) -> Iterator[OldSection]:
        path = self.folder / pack.file
        try:
            with path.open("rb") as file:
                last = file.seek(-_END.size, 2)
                (begin,) = _END.unpack(file.read())
                file.seek(begin)
                table = pa.ipc.open_file(pa.py_buffer(file.read(last - begin))).read_all()
            columns = [table.column(each).to_pylist() for each in _COLUMNS]
        except _DAMAGE as why:
            raise StoreError(f"{path}: is damaged or cannot be read: {why}") from why
        for first, rows, kind, offset, size in zip(*columns, strict=True):
            yield OldSection(first, rows, kind, pack.file, offset, size)

    def counts(self, start: int, end: int) -> tuple[int, int]:
        """Count the events and the changes from `start` to before `end`."""
        counts = {EVENTS: 0, CHANGES: 0}
        for section in self.sections(start, end):
            counts[section.kind] += min(end, section.end) - max(start, section.first)
        return counts[EVENTS], counts[CHANGES]

    def sections(self, start: int, end: int) -> list[OldSection]:
        """The sections with a row from `start` to before `end`."""
        return [each for each in self._sections if each.first < end and each.end > start]

    def tables(self, kind: str, start: int, end: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of one kind from `start` to before `end`: first number and table."""
        for section in self.sections(start, end):
            if section.kind == kind:
                first, last = max(start, section.first), min(end, section.end)
                yield first, self.read(section).slice(first - section.first, last - first)

    def read(self, section: OldSection) -> pa.Table:
        """The rows of a section."""
        path = self.folder / section.file
        try:
            with path.open("rb") as file:
                file.seek(section.offset)
                content: Any = file.read(section.bytes)
            table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
            table.validate(full=True)
            datetime.fromisoformat((table.schema.metadata or {})[APPENDED.encode()].decode())
        except (*_DAMAGE, TypeError) as why:
            raise StoreError(f"{path}: is damaged or cannot be read: {why}") from why
        if table.num_rows != section.rows:
            raise StoreError(
                f"{path}: is damaged, it has {counted(table.num_rows, 'row')} instead of "
                f"{section.rows}"
            )
        return table
