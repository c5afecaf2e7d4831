"""Segments: the files of a log, each with packs one after another.

A segment is named by the sequence number of its first row. The last segment grows; the others are
complete. Compaction may replace a complete segment with a file that has the same rows in fewer
packs. Readers that know the old packs notice the new file by its inode.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tamis.store.pack import (
    ALIGNMENT,
    CHANGES,
    EVENTS,
    HEADER,
    MAGIC,
    BadPackError,
    Pack,
    Section,
    check_chain,
    check_section,
    decode_header,
)

_NAME = re.compile(r"(\d{20})\.segment")
_MAPPED = 64 << 10  # smaller sections are read: that is faster, and a process has 65,530 maps


def segment_name(first: int) -> str:
    """The name of the segment that begins at a sequence number."""
    return f"{first:020d}.segment"


def first_in(name: str) -> int | None:
    """The sequence number in the name of a segment; None for other names."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[1])


class StaleError(Exception):
    """A segment that has changed meanwhile: it was merged, swept or trimmed."""


class Segment:
    """The packs of a segment that were read so far. Immutable, so threads may share it."""

    def __init__(self, first: int, inode: int, chain: bytes) -> None:
        self.first, self.inode = first, inode
        self.chain_before = self.chain_after = chain
        self.end, self.size, self.packs = first, 0, 0
        self.merged = True  # whether every pack that was read is merged
        self.sections: list[Section] = []
        self._firsts: list[int] = []
        self._before: list[tuple[int, int]] = [(0, 0)]  # events and changes before each section

    def extended(self, packs: list[Pack]) -> Segment:
        """The segment with more packs, which follow its last one."""
        after = Segment(self.first, self.inode, self.chain_before)
        after.end, after.size, after.chain_after = self.end, self.size, self.chain_after
        after.sections, after._firsts = self.sections.copy(), self._firsts.copy()
        after._before, after.packs = self._before.copy(), self.packs + len(packs)
        after.merged = self.merged and all(pack.merged for pack in packs)
        for pack in packs:
            for section in pack.sections(segment_name(self.first), self.inode, after.size):
                events, changes = after._before[-1]
                events += section.rows * (section.kind == EVENTS)
                changes += section.rows * (section.kind == CHANGES)
                after.sections.append(section)
                after._firsts.append(section.first)
                after._before.append((events, changes))
            after.size += pack.size
            after.end, after.chain_after = pack.end, pack.chain_after
        return after

    def counts_before(self, sequence: int) -> tuple[int, int]:
        """Count the events and the changes from the beginning to before a sequence number."""
        at = bisect_right(self._firsts, sequence) - 1
        if at < 0:
            return 0, 0
        section, (events, changes) = self.sections[at], self._before[at]
        rows = min(sequence, section.end) - section.first
        return (
            events + rows * (section.kind == EVENTS),
            changes + rows * (section.kind == CHANGES),
        )

    def within(self, start: int, end: int) -> Iterator[Section]:
        """Yield the sections with a row from `start` to before `end`."""
        at = max(bisect_right(self._firsts, start) - 1, 0)
        while at < len(self.sections) and self.sections[at].first < end:
            if self.sections[at].end > start:
                yield self.sections[at]
            at += 1


class OpenedSegment(NamedTuple):
    """A segment that is open for reading."""

    descriptor: int
    inode: int
    size: int

    def pack_at(self, offset: int, identity: bytes) -> Pack:
        """The pack at an offset; raises `BadPackError` if no whole pack begins there."""
        pack = decode_header(os.pread(self.descriptor, HEADER, offset), identity)
        if offset + pack.size > self.size:
            raise BadPackError(f"the pack at {pack.first} is cut short")
        check_chain(pack)
        return pack

    def check_body(self, pack: Pack, offset: int) -> None:
        """Raise `BadPackError` if a section of a pack is damaged."""
        for section in pack.sections("", self.inode, offset):
            check_section(section, self.content(section.offset, section.size))

    def content(self, offset: int, size: int) -> pa.Buffer:
        """Some bytes, mapped if there are many; fewer where the file ends."""
        if size < _MAPPED or self.size < offset + size:
            return pa.py_buffer(os.pread(self.descriptor, size, offset))
        with pa.memory_map(f"/proc/self/fd/{self.descriptor}") as source:
            source.seek(offset)
            return source.read_buffer(size)  # the map stays valid after the file is closed

    def next_header(self, offset: int, identity: bytes) -> int | None:
        """The offset of the first header of this log at or after an offset, if there is one."""
        offset += -offset % ALIGNMENT
        while offset + HEADER <= self.size:
            data = os.pread(self.descriptor, 1 << 20, offset)
            at = data.find(MAGIC)
            while at >= 0:
                if at % ALIGNMENT == 0 and len(data) - at >= HEADER:
                    try:
                        decode_header(data[at : at + HEADER], identity)
                    except BadPackError:
                        pass
                    else:
                        return offset + at
                at = data.find(MAGIC, at + 1)
            offset += (1 << 20) - HEADER
        return None


@contextmanager
def opened_segment(path: Path) -> Iterator[OpenedSegment]:
    """Open a segment for reading; raises `FileNotFoundError` if it is gone."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        stat = os.fstat(descriptor)
        yield OpenedSegment(descriptor, stat.st_ino, stat.st_size)
    finally:
        os.close(descriptor)


def packs_in(opened: OpenedSegment, identity: bytes) -> Iterator[tuple[int, Pack]]:
    """Yield the packs of a segment with their offsets; raises `BadPackError` at a damaged one."""
    offset = 0
    while offset < opened.size:
        pack = opened.pack_at(offset, identity)
        yield offset, pack
        offset += pack.size


def read_packs(
    opened: OpenedSegment, segment: Segment, identity: bytes, end: int | None
) -> Segment:
    """The segment with the packs that follow, up to a sequence number or the end of the file.

    Raises `BadPackError` if a pack is damaged or does not follow the previous one.
    """
    packs: list[Pack] = []
    at, offset, chain = segment.end, segment.size, segment.chain_after
    while at < end if end is not None else offset < opened.size:
        pack = opened.pack_at(offset, identity)
        if not offset and not packs:
            chain = pack.chain_before if pack.first == segment.first else chain
        if pack.first != at or pack.chain_before != chain:
            raise BadPackError(f"the pack at {pack.first} does not follow on {at}")
        packs.append(pack)
        at, offset, chain = pack.end, offset + pack.size, pack.chain_after
    if packs and not segment.packs:
        segment = Segment(segment.first, opened.inode, packs[0].chain_before)
    return segment.extended(packs)


def section_content(folder: Path, section: Section) -> pa.Buffer:
    """The bytes of a section, mapped if it is large; raises `StaleError` if the file is new."""
    with opened_segment(folder / section.file) as opened:
        if opened.inode != section.inode:
            raise StaleError(section.file)
        return opened.content(section.offset, section.size)
