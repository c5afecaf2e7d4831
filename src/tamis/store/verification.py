"""Reads a whole log, reports what is damaged, and repairs it.

Lost rows cannot come back. But whoever runs the log can choose to continue without them. Then a
pack that says so takes the place of the lost rows, and the damaged files are kept in a folder.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa

from tamis.errors import StoreError
from tamis.files.atomic import atomic_file
from tamis.files.json_document import encode_json, read_object, write_json
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder, sync_folder, synced_rename
from tamis.store.base import BASE, read_begin
from tamis.store.head import CLEAN, Head, create_head, is_whole, read_head, this_boot
from tamis.store.log import DOCUMENT, Log, segment_files
from tamis.store.pack import (
    LOST,
    BadPackError,
    Bytes,
    Pack,
    encode_table,
    first_chain,
    make_pack,
    microseconds,
)
from tamis.store.segment import OpenedSegment, first_in, opened_segment, segment_name
from tamis.store.segment_files import HEAD, SegmentFiles

DAMAGED = "damaged"  # the folder of files that were damaged


class Finding(NamedTuple):
    """Something that is wrong with a log."""

    file: str
    what: str


class LostRows(NamedTuple):
    """Rows that cannot be read, from `first` to before `end`."""

    first: int
    end: int
    chain_before: bytes
    chain_after: bytes
    schema: int
    reason: str


class _GoodPack(NamedTuple):
    """A whole pack in a segment."""

    pack: Pack
    segment: int
    offset: int


class LogReport(NamedTuple):
    """What was found in a log."""

    rows: int
    packs: int
    bytes: int
    findings: list[Finding]
    lost: list[LostRows]

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


class Verification:
    """Reads a whole log of format 2. Others may read and append meanwhile."""

    def __init__(self, log: Log) -> None:
        if log.format == 1:
            raise StoreError(
                f"{log.folder}: has format 1, which has no checksums; run `tamis log upgrade "
                f"{log.folder}`, which reads all of it"
            )
        self.log = log
        self.files: SegmentFiles = segment_files(log.folder, str(log.identity))
        self.identity = self.files.identity
        self.findings: list[Finding] = []
        self.lost: list[LostRows] = []
        self.pieces: list[_GoodPack | LostRows] = []
        self.bytes = 0

    def run(self) -> LogReport:
        """Read everything; the report says what is wrong."""
        for _ in self.steps():
            pass
        return self.report()

    def report(self) -> LogReport:
        """What was found."""
        packs = [each for each in self.pieces if isinstance(each, _GoodPack)]
        rows = sum(each.pack.end - each.pack.first for each in packs)
        return LogReport(rows, len(packs), self.bytes, self.findings, self.lost)

    def steps(self) -> Iterator[tuple[int, int]]:
        """Read everything; after each segment, yield how many are done and how many there are."""
        self._document()
        head = self._head()
        begin = self._begin()
        at, chain, schema = begin or (0, first_chain(self.identity), -1)
        names = self.files.list_names()
        for name in sorted(names_in(self.files.folder)):
            first = first_in(name)
            if first is None and not name.startswith("."):
                self._found(name, "is not a part of the log")
        for done, first in enumerate(names):
            if head is not None and first >= head.end and not self._may_follow(first, at):
                self._found(segment_name(first), f"lies after the end of the log, {head.end}")
                continue
            at, chain, schema = self._segment(first, at, chain, schema, head)
            yield done + 1, len(names)
        if head is None:
            return
        if at < head.end:
            name, why = segment_name(head.segment), "is missing or too short: "
            self._lose(at, head.end, chain, head.chain, schema, name, why)
        elif at == head.end and chain != head.chain:
            self._found(HEAD, "does not belong to the last pack")
        elif at > head.end and not self._may_follow(at - 1, at - 1):
            self._found(HEAD, f"is too old: it says that the log ends at {head.end}, not at {at}")

    def _may_follow(self, first: int, at: int) -> bool:
        """Whether rows from a number on may follow the head: whole or torn, not acknowledged."""
        now = self._newest_head()  # others may have appended meanwhile
        if now is None or first < now.end:
            return True
        return first == at and (now.state != CLEAN or now.boot != this_boot())

    def _document(self) -> None:
        """Find damage to the document that does not change its meaning."""
        path = self.log.folder / DOCUMENT
        with os_errors_as(StoreError, f"{path}: cannot be read"):
            if path.read_bytes() != encode_json(read_object(path, StoreError)):
                self._found(DOCUMENT, "is damaged: its bytes are not those that were written")

    def _head(self) -> Head | None:
        try:
            with self._opened_head() as opened:
                if not is_whole(opened, self.identity):
                    self._found(HEAD, "is damaged")
                return read_head(opened, self.identity)
        except OSError as why:
            self._found(HEAD, f"cannot be read: {why.strerror}")
            return None

    def _newest_head(self) -> Head | None:
        with suppress(OSError), self._opened_head() as opened:
            return read_head(opened, self.identity)
        return None

    @contextmanager
    def _opened_head(self) -> Iterator[int]:
        opened = os.open(self.log.folder / HEAD, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield opened
        finally:
            os.close(opened)

    def _begin(self) -> tuple[int, bytes, int] | None:
        try:
            header = read_begin(self.log.folder / BASE, self.identity)
            if header is None:
                return None
            self.log.changes(0, 0)  # reads all of it
        except StoreError as why:
            self._found(BASE, str(why))
            return None
        return header.first, header.chain_after, header.schema

    def _segment(
        self, first: int, at: int, chain: bytes, schema: int, head: Head | None
    ) -> tuple[int, bytes, int]:
        """Read a segment. Returns the number, the chain and the schema after it."""
        name = segment_name(first)
        try:
            with opened_segment(self.files.folder / name) as opened:
                self.bytes += opened.size
                offset = 0
                while offset < opened.size:
                    pack, reason = self._pack(opened, offset)
                    if pack is None:
                        last = head is not None and (
                            first >= head.end or (head.segment == first and offset >= head.size)
                        )
                        after = opened.next_header(offset + 1, self.identity)
                        if not (last and after is None):  # a pack that is being appended is torn
                            self._found(name, f"at byte {offset}: {reason}")
                        if after is None:
                            break
                        offset = after
                        continue
                    if offset == 0 and pack.first != first:
                        self._found(name, f"has the rows from {pack.first} on")
                        break
                    if pack.end <= at:  # it was merged into the segment before
                        offset += pack.size
                        continue
                    if pack.first != at or pack.chain_before != chain:
                        if pack.first <= at:
                            self._found(name, f"at byte {offset}: does not follow on row {at}")
                            break
                        where, why = (name, "") if offset else (segment_name(at), self._gap(at))
                        self._lose(
                            at, pack.first, chain, pack.chain_before, pack.schema, where, why
                        )
                    self.pieces.append(_GoodPack(pack, first, offset))
                    at, chain, schema = pack.end, pack.chain_after, pack.schema_after
                    offset += pack.size
        except OSError as why:
            if first >= at or not isinstance(why, FileNotFoundError):  # merged or trimmed meanwhile
                self._found(name, f"cannot be read: {why.strerror or why}")
        return at, chain, schema

    def _pack(self, opened: OpenedSegment, offset: int) -> tuple[Pack | None, str]:
        try:
            pack = opened.pack_at(offset, self.identity)
            opened.check_body(pack, offset)
        except BadPackError as why:
            return None, str(why)
        return pack, ""

    def _gap(self, at: int) -> str:
        """Why a segment begins after the row that comes next."""
        if not self.pieces:
            return "is missing, or the log was trimmed and its base is missing: "
        last = self.pieces[-1]
        before = segment_name(last.segment if isinstance(last, _GoodPack) else last.first)
        return f"is missing, or {before} is too short: "

    def _found(self, file: str, what: str) -> None:
        self.findings.append(Finding(file, what))

    def _lose(
        self, first: int, end: int, before: bytes, after: bytes, schema: int, where: str, why: str
    ) -> None:
        self._found(where, f"{why}the rows from {first} to before {end} are lost")
        lost = LostRows(first, end, before, after, schema, where)
        self.lost.append(lost)
        self.pieces.append(lost)


def verify(log: Log) -> LogReport:
    """Read a whole log and report what is wrong."""
    return Verification(log).run()


def repair(log: Log, *, skip_lost: bool = False, reason: str = "") -> LogReport:
    """Repair what can be repaired: the head, and files that do not belong there.

    If rows are lost, this raises `StoreError` unless `skip_lost` is set. With `skip_lost`, a pack
    that says when and why takes their place, and readers continue after it. Damaged files are kept
    in the folder `damaged` of the log. Returns what was wrong.
    """
    with log.exclusive():
        checked = Verification(log)
        report = checked.run()
        if report.good:
            return report
        if report.lost and not skip_lost:
            ranges = ", ".join(f"{each.first} to {each.end - 1}" for each in report.lost[:5])
            raise StoreError(
                f"{log.folder}: rows are lost: {ranges}; put the damaged files back from a backup, "
                "or choose to go on without these rows (--skip-lost)"
            )
        if any(each.file == BASE for each in report.findings):
            raise StoreError(f"{log.folder / BASE}: is damaged; put it back from a backup")
        _Repair(checked, reason or "chosen by whoever runs the log").run()
        return report


class _Repair:
    """Rewrites the damaged segments of a log. Nobody else changes the log meanwhile."""

    def __init__(self, checked: Verification, reason: str) -> None:
        self._folder = checked.files.folder
        self._log = checked.log
        self._identity = checked.identity
        self._pieces = checked.pieces
        self._named = {each.file for each in checked.findings}
        now = datetime.now(UTC)
        self._now = microseconds(now)
        self._note = f"{now.isoformat(timespec='seconds')}: {reason}"
        self._aside = checked.log.folder / DAMAGED

    def run(self) -> None:
        groups = self._groups()
        kept: set[str] = set()
        for pieces in groups:
            first = pieces[0]
            start = first.first if isinstance(first, LostRows) else first.pack.first
            name = segment_name(start)
            kept.add(name)
            if not self._is_whole(pieces, name):
                self._write(name, pieces)
        for name in sorted(names_in(self._folder)):
            if name not in kept and not name.startswith("."):
                self._put_aside(name)
                (self._folder / name).unlink()
        sync_folder(self._folder)
        self._write_head(groups)
        if DOCUMENT in self._named:  # it says the same as before
            path = self._log.folder / DOCUMENT
            write_json(path, read_object(path, StoreError))

    def _groups(self) -> list[list[_GoodPack | LostRows]]:
        """The packs, grouped by the file that will hold them."""
        names = {first_in(name) for name in names_in(self._folder)}
        groups: list[list[_GoodPack | LostRows]] = []
        segment: int | None = None
        for piece in self._pieces:
            if isinstance(piece, LostRows):
                fresh = segment is None or piece.first in names
                segment = piece.first if fresh else segment
            else:
                # Packs that follow lost rows at the beginning of a file stay with them.
                fresh = piece.segment != segment
                segment = piece.segment
            if fresh:
                groups.append([])
            groups[-1].append(piece)
        return groups

    def _is_whole(self, pieces: list[_GoodPack | LostRows], name: str) -> bool:
        size = 0
        for piece in pieces:
            if isinstance(piece, LostRows) or segment_name(piece.segment) != name:
                return False
            if piece.offset != size:
                return False
            size += piece.pack.size
        return (self._folder / name).stat().st_size == size

    def _write(self, name: str, pieces: list[_GoodPack | LostRows]) -> None:
        temporary = self._folder / f".merge-{secrets.token_hex(8)}"
        with atomic_file(self._folder / name, temporary=temporary) as file:
            for piece in pieces:
                if isinstance(piece, LostRows):
                    for part in self._lost(piece):
                        file.write(part)
                else:
                    with opened_segment(self._folder / segment_name(piece.segment)) as opened:
                        file.write(opened.content(piece.offset, piece.pack.size))
            if (self._folder / name).exists():
                self._put_aside(name)

    def _lost(self, lost: LostRows) -> list[Bytes]:
        notes = pa.table({"where": [lost.reason], "note": [self._note]})
        sections = {LOST: (lost.end - lost.first, encode_table(notes))}
        return make_pack(
            self._identity, lost.first, lost.chain_before, sections, appended=self._now,
            schema=lost.schema, chain_after=lost.chain_after,
        )[1]  # fmt: skip

    def _put_aside(self, name: str) -> None:
        make_folder(self._aside)
        with suppress(FileExistsError):
            os.link(self._folder / name, self._aside / f"{name}.{secrets.token_hex(4)}")
        sync_folder(self._aside)

    def _write_head(self, groups: list[list[_GoodPack | LostRows]]) -> None:
        path = self._log.folder / HEAD
        turn, head = (
            0,
            Head(
                self._identity, 0, CLEAN, 0, 0, 0, 0, -1, first_chain(self._identity), this_boot()
            ),
        )
        with suppress(OSError):
            opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            old = read_head(opened, self._identity)
            turn = 0 if old is None else old.turn
            os.close(opened)
        if groups:
            last = groups[-1]
            first = last[0].first if isinstance(last[0], LostRows) else last[0].pack.first
            with opened_segment(self._folder / segment_name(first)) as opened_file:
                size = opened_file.size
            end = last[-1]
            if isinstance(end, LostRows):
                head = head._replace(end=end.end, chain=end.chain_after, schema=end.schema)
            else:
                pack = end.pack
                head = head._replace(end=pack.end, chain=pack.chain_after, schema=pack.schema_after)
            head = head._replace(segment=first, size=size, packs=len(last))
        temporary = path.with_name(f".{HEAD}")
        create_head(temporary, head._replace(turn=turn + 1))
        synced_rename(temporary, path)
