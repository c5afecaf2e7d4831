"""Packs: the unit in which a log grows. A pack is on disk whole, or it is not in the log.

    pack      header (256 bytes), then a section for each kind of row in the pack
    section   an Arrow IPC stream, padded with zeros to a multiple of 64 bytes

The rows of a pack are numbered one after another: first its events, then its changes, then its
schema records. XXH3 checksums cover every byte. The header ends with its own checksum, and it holds
the checksums of the sections. The header names the log and links the pack to its neighbours:
`chain_before` is the `chain_after` of the previous pack. So readers notice not only a damaged pack,
but also a pack that is missing, comes from another log, or stands in the wrong place.

A section of the kind `LOST` takes the place of rows that were lost to damage, if somebody chose to
continue without them. The section covers the sequence numbers of all lost rows. It has a single
row, which says when and why.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest, xxh3_128_digest

from tamis.errors import StoreError, counted

EVENTS, CHANGES, SCHEMAS, LOST = "events", "changes", "schemas", "lost"
KINDS = (EVENTS, CHANGES, SCHEMAS, LOST)
APPENDED = "tamis.appended"  # metadata of the tables that a log returns
MOMENTS = b"tamis.moments"  # metadata of merged events: when they were appended, as runs of rows
ALIGNMENT = 64  # Arrow reads buffers in place if they begin at a multiple of this
HEADER = 256  # bytes
MAGIC = b"tamispk2"
_MERGED = 1  # flag: the pack replaces others and takes over their chain
_FIELDS = struct.Struct("<8s16sqqqq4q4q4Q16s16s")
_SUM = struct.Struct("<Q")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


Bytes = bytes | pa.Buffer


class BadPackError(Exception):
    """Bytes that are not a pack of this log: damaged, torn, or from another log."""


class Section(NamedTuple):
    """Rows of one kind with the sequence numbers from `first` on, and where they are."""

    first: int
    rows: int
    kind: str
    file: str  # the name of the segment
    inode: int  # the inode of the segment: another file may take its name
    offset: int
    size: int
    sum: int
    appended: int  # microseconds since 1970 UTC
    schema: int  # the number of the schema record that holds for the rows; -1: the log's own

    @property
    def end(self) -> int:
        """The sequence number after the last row."""
        return self.first + self.rows


class Pack(NamedTuple):
    """What the header of a pack says."""

    identity: bytes
    first: int
    appended: int  # microseconds since 1970 UTC
    schema: int  # the number of the schema record that holds for its rows; -1: the log's own
    rows: tuple[int, ...]  # of each kind
    sizes: tuple[int, ...]  # bytes of the section of each kind
    sums: tuple[int, ...]
    chain_before: bytes
    chain_after: bytes
    merged: bool = False

    @property
    def end(self) -> int:
        """The sequence number after the last row."""
        return self.first + sum(self.rows)

    @property
    def schema_after(self) -> int:
        """The number of the schema record that holds after the pack; -1: the log's own."""
        before, records = sum(self.rows[:2]), self.rows[2]
        return self.first + before + records - 1 if records else self.schema

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return HEADER + sum(self.sizes)

    def sections(self, file: str, inode: int, offset: int) -> list[Section]:
        """The sections that have rows, for a pack at an offset of a segment."""
        found, first, offset = [], self.first, offset + HEADER
        for kind, rows, size, sum_ in zip(KINDS, self.rows, self.sizes, self.sums, strict=True):
            if rows:
                place = (first, rows, kind, file, inode, offset, size, sum_)
                found.append(Section(*place, self.appended, self.schema))
            first, offset = first + rows, offset + size
        return found


def first_chain(identity: bytes) -> bytes:
    """The `chain_before` of the first pack of a log."""
    return xxh3_128_digest(MAGIC + identity)


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970 UTC."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(microseconds: int) -> datetime:
    """The moment that is this many microseconds after 1970 UTC."""
    return _EPOCH + microseconds * _MICROSECOND


def encode_table(table: pa.Table) -> pa.Buffer:
    """A table as the bytes of a section."""
    sink = pa.BufferOutputStream()
    runs = (table.schema.metadata or {}).get(MOMENTS)
    kept = None if runs is None else {MOMENTS: runs}
    whole = table.combine_chunks().replace_schema_metadata(kept)
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    sink.write(bytes(-sink.tell() % ALIGNMENT))
    return sink.getvalue()


def make_pack(
    identity: bytes,
    first: int,
    chain_before: bytes,
    sections: Mapping[str, tuple[int, Bytes]],
    *,
    appended: int,
    schema: int,
    chain_after: bytes | None = None,
) -> tuple[Pack, list[Bytes]]:
    """A pack of sections (the number of rows and the bytes of each kind), and its bytes in parts.

    Pass `chain_after` for a pack that replaces others: the `chain_after` of the last one.
    """
    parts = [sections.get(kind, (0, b"")) for kind in KINDS]
    merged = chain_after is not None
    pack = Pack(
        identity,
        first,
        appended,
        schema,
        tuple(rows for rows, _ in parts),
        tuple(len(content) for _, content in parts),
        tuple(xxh3_64_intdigest(content) for _, content in parts),
        chain_before,
        b"" if chain_after is None else chain_after,
        merged,
    )
    if chain_after is None:
        pack = pack._replace(chain_after=_chain(pack))
    return pack, [encode_header(pack), *(content for _, content in parts if content)]


