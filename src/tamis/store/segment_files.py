"""The segments of a log as one sequence: appended to, found, and read while others change them."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tamis.errors import StoreError
from tamis.files.names import names_in
from tamis.files.os_errors import FailedSyncError, os_errors_as
from tamis.files.sync import sync_folder
from tamis.store.base import read_begin
from tamis.store.head import APPENDING, CLEAN, Head, anchor_head, read_head, this_boot, write_head
from tamis.store.pack import (
    APPENDED,
    BadPackError,
    Bytes,
    Pack,
    Section,
    decode_table,
    make_pack,
    moment_of,
    rows_within,
)
from tamis.store.segment import (
    Segment,
    StaleError,
    first_in,
    opened_segment,
    read_packs,
    section_content,
    segment_name,
)

HEAD = "head"
FULL = 64 << 20  # bytes at which a segment is complete
MOST = 4096  # packs at which a segment is complete
_ATTEMPTS = 20
_WRITTEN = 1 << 30  # bytes of a write at most; the system accepts up to 2 GiB


class _Names(NamedTuple):
    """The segments that a log has, by their first sequence numbers."""

    firsts: list[int]
    last: int  # the first sequence number of the last one


def _is_complete(head: Head) -> bool:
    """Whether the next pack begins a segment."""
    return not head.packs or head.size >= FULL or head.packs >= MOST


class SegmentFiles:
    """The segments in a folder. Threads may share it.

    Callers read only what is on disk: the head, which has the end, is written after the pack.
    """

    def __init__(self, folder: Path, head: Path, base: Path, identity: bytes) -> None:
        self.folder, self.identity = folder, identity
        self._head, self._base = head, base
        self._names = _Names([], -1)
        self._segments: dict[int, Segment] = {}

    # -- the end ---------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The next sequence number."""
        return self.head().end

    @property
    def begin(self) -> int:
        """The first sequence number that is kept."""
        base = read_begin(self._base, self.identity)
        return 0 if base is None else base.first

    def head(self) -> Head:
        """The head; packs after a head that may be too old are found and synced."""
        with self._opened_head(os.O_RDONLY) as (_, head):
            return head if head.boot == this_boot() else self.search(head)

    @contextmanager
    def _opened_head(self, flags: int) -> Iterator[tuple[int, Head]]:
        with os_errors_as(StoreError, f"{self._head}: cannot be read"):
            opened = os.open(self._head, flags | os.O_CLOEXEC)
        try:
            head = read_head(opened, self.identity)
            if head is None:
                raise StoreError(
                    f"{self._head}: is damaged; `tamis log repair` writes it anew from the segments"
                )
            yield opened, head
        finally:
            os.close(opened)

    def search(self, head: Head) -> Head:
        """Find the packs that follow a head that may be too old, and force them to disk.

        A torn last pack does not count: it was not acknowledged. If whole packs follow a broken
        one, or if the log ends before the end in the head, something else damaged the log.
        """
        names = self.list_names()
        at = bisect_right(names, head.segment) - 1
        found = head._replace(boot=this_boot(), state=CLEAN)
        if at < 0:
            if names or head.end != head.segment:
                raise self.damaged(f"its segment {segment_name(head.segment)} is missing")
            return found
        start, reached = names[at], False
        chain: bytes | None = None
        while True:
            path = self.folder / segment_name(start)
            with os_errors_as(StoreError, f"{path}: cannot be read"), opened_segment(path) as file:
                found = found._replace(segment=start, size=0, packs=0)
                end = start
                while found.size < file.size:
                    try:
                        pack = file.pack_at(found.size, self.identity)
                        if pack.first != end or (chain or pack.chain_before) != pack.chain_before:
                            raise BadPackError(f"the pack at {pack.first} does not follow on {end}")
                        if pack.end > head.end:
                            file.check_body(pack, found.size)
                    except BadPackError as why:
                        after = file.next_header(found.size + 1, self.identity)
                        if after is not None or end < head.end:
                            raise self.damaged(f"{path.name}: {why}") from None
                        break
                    end, chain = pack.end, pack.chain_after
                    reached |= end == head.end and chain == head.chain
                    found = found._replace(
                        end=end,
                        size=found.size + pack.size,
                        packs=found.packs + 1,
                        schema=pack.schema_after,
                        chain=chain,
                    )
                os.fsync(file.descriptor)
            if end == start or end not in names:
                break
            start = end
        if found.end < head.end or (found.end == head.end and head.end and not reached):
            raise self.damaged(
                f"the segments end at {found.end}, and the head says that there are rows up to "
                f"{head.end}"
            )
        sync_folder(self.folder)
        return found

    def damaged(self, how: str) -> StoreError:
        """An error that says what is damaged, and what to do."""
        return StoreError(
            f"{self.folder.parent}: the log is damaged: {how}; `tamis log verify` lists what is "
            "lost, and `tamis log repair --skip-lost` goes on without it"
        )

    # -- appending -------------------------------------------------------------------------------

    def ready(self) -> Head:
        """The head for the next append. The caller holds the lock of the log."""
        with self._opened_head(os.O_RDWR) as (opened, head):
            return self._ready(opened, head)

    def append(self, sections: Mapping[str, tuple[int, Bytes]], appended: int) -> range:
        """Append a pack and return its sequence numbers. The caller holds the lock of the log."""
        with self._opened_head(os.O_RDWR) as (opened, found):
            head = self._ready(opened, found)
            if not any(rows for rows, _ in sections.values()):
                return range(head.end, head.end)
            pack, parts = make_pack(
                self.identity, head.end, head.chain, sections, appended=appended, schema=head.schema
            )
            self._put(opened, head, pack, parts)
            return range(pack.first, pack.end)

    def _put(self, opened: int, head: Head, pack: Pack, parts: list[Bytes]) -> None:
        """Write a pack after the end, and the head."""
        new = _is_complete(head)
        # This comes first: if this process dies halfway, the next one must look for the end.
        write_head(opened, head := head._replace(turn=head.turn + 1, state=APPENDING))
        place = head._replace(segment=head.end, size=0, packs=0) if new else head
        self._write(self.folder / segment_name(place.segment), place.size, parts, new)
        after = place._replace(
            turn=head.turn + 1,
            state=CLEAN,
            end=pack.end,
            size=place.size + pack.size,
            packs=place.packs + 1,
            chain=pack.chain_after,
            schema=pack.schema_after,
        )
        write_head(opened, after)
        if new:
            anchor_head(opened, after)

    def _ready(self, opened: int, head: Head) -> Head:
        """The head, repaired if the process that wrote it died or the machine started again."""
        path = self.folder / segment_name(head.segment)
        if head.boot == this_boot() and head.state == CLEAN:
            try:
                if (path.stat().st_size if head.packs else 0) == head.size and not (
                    # The next segment is there already if somebody put an older head back.
                    _is_complete(head) and (self.folder / segment_name(head.end)).exists()
                ):
                    return head
            except FileNotFoundError:
                pass
        after = self.search(head)._replace(turn=head.turn + 1)
        self._cut(after)
        write_head(opened, after)
        anchor_head(opened, after)
        return after

    def _cut(self, head: Head) -> None:
        """Remove a torn pack after the end."""
        path = self.folder / segment_name(head.segment)
        if head.packs and path.stat().st_size > head.size:
            os.truncate(path, head.size)
        torn = self.folder / segment_name(head.end)
        if torn != path or not head.packs:
            torn.unlink(missing_ok=True)

    def _write(self, path: Path, offset: int, parts: list[Bytes], new: bool) -> None:
        """Write a pack to its place and sync it. If that fails, the segment stays as it was."""
        flags = os.O_WRONLY | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if new else 0)
        opened = os.open(path, flags, 0o666)
        try:
            at = offset
            for part in parts:
                view = memoryview(part)
                while view:
                    done = os.pwrite(opened, view[:_WRITTEN], at)
                    at, view = at + done, view[done:]
            # A failed sync is not a full disk: nobody knows what of the pack is on disk.
            try:
                os.fdatasync(opened)
                if new:
                    sync_folder(self.folder)
            except OSError as why:
                raise FailedSyncError(why.errno, why.strerror, str(path)) from why
        except OSError:
            # Nobody has read the pack: the head does not reach that far.
            with suppress(OSError):
                path.unlink() if new else os.ftruncate(opened, offset)
            raise
        finally:
            os.close(opened)

    def delete_before(self, sequence: int) -> None:
        """Delete the segments before the one that begins at a sequence number."""
        for first in self.list_names():
            if first < sequence:
                (self.folder / segment_name(first)).unlink(missing_ok=True)
        sync_folder(self.folder)

    # -- reading ---------------------------------------------------------------------------------

    def list_names(self) -> list[int]:
        """Read the folder: the first sequence numbers of all segments."""
        with os_errors_as(StoreError, f"{self.folder}: cannot be read"):
            names = names_in(self.folder)
        return sorted(first for name in names if (first := first_in(name)) is not None)

    def forget(self) -> None:
        """Forget what is known about the segments: some were merged, trimmed or repaired."""
        self._names, self._segments = _Names([], -1), {}

    def covering(self, start: int, end: int) -> list[Segment]:
        """The segments with a row from `start` to before `end`, which the log has."""
        for attempt in range(_ATTEMPTS):
            try:
                if attempt:
                    self._names = self._without_leftovers()
                return self._covering(start, end)
            except (StaleError, FileNotFoundError, BadPackError) as why:
                reason: Exception = why
                self.forget()
        raise self.damaged(str(reason)) from None

    def _without_leftovers(self) -> _Names:
        """The segments, without those that were merged into another and are not deleted yet.

        Such a segment need not reach up to the next one: a power cut may keep any of them.
        """
        head, begin = self.head(), self.begin
        names: list[int] = []
        end = begin
        for first in self.list_names():
            if end <= first < head.end:
                names.append(first)
                end = self.whole(first).end if first < head.segment else end
        return _Names(names, head.end)

    def _covering(self, start: int, end: int) -> list[Segment]:
        names = self._names.firsts
        if not names or end > self._names.last:
            head = self.head()
            names = [first for first in self.list_names() if first < head.end]
            self._names = _Names(names, head.end)
        found: list[Segment] = []
        at = max(bisect_right(names, start) - 1, 0)
        while start < end:
            if at >= len(names) or names[at] > start:
                raise StaleError(f"there is no segment with the row {start}")
            last = names[at + 1] if at + 1 < len(names) else end
            segment = self._segment(names[at], min(end, last))
            before = found[-1] if found else segment
            if before.end == segment.first and before.chain_after != segment.chain_before:
                name = segment_name(segment.first)
                raise BadPackError(f"{name} does not follow on the segment before")
            found.append(segment)
            start, at = min(last, segment.end), at + 1
        return found

    def whole(self, first: int) -> Segment:
        """A complete segment with all of its packs."""
        try:
            with opened_segment(self.folder / segment_name(first)) as opened:
                return read_packs(opened, Segment(first, -1, b""), self.identity, None)
        except BadPackError as why:
            raise self.damaged(f"{segment_name(first)}: {why}") from None

    def _segment(self, first: int, end: int) -> Segment:
        """A segment, read at least up to a sequence number."""
        known = self._segments.get(first) or Segment(first, -1, b"")
        if known.end >= end:
            return known
        path = self.folder / segment_name(first)
        with opened_segment(path) as opened:
            if known.inode not in (-1, opened.inode):
                known = Segment(first, -1, b"")
            try:
                segment = read_packs(opened, known, self.identity, end)
            except BadPackError as why:
                raise BadPackError(f"{path.name}: {why}") from None
        self._segments[first] = segment
        return segment

    def counts(self, start: int, end: int) -> tuple[int, int]:
        """Count the events and the changes from `start` to before `end`; 0: from the beginning."""
        events = changes = 0
        for segment, begin, stop in self._shares(start, end):
            before, after = segment.counts_before(begin), segment.counts_before(stop)
            events, changes = events + after[0] - before[0], changes + after[1] - before[1]
        return events, changes

    def _shares(self, start: int, end: int) -> Iterator[tuple[Segment, int, int]]:
        """The segments of a range, each with the part of the range to read from it."""
        start = start or self.begin
        segments = self.covering(start, end)
        for at, segment in enumerate(segments):
            # A segment that was merged into the one before it may not be deleted yet.
            last = segments[at + 1].first if at + 1 < len(segments) else end
            yield segment, max(start, segment.first), min(end, last)

    def sections(self, start: int, end: int) -> list[Section]:
        """The sections with a row from `start` to before `end`."""
        return [
            section
            for segment, begin, stop in self._shares(start, end)
            for section in segment.within(begin, stop)
        ]

    def tables(self, kind: str, start: int, end: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of one kind from `start` to before `end`: first number and table."""
        attempts, start = 0, start or self.begin
        while start < end:
            try:
                for segment, begin, stop in self._shares(start, end):
                    for section in segment.within(begin, stop):
                        first, last = max(begin, section.first), min(stop, section.end)
                        if section.kind == kind:
                            table = self.read(section)
                            yield first, rows_within(table, first - section.first, last - first)
                        start, attempts = last, 0
            except StaleError:  # merged meanwhile
                attempts += 1
                if attempts == _ATTEMPTS:
                    raise self.damaged(f"the rows from {start} on are missing") from None
                self.forget()

    def read(self, section: Section) -> pa.Table:
        """The rows of a section, checked."""
        try:
            table = decode_table(section, section_content(self.folder, section))
        except BadPackError as why:
            raise self.damaged(f"{section.file}: {why}") from None
        except FileNotFoundError:
            raise StaleError(section.file) from None
        except OSError as why:
            raise StoreError(f"{self.folder / section.file}: cannot be read: {why}") from why
        moment = moment_of(section.appended).isoformat(timespec="microseconds")
        # Merged events have the times of the packs that they were in.
        return table.replace_schema_metadata({**(table.schema.metadata or {}), APPENDED: moment})
