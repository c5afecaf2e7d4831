"""Erases rows of a log for good: a recorded gap takes their place.

The segments that hold the rows are written anew. A pack with erased rows becomes several packs: the
rows before them, a pack that says that rows are missing here, as a repair writes it, and the rows
after them. Numbers stay as they are, and so do the chains at both ends of the pack: what comes
before and after need not change.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa
from xxhash import xxh3_128_digest

from tamis.errors import StoreError
from tamis.files.atomic import atomic_file
from tamis.files.sync import synced_rename
from tamis.store.base import BASE, read_base, write_base
from tamis.store.changes import ALL, change_schema
from tamis.store.head import CLEAN, create_head, this_boot
from tamis.store.log import Log, segment_files
from tamis.store.pack import (
    CHANGES,
    EVENTS,
    LOST,
    SCHEMAS,
    BadPackError,
    Bytes,
    Pack,
    decode_table,
    encode_table,
    make_pack,
    microseconds,
    moments,
    with_moments,
)
from tamis.store.segment import opened_segment, packs_in, segment_name
from tamis.store.segment_files import HEAD, SegmentFiles

Wanted = Callable[[str, int, pa.Table], list[int]]
"""Which rows of a table to erase: its kind, the number of its first row, and the table."""


class _PackPiece(NamedTuple):
    """Rows of one kind, or a gap, that become a pack or a part of one."""

    kind: str
    rows: int
    table: pa.Table | None  # None: erased


def erase_rows(log: Log, wanted: Wanted, note: str) -> int:
    """Erase rows of the log while nobody else uses it; how many."""
    if log.format == 1:
        raise StoreError(f"{log.folder}: has format 1; run `tamis log upgrade` first")
    log.settle()
    with log.exclusive():
        files = segment_files(log.folder, str(log.identity))
        erased = _erase_base(log, files, wanted)
        for first in files.list_names():
            if files.begin <= first < files.end:
                try:
                    erased += _erase_segment(log, files, first, wanted, note)
                except BadPackError as why:
                    raise files.damaged(f"{segment_name(first)}: {why}") from None
        return erased


def _erase_base(log: Log, files: SegmentFiles, wanted: Wanted) -> int:
    if not files.begin:
        return 0
    schema = change_schema(log.ids, ALL).insert(0, pa.field("sequence", pa.int64()))
    base = read_base(log.folder / BASE, files.identity, schema.empty_table())
    gone = set(wanted(BASE, files.begin, base.changes))
    if gone:
        kept = [row for row in range(base.changes.num_rows) if row not in gone]
        now = microseconds(datetime.now(UTC))
        write_base(
            log.folder / BASE, base._replace(changes=base.changes.take(kept)), files.identity, now
        )
    return len(gone)


def _erase_segment(log: Log, files: SegmentFiles, first: int, wanted: Wanted, note: str) -> int:
    path = files.folder / segment_name(first)
    parts: list[Bytes] = []
    erased = packs = 0
    with opened_segment(path) as opened:
        for offset, pack in packs_in(opened, files.identity):
            sections = pack.sections(path.name, opened.inode, offset)
            tables = {
                each.kind: decode_table(each, opened.content(each.offset, each.size))
                for each in sections
            }
            gone = {
                each.first + row
                for each in sections
                if each.kind in (EVENTS, CHANGES)
                for row in wanted(each.kind, each.first, tables[each.kind])
            }
            erased += len(gone)
            if not gone:
                parts.append(opened.content(offset, pack.size))
                packs += 1
                continue
            for piece in _divided(pack, tables, gone, note):
                parts += piece
                packs += 1
        if not erased:
            return 0
        temporary = files.folder / f".merge-{secrets.token_hex(8)}"
        with atomic_file(path, temporary=temporary) as file:
            for part in parts:
                file.write(part)
    head = files.head()
    if head.segment == first:  # without it, the next start finds the end by reading the segment
        new = head._replace(
            turn=head.turn + 1,
            state=CLEAN,
            boot=this_boot(),
            size=path.stat().st_size,
            packs=packs,
        )
        fresh = log.folder / f".{HEAD}"
        create_head(fresh, new)
        synced_rename(fresh, log.folder / HEAD)
    files.forget()
    return erased


def _divided(
    pack: Pack, tables: dict[str, pa.Table], gone: set[int], note: str
) -> Iterator[list[Bytes]]:
    """The packs that take the place of one, each in parts."""
    groups = list(_groups(pack, tables, gone))
    first, chain = pack.first, pack.chain_before
    for at, pieces in enumerate(groups):
        rows = sum(piece.rows for piece in pieces)
        sections = {}
        for piece in pieces:
            table = piece.table
            if table is None:
                text = f"{datetime.now(UTC).isoformat(timespec='seconds')}: {note}"
                table = pa.table({"where": ["erased"], "note": [text]})
            sections[piece.kind] = piece.rows, encode_table(table)
        # Only the chains at both ends of the old pack are known to others.
        last = at == len(groups) - 1
        after = pack.chain_after if last else xxh3_128_digest(chain + secrets.token_bytes(16))
        yield make_pack(
            pack.identity, first, chain, sections, appended=pack.appended, schema=pack.schema,
            chain_after=after,
        )[1]  # fmt: skip
        first, chain = first + rows, after


def _groups(pack: Pack, tables: dict[str, pa.Table], gone: set[int]) -> Iterator[list[_PackPiece]]:
    """The rows of a pack in their order, grouped by the pack that they become."""
    group: list[_PackPiece] = []
    first = pack.first
    for kind in (EVENTS, CHANGES, SCHEMAS, LOST):
        if kind not in tables:
            continue
        table = tables[kind]
        rows = pack.end - first if kind == LOST else table.num_rows
        at = 0
        while at < rows:
            low, missing = at, first + at in gone
            while at < rows and (first + at in gone) == missing:
                at += 1
            if missing:
                if group:
                    yield group
                yield [_PackPiece(LOST, at - low, None)]
                group = []
            else:
                # Taken, not sliced: a slice is written with bytes of its neighbours as padding.
                kept = table if kind == LOST else table.take(list(range(low, at)))
                if kind == EVENTS:
                    times = moments(table, pack.appended)[low:at]
                    kept = with_moments(kept, times, pack.appended)
                group.append(_PackPiece(kind, at - low, kept))
        first += rows
    if group:
        yield group
