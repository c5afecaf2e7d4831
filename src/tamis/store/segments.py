"""Segments and packs: the rows of a log as files, and the listing of these files.

The name of a file has all that a listing needs: the sequence number of the first row, the number of
rows, and whether they are events or changes. No file has to be opened to know where a log ends or
how many events lie in a range.

Where events and changes alternate, a segment has few rows, and neighbours cannot become one table.
A pack has many segments in one file, one after another, each as it would be in a file of its own;
then a table that says where each lies; and in the last eight bytes, where that table begins.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from tamis.errors import StoreError

EVENTS, CHANGES, PACKED = "events", "changes", "packed"
APPENDED = "tamis.appended"
_NAME = re.compile(r"(\d{20})-(\d{10})-(events(?=\.)|changes(?=\.)|packed$)(?:\.arrow)?")
_ALIGNMENT = 64  # of the segments in a pack: Arrow's tables begin at a multiple of this
_END = struct.Struct("<q")
_COLUMNS = ("first", "rows", "kind", "offset", "bytes")
_MAPPED = 64 << 10  # smaller ones are read: that is faster, and a process has at most 65,530 maps


class Segment(NamedTuple):
    """Rows of one kind with the sequence numbers from `first` on."""

    first: int
    rows: int
    kind: str
    # Where it lies in a pack; empty for a segment that is a file by itself.
    pack: str = ""
    offset: int = 0
    bytes: int = 0

    @property
    def end(self) -> int:
        """The sequence number after the last row."""
        return self.first + self.rows

    @property
    def name(self) -> str:
        """The name of the file in which it lies."""
        ending = "" if self.kind == PACKED else ".arrow"
        return self.pack or f"{self.first:020d}-{self.rows:010d}-{self.kind}{ending}"

    @classmethod
    def named(cls, name: str) -> Segment | None:
        """Parse the name of a file; None if it is neither a segment nor a pack."""
        found = _NAME.fullmatch(name)
        return None if found is None else cls(int(found[1]), int(found[2]), found[3])


def named(names: Iterable[str]) -> dict[str, Segment]:
    """Parse the names of segments and packs among some names."""
    return {name: found for name in names if (found := Segment.named(name))}


class GapError(Exception):
    """Files that leave a gap in the sequence: often, a merge overtook the listing."""


Unpack = Callable[[str], list[Segment]]
"""Returns the segments in a pack; raises `FileNotFoundError` if it was merged away."""


class Listing:
    """The files and segments of a log at one moment. Immutable, so threads may share it."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()  # including files that a larger one covers
        self.files: list[Segment] = []
        self.segments: list[Segment] = []
        self.end = 0
        self._firsts: list[int] = []  # of each segment
        self._events = [0]  # before each segment, and in all

    def extended(self, more: Mapping[str, Segment], unpack: Unpack) -> Listing:
        """Return a listing with more files, all of which come after those that are here.

        Raises `GapError` if one is missing.
        """
        after = Listing()
        after.names, after.end = self.names | more.keys(), self.end
        after.files, after.segments = self.files.copy(), self.segments.copy()
        after._firsts, after._events = self._firsts.copy(), self._events.copy()
        # Of files that begin together the largest comes first: it has the content of the others.
        for file in sorted(more.values(), key=lambda each: (each.first, -each.rows)):
            if file.first == after.end:
                after._add(file, unpack(file.name) if file.kind == PACKED else [file])
            elif file.end > after.end:
                raise GapError(f"{file.name} does not follow on sequence number {after.end}")
        return after

    def _add(self, file: Segment, parts: list[Segment]) -> None:
        self.end = file.end
        self.files.append(file)
        for part in parts:
            self.segments.append(part)
            self._firsts.append(part.first)
            self._events.append(self._events[-1] + (part.rows if part.kind == EVENTS else 0))

    def counts(self, start: int, end: int) -> tuple[int, int]:
        """Count the events and the changes from `start` to before `end`."""
        events = self._events_before(end) - self._events_before(start)
        return events, end - start - events

    def _events_before(self, sequence: int) -> int:
        at = bisect_right(self._firsts, sequence) - 1
        if at < 0:
            return 0
        segment, before = self.segments[at], self._events[at]
        return before + (sequence - segment.first if segment.kind == EVENTS else 0)

    def within(self, start: int, end: int) -> Iterator[Segment]:
        """Yield the segments with a row from `start` to before `end`."""
        at = max(bisect_right(self._firsts, start) - 1, 0)
        while at < len(self.segments) and self.segments[at].first < end:
            if self.segments[at].end > start:
                yield self.segments[at]
            at += 1

    def covered(self) -> list[str]:
        """Return the names of files whose content a larger one has."""
        return sorted(self.names - {file.name for file in self.files})


