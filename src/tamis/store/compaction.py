"""Small files of a log merged into larger ones, while readers go on.

Neighbours become one table if they have the same kind and columns, and a pack otherwise. The merged
file takes its place first; from then on readers ignore the small ones, which are deleted next. A
listing that a merge overtook has a gap and is taken again. The last file is never merged, so a gap
always lies before some file and is noticed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.files.atomic import atomic_file
from tamis.store import segments
from tamis.store.segments import PACKED, Listing, Segment

_BYTES = 64 << 20  # of one merged file, which is in memory while it is written
_MERGING = ".merge-"  # prefix of unfinished files


def merge(folder: Path, listing: Listing, before: int, rows: int) -> int:
    """Merge files that end at or before a sequence number; return by how many files there are less.

    The caller holds the lock of compaction.
    """
    for left in folder.glob(f"{_MERGING}*"):
        left.unlink(missing_ok=True)
    freed = _remove(folder, listing.covered())  # left by a process that was killed
    for files in _runs(folder, listing.files[:-1], before, rows):
        parts = listing.within(files[0].first, files[-1].end)
        _put(folder, list(_joined(folder, parts)))
        freed += _remove(folder, [file.name for file in files]) - 1
    return freed


class _MergeRun(NamedTuple):
    """Neighbouring files."""

    files: list[Segment]
    rows: int
    bytes: int

    def joins(self, other: _MergeRun, rows: int) -> bool:
        """Whether merging with the next run pays.

        A much larger run waits for a larger neighbour: a row is rewritten only when its file grows
        by half, however often a log is compacted.
        """
        return (
            self.rows <= 2 * other.rows
            and self.rows + other.rows <= rows
            and self.bytes + other.bytes <= _BYTES
        )

    def joined(self, other: _MergeRun) -> _MergeRun:
        self.files.extend(other.files)
        return _MergeRun(self.files, self.rows + other.rows, self.bytes + other.bytes)


def _runs(folder: Path, files: list[Segment], before: int, rows: int) -> list[list[Segment]]:
    runs: list[_MergeRun] = []
    for file in files:
        if file.end > before:
            break
        run = _MergeRun([file], file.rows, (folder / file.name).stat().st_size)
        while runs and runs[-1].joins(run, rows):
            run = runs.pop().joined(run)
        runs.append(run)
    return [run.files for run in runs if len(run.files) > 1]


_Part = tuple[Segment, pa.Table, datetime]
"""A segment, its rows, and when the last row was appended."""


def _joined(folder: Path, parts: Iterator[Segment]) -> Iterator[_Part]:
    """Yield the segments of a run; neighbours with the same kind and columns become one."""
    read = [(part, segments.read(folder, part)) for part in parts]
    for (kind, _), group in groupby(read, _form):
        several = list(group)
        first, end = several[0][0].first, several[-1][0].end
        table = pa.concat_tables([table for _, table in several])
        yield Segment(first, end - first, kind), table, segments.appended(several[-1][1])


def _form(part: tuple[Segment, pa.Table]) -> tuple[str, list[Any]]:
    """Return what two segments must share to become one."""
    segment, table = part
    return segment.kind, [(field.name, field.type, field.nullable) for field in table.schema]


def _put(folder: Path, parts: list[_Part]) -> None:
    """Write the merged file. It is on disk before the small ones are deleted."""
    (merged, *_), *others = parts
    if others:
        last = others[-1][0]
        merged = Segment(merged.first, last.end - merged.first, PACKED)
    temporary = folder / f"{_MERGING}{secrets.token_hex(8)}"
    with atomic_file(folder / merged.name, temporary=temporary) as file:
        if others:
            segments.write_pack(file, parts)
        else:
            segments.write(file, *parts[0][1:])


def _remove(folder: Path, names: list[str]) -> int:
    for name in names:
        (folder / name).unlink(missing_ok=True)
    return len(names)
