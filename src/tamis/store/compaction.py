"""Small packs of a log merged into larger ones, while readers go on.

Only complete segments are touched. Neighbouring packs become one if their rows have the same form
and stay in the order events, changes. The new segment takes the place of the first one that it
replaces; then the others are deleted. A reader who misses one looks at the folder again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

from tamis.files.atomic import atomic_file
from tamis.files.sync import sync_folder
from tamis.store.pack import (
    CHANGES,
    EVENTS,
    KINDS,
    Pack,
    decode_table,
    encode_table,
    make_pack,
)
from tamis.store.segment import Segment, opened_segment, packs_in, segment_name
from tamis.store.segment_files import FULL, SegmentFiles

_MERGING = ".merge-"  # prefix of unfinished files


class _Whole(NamedTuple):
    """A pack with its rows."""

    pack: Pack
    tables: dict[str, pa.Table]

    def joins(self, other: _Whole) -> bool:
        """Whether the rows of this pack and of the next one can be one pack."""
        mine, others = self.tables, other.tables
        kinds = {*mine, *others}
        return (
            kinds <= {EVENTS, CHANGES}
            and not (CHANGES in mine and EVENTS in others)
            and self.pack.schema == other.pack.schema
            and all(mine[kind].schema.equals(others[kind].schema) for kind in {*mine} & {*others})
        )


def merge(files: SegmentFiles, before: int, rows: int) -> int:
    """Merge packs of complete segments that end at or before a sequence number.

    Returns by how many packs there are less. The caller holds the lock of compaction.
    """
    folder = files.folder
    for left in folder.glob(f"{_MERGING}*"):
        left.unlink(missing_ok=True)
    freed = 0
    for run in _runs(files, before):
        freed += _merge_run(files, run, rows)
    return freed


def _runs(files: SegmentFiles, before: int) -> Iterator[list[int]]:
    """Complete segments that can be one file: by their first numbers, small neighbours together."""
    head = files.head()
    names = [first for first in files.list_names() if files.begin <= first <= head.segment]
    run: list[int] = []
    size = 0
    for first, after in pairwise(names):
        if after > before:
            break
        bytes_ = (files.folder / segment_name(first)).stat().st_size
        if run and (size + bytes_ > FULL or size > 2 * bytes_):
            yield run
            run, size = [], 0
        run.append(first)
        size += bytes_
    if run:
        yield run


def _merge_run(files: SegmentFiles, run: list[int], rows: int) -> int:
    last = files.covering(run[-1], run[-1] + 1)[-1]
    segments = files.covering(run[0], last.end)
    if len(run) == 1 and segments[0].merged:
        return 0
    many = sum(segment.packs for segment in segments)
    made = 0
    temporary = files.folder / f"{_MERGING}{secrets.token_hex(8)}"
    with atomic_file(files.folder / segment_name(run[0]), temporary=temporary) as file:
        for pack, tables in _joined(_read(files, segments), rows):
            sections = {
                kind: (table.num_rows, encode_table(table)) for kind, table in tables.items()
            }
            _, parts = make_pack(
                files.identity, pack.first, pack.chain_before, sections, appended=pack.appended,
                schema=pack.schema, chain_after=pack.chain_after,
            )  # fmt: skip
            for part in parts:
                file.write(part)
            made += 1
    for first in run[1:]:
        (files.folder / segment_name(first)).unlink(missing_ok=True)
    sync_folder(files.folder)
    return many - made


def _read(files: SegmentFiles, segments: list[Segment]) -> Iterator[_Whole]:
    """The packs of segments, each with its rows."""
    end = segments[0].first
    for segment in segments:
        path = files.folder / segment_name(segment.first)
        with opened_segment(path) as opened:
            for offset, pack in packs_in(opened, files.identity):
                if pack.first < end:  # the segment was merged into the one before, and stayed
                    continue
                sections = pack.sections(path.name, opened.inode, offset)
                tables = {
                    each.kind: decode_table(each, opened.content(each.offset, each.size))
                    for each in sections
                }
                yield _Whole(pack, tables)
                end = pack.end


def _joined(packs: Iterator[_Whole], rows: int) -> Iterator[_Whole]:
    """The packs, neighbours together where that is possible."""
    run: list[_Whole] = []
    count = size = 0
    for each in packs:
        more = each.pack.end - each.pack.first
        if run and not (
            run[-1].joins(each) and count + more <= rows and size + each.pack.size <= FULL
        ):
            yield _one(run)
            run, count, size = [], 0, 0
        run.append(each)
        count, size = count + more, size + each.pack.size
    if run:
        yield _one(run)


def _one(run: list[_Whole]) -> _Whole:
    first, last = run[0].pack, run[-1].pack
    tables = {
        kind: pa.concat_tables([each.tables[kind] for each in run if kind in each.tables])
        for kind in KINDS
        if any(kind in each.tables for each in run)
    }
    # The numbers of rows and bytes are those of the first: nobody reads them any more.
    return _Whole(first._replace(appended=last.appended, chain_after=last.chain_after), tables)
