"""Merges small packs of a log into larger ones while readers continue to read.

Only complete segments are touched. Neighbouring packs become one if their rows have the same form,
and if their events still come before their changes. The new segment takes the place of the first
segment that it replaces. Then the others are deleted. A reader that misses a segment lists the
folder again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.files.atomic import atomic_file
from tamis.files.sync import sync_folder
from tamis.store.pack import (
    CHANGES,
    EVENTS,
    HEADER,
    KINDS,
    Pack,
    decode_table,
    encode_header,
    encode_table,
    make_pack,
    moments,
    with_moments,
)
from tamis.store.segment import Segment, opened_segment, packs_in, segment_name
from tamis.store.segment_files import FULL, SegmentFiles

_MERGING = ".merge-"  # prefix of unfinished files


class _Whole(NamedTuple):
    """A pack with its rows, and with its bytes after the header."""

    pack: Pack
    tables: dict[str, pa.Table]
    body: pa.Buffer

    def joins(self, other: _Whole) -> bool:
        """Whether the rows of this pack and of the next one can be one pack."""
        mine, others = self.tables, other.tables
        return (
            {*mine, *others} <= {EVENTS, CHANGES}
            and not (CHANGES in mine and EVENTS in others)
            and self.pack.schema == other.pack.schema
            and all(mine[kind].schema.equals(others[kind].schema) for kind in {*mine} & {*others})
        )


class _SegmentRun(NamedTuple):
    """Neighbouring segments that become one."""

    firsts: list[int]
    end: int
    bytes: int

    @property
    def rows(self) -> int:
        return self.end - self.firsts[0]

    def joins(self, other: _SegmentRun) -> bool:
        """Whether merging with the next run pays.

        A much larger run waits for a larger neighbour. So a row is rewritten only when its segment
        grows by half, however often the log is compacted.
        """
        return self.rows <= 2 * other.rows and self.bytes + other.bytes <= FULL

    def joined(self, other: _SegmentRun) -> _SegmentRun:
        """Return both as one run."""
        return _SegmentRun([*self.firsts, *other.firsts], other.end, self.bytes + other.bytes)


def merge(files: SegmentFiles, before: int, rows: int) -> int:
    """Merge packs of complete segments that end at or before a sequence number.

    Returns how many fewer packs there are. The caller holds the lock of compaction.
    """
    _delete_leftovers(files)
    freed = sum(_merge_run(files, run, rows) for run in _runs(files, before))
    files.forget()
    return freed


def _delete_leftovers(files: SegmentFiles) -> None:
    """Delete what a killed process left: unfinished files and segments already merged."""
    for left in files.folder.glob(f"{_MERGING}*"):
        left.unlink(missing_ok=True)
    end = 0
    for first in _complete(files)[:-1]:  # the last one may be growing
        if first < end:
            (files.folder / segment_name(first)).unlink()
        else:
            end = files.whole(first).end
    files.forget()


def _complete(files: SegmentFiles) -> list[int]:
    """The first numbers of the complete segments, and of the last one."""
    last, begin = files.head().segment, files.begin
    return [first for first in files.list_names() if begin <= first <= last]


def _runs(files: SegmentFiles, before: int) -> list[_SegmentRun]:
    runs: list[_SegmentRun] = []
    for first, after in pairwise(_complete(files)):
        if after > before:
            break
        run = _SegmentRun([first], after, (files.folder / segment_name(first)).stat().st_size)
        while runs and runs[-1].joins(run):
            run = runs.pop().joined(run)
        runs.append(run)
    return runs


def _merge_run(files: SegmentFiles, run: _SegmentRun, rows: int) -> int:
    segments = files.covering(run.firsts[0], run.end)
    if len(segments) == 1 and segments[0].merged:
        return 0
    many = sum(segment.packs for segment in segments)
    made = 0
    temporary = files.folder / f"{_MERGING}{secrets.token_hex(8)}"
    with atomic_file(files.folder / segment_name(run.firsts[0]), temporary=temporary) as file:
        for packs in _joined(_read(files, segments), rows):
            for part in _parts(packs):
                file.write(part)
            made += 1
    for first in run.firsts[1:]:
        (files.folder / segment_name(first)).unlink(missing_ok=True)
    sync_folder(files.folder)
    return many - made


def _read(files: SegmentFiles, segments: list[Segment]) -> Iterator[_Whole]:
    """The packs of segments, each with its rows."""
    for segment in segments:
        path = files.folder / segment_name(segment.first)
        with opened_segment(path) as opened:
            for offset, pack in packs_in(opened, files.identity):
                sections = pack.sections(path.name, opened.inode, offset)
                tables = {
                    each.kind: decode_table(each, opened.content(each.offset, each.size))
                    for each in sections
                }
                body = opened.content(offset + HEADER, pack.size - HEADER)
                yield _Whole(pack, tables, body)


def _joined(packs: Iterator[_Whole], rows: int) -> Iterator[list[_Whole]]:
    """The packs, grouped by the pack that they become."""
    run: list[_Whole] = []
    count = size = 0
    for each in packs:
        more = each.pack.end - each.pack.first
        if run and not (
            run[-1].joins(each) and count + more <= rows and size + each.pack.size <= FULL
        ):
            yield run
            run, count, size = [], 0, 0
        run.append(each)
        count, size = count + more, size + each.pack.size
    if run:
        yield run


def _parts(packs: list[_Whole]) -> list[Any]:
    """The bytes of one pack that replaces the given packs, in parts."""
    first, last = packs[0].pack, packs[-1].pack
    if len(packs) == 1:
        return [encode_header(first._replace(merged=True)), packs[0].body]
    sections = {}
    for kind in KINDS:
        tables = [each.tables[kind] for each in packs if kind in each.tables]
        if tables:
            joined = pa.concat_tables([each.replace_schema_metadata(None) for each in tables])
            if kind == EVENTS:
                times = [
                    moments(each.tables[kind], each.pack.appended)
                    for each in packs
                    if kind in each.tables
                ]
                joined = with_moments(joined, np.concatenate(times), last.appended)
            sections[kind] = joined.num_rows, encode_table(joined)
    return make_pack(
        first.identity, first.first, first.chain_before, sections, appended=last.appended,
        schema=first.schema, chain_after=last.chain_after,
    )[1]  # fmt: skip