def write(sink: Any, table: pa.Table, moment: datetime | None = None) -> None:
    """Write a segment to an open file."""
    moment = moment or datetime.now(UTC)
    metadata = {APPENDED: moment.isoformat(timespec="microseconds")}
    whole = table.combine_chunks().replace_schema_metadata(metadata)
    options = pa.ipc.IpcWriteOptions(unify_dictionaries=True)
    with pa.ipc.new_file(sink, whole.schema, options=options) as writer:
        writer.write_table(whole)


def read(folder: Path, segment: Segment) -> pa.Table:
    """Map the rows of a segment; raise `FileNotFoundError` if it was merged away."""
    path = folder / segment.name
    try:
        table = pa.ipc.open_file(_content(path, segment)).read_all()
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as why:
        raise StoreError(f"{path}: is damaged or cannot be read: {why}") from why
    if table.num_rows != segment.rows:
        raise StoreError(
            f"{path}: is damaged, it has {table.num_rows} rows instead of {segment.rows}"
        )
    return table


def _content(path: Path, segment: Segment) -> pa.Buffer:
    size = segment.bytes if segment.pack else path.stat().st_size
    if size < _MAPPED:
        with path.open("rb") as file:
            file.seek(segment.offset)
            return pa.py_buffer(file.read(size))
    with pa.memory_map(str(path)) as source:  # the map stays valid after the file is closed
        source.seek(segment.offset)
        return source.read_buffer(size)


def write_pack(file: BinaryIO, parts: Iterable[tuple[Segment, pa.Table, datetime]]) -> None:
    """Write segments as one pack: each with its rows, and when they were appended."""
    found = []
    for segment, table, moment in parts:
        sink = pa.BufferOutputStream()
        write(sink, table, moment)
        content = sink.getvalue()
        found.append((segment.first, segment.rows, segment.kind, file.tell(), content.size))
        file.write(content)
        file.write(bytes(-content.size % _ALIGNMENT))
    begin = file.tell()
    with pa.BufferOutputStream() as sink:
        table = pa.table(list(map(list, zip(*found, strict=True))), names=list(_COLUMNS))
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        file.write(sink.getvalue())
    file.write(_END.pack(begin))


def unpack(folder: Path, name: str) -> list[Segment]:
    """Return the segments in a pack; raise `FileNotFoundError` if it was merged away."""
    path = folder / name
    try:
        with path.open("rb") as file:
            last = file.seek(-_END.size, 2)
            (begin,) = _END.unpack(file.read())
            file.seek(begin)
            table = pa.ipc.open_file(pa.py_buffer(file.read(last - begin))).read_all()
        columns = [table.column(each).to_pylist() for each in _COLUMNS]
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, struct.error) as why:
        raise StoreError(f"{path}: is damaged or cannot be read: {why}") from why
    return [
        Segment(first, rows, kind, name, offset, size)
        for first, rows, kind, offset, size in zip(*columns, strict=True)
    ]


def appended(table: pa.Table) -> datetime:
    """Return when the rows of a table that a log returned were appended.

    Merged segments have the time of the last one.
    """
    written = (table.schema.metadata or {}).get(APPENDED.encode())
    if written is None:
        raise StoreError("the table does not come from a log: it lacks the time of its append")
    return datetime.fromisoformat(written.decode())
