"""Packs: many segments in one file.

Where events and changes alternate, a segment has few rows, and neighbours cannot become one table.
A pack has the segments one after another, each as it would be in a file of its own; then a table
that says where each lies; and in the last eight bytes, where that table begins.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from tamis.errors import StoreError
from tamis.store import segments
from tamis.store.segments import Segment

_ALIGNMENT = 64  # Arrow's tables begin at a multiple of this
_END = struct.Struct("<q")
_COLUMNS = ("first", "rows", "kind", "offset", "bytes")


def write(file: BinaryIO, parts: Iterable[tuple[Segment, pa.Table, datetime]]) -> None:
    """Write segments as one pack: each with its rows, and when they were appended."""
    found = []
    for segment, table, moment in parts:
        sink = pa.BufferOutputStream()
        segments.write(sink, table, moment)
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