def encode_header(pack: Pack) -> bytes:
    """The bytes of a header."""
    fields = _fields(pack, pack.chain_after)
    fields += bytes(HEADER - _SUM.size - len(fields))
    return fields + _SUM.pack(xxh3_64_intdigest(fields))


def decode_header(data: Any, identity: bytes) -> Pack:
    """Decode the header of a pack of this log; raises `BadPackError` for any other bytes."""
    if len(data) < HEADER:
        raise BadPackError(f"{counted(len(data), 'byte is', 'bytes are')} too few for a header")
    header = bytes(data[:HEADER])
    body = header[: HEADER - _SUM.size]
    if not header.startswith(MAGIC):
        raise BadPackError("no pack begins here")
    if _SUM.unpack(header[len(body) :])[0] != xxh3_64_intdigest(body):
        raise BadPackError("the checksum of a header is wrong")
    _, owner, first, appended, schema, flags, *numbers, before, after = _FIELDS.unpack_from(body)
    if owner != identity:
        raise BadPackError(f"it belongs to another log, {owner.hex()}")
    rows, sizes, sums = (tuple(numbers[at : at + 4]) for at in (0, 4, 8))
    if min(first, *rows, *sizes) < 0 or not any(rows) or any(size % ALIGNMENT for size in sizes):
        raise BadPackError("a header has impossible numbers")
    merged = flags & _MERGED != 0
    return Pack(owner, first, appended, schema, rows, sizes, sums, before, after, merged)


def check_section(section: Section, content: Any) -> None:
    """Raise `BadPackError` if the bytes of a section are not those that were written."""
    if len(content) != section.size or xxh3_64_intdigest(content) != section.sum:
        raise BadPackError(f"the checksum of the {section.kind} from {section.first} on is wrong")


def decode_table(section: Section, content: pa.Buffer) -> pa.Table:
    """The rows of a section. The bytes of the section are checked first."""
    check_section(section, content)
    try:
        table = pa.ipc.open_stream(content).read_all()
    except (pa.ArrowException, OSError, ValueError) as why:
        raise BadPackError(f"the {section.kind} from {section.first} on: {why}") from None
    if table.num_rows != section.rows and section.kind != LOST:
        raise BadPackError(
            f"the {section.kind} from {section.first} on have {table.num_rows} rows instead of "
            f"{section.rows}"
        )
    return table


def check_chain(pack: Pack) -> None:
    """Raise `BadPackError` if the chain of a pack does not follow from its content."""
    if not pack.merged and pack.chain_after != _chain(pack):
        raise BadPackError(f"the chain of the pack at {pack.first} is wrong")


def _chain(pack: Pack) -> bytes:
    return xxh3_128_digest(_fields(pack, bytes(16)))


def _fields(pack: Pack, chain_after: bytes) -> bytes:
    return _FIELDS.pack(
        MAGIC, pack.identity, pack.first, pack.appended, pack.schema, _MERGED * pack.merged,
        *pack.rows, *pack.sizes, *pack.sums, pack.chain_before, chain_after,
    )  # fmt: skip


def with_moments(table: pa.Table, times: NDArray[np.int64], pack: int) -> pa.Table:
    """Events of several packs, which keep the times of these beside that of their own pack.

    The metadata has runs of rows with one time: how many rows, and how much later than the run
    before they were appended.
    """
    if (times == pack).all():
        return table.replace_schema_metadata(None)
    firsts = np.flatnonzero(np.diff(times, prepend=times[:1] - 1))
    rows, later = np.diff(firsts, append=len(times)), np.diff(times[firsts], prepend=0)
    runs = json.dumps([rows.tolist(), later.tolist()], separators=(",", ":"))
    return table.replace_schema_metadata({MOMENTS: runs.encode()})


def moments(table: pa.Table, pack: int | None = None) -> NDArray[np.int64]:
    """When each row of a table from a log was appended, in microseconds since 1970.

    `pack` is the time of its pack; a table that a log returns has it.
    """
    runs = (table.schema.metadata or {}).get(MOMENTS)
    if runs is not None:
        rows, later = json.loads(runs)
        return np.repeat(np.cumsum(np.array(later, np.int64)), rows)
    pack = microseconds(appended(table)) if pack is None else pack
    return np.full(table.num_rows, pack, np.int64)


def rows_within(table: pa.Table, first: int, rows: int) -> pa.Table:
    """Some rows of a table that a log returns, with their times."""
    found = table.slice(first, rows)
    metadata = table.schema.metadata or {}
    if MOMENTS not in metadata or found.num_rows == table.num_rows:
        return found
    times, pack = moments(table)[first : first + rows], microseconds(appended(table))
    own = {key: value for key, value in metadata.items() if key != MOMENTS}
    cut = with_moments(found, times, pack).schema.metadata or {}
    return found.replace_schema_metadata({**own, **cut})


def appended(table: pa.Table) -> datetime:
    """Return when the rows of a table from a log were appended.

    A merged pack has the time of the last pack in it.
    """
    written = (table.schema.metadata or {}).get(APPENDED.encode())
    if written is None:
        raise StoreError("the table does not come from a log: it lacks the time of its append")
    return datetime.fromisoformat(written.decode())
