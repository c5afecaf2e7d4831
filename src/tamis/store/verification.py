"""Reads a whole log and reports what is damaged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from tamis.errors import StoreError
from tamis.files.json_document import encode_json, read_object
from tamis.files.lock import locked
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as
from tamis.store.base import BASE, read_begin
from tamis.store.head import CLEAN, Head, is_whole, read_head, this_boot
from tamis.store.log import DOCUMENT, Log, segment_files
from tamis.store.log_locks import COMPACTING
from tamis.store.pack import BadPackError, Pack, first_chain
from tamis.store.segment import OpenedSegment, first_in, opened_segment, segment_name
from tamis.store.segment_files import HEAD, SegmentFiles


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


class GoodPack(NamedTuple):
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
    """Reads a whole log of format 2. Others may use the log meanwhile, unless it is `alone`."""

    def __init__(self, log: Log, *, alone: bool = False) -> None:
        if log.format == 1:
            raise StoreError(
                f"{log.folder}: has format 1, which has no checksums; run `tamis log upgrade "
                f"{log.folder}`, which reads all of it"
            )
        self.log, self._alone = log, alone
        self.files: SegmentFiles = segment_files(log.folder, str(log.identity))
        self.identity = self.files.identity
        self._begin_again()

    def _begin_again(self) -> None:
        self.findings: list[Finding] = []
        self.lost: list[LostRows] = []
        self.pieces: list[GoodPack | LostRows] = []
        self.bytes = 0

    def run(self) -> LogReport:
        """Read everything; the report says what is wrong."""
        for _ in self.steps():
            pass
        return self.report()

    def report(self) -> LogReport:
        """What was found."""
        packs = [each for each in self.pieces if isinstance(each, GoodPack)]
        rows = sum(each.pack.end - each.pack.first for each in packs)
        return LogReport(rows, len(packs), self.bytes, self.findings, self.lost)

    def steps(self) -> Iterator[tuple[int, int]]:
        """Read everything; after each segment, yield how many are done and how many there are."""
        yield from self._read_all()
        if not self.findings or self._alone:
            return
        # Others may have merged or trimmed segments meanwhile: look again while nobody does.
        with ExitStack() as cleanup:
            try:
                cleanup.enter_context(locked(self.log.folder / COMPACTING))
            except OSError:  # a log that may only be read
                return
            self._begin_again()
            yield from self._read_all()

    def _read_all(self) -> Iterator[tuple[int, int]]:
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
                    self.pieces.append(GoodPack(pack, first, offset))
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
        before = segment_name(last.segment if isinstance(last, GoodPack) else last.first)
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
