"""Repairs a damaged log.

Lost rows cannot come back. But whoever runs the log can choose to continue without them. Then a
pack that says so takes the place of the lost rows, and the damaged files are kept in a folder.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from datetime import UTC, datetime

import pyarrow as pa

from tamis.errors import StoreError
from tamis.files.atomic import atomic_file
from tamis.files.json_document import read_object, write_json
from tamis.files.names import names_in
from tamis.files.sync import make_folder, sync_folder, synced_rename
from tamis.store.base import BASE
from tamis.store.head import CLEAN, Head, create_head, read_head, this_boot
from tamis.store.log import DOCUMENT, Log
from tamis.store.pack import LOST, Bytes, encode_table, first_chain, make_pack, microseconds
from tamis.store.segment import first_in, opened_segment, segment_name
from tamis.store.segment_files import HEAD
from tamis.store.verification import GoodPack, LogReport, LostRows, Verification

DAMAGED = "damaged"  # the folder of files that were damaged


def repair(log: Log, *, skip_lost: bool = False, reason: str = "") -> LogReport:
    """Repair what can be repaired: the head, and files that do not belong there.

    If rows are lost, this raises `StoreError` unless `skip_lost` is set. With `skip_lost`, a pack
    that says when and why takes their place, and readers continue after it. Damaged files are kept
    in the folder `damaged` of the log. Returns what was wrong.
    """
    with log.exclusive():
        checked = Verification(log, alone=True)
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

    def _groups(self) -> list[list[GoodPack | LostRows]]:
        """The packs, grouped by the file that will hold them."""
        names = {first_in(name) for name in names_in(self._folder)}
        groups: list[list[GoodPack | LostRows]] = []
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

    def _is_whole(self, pieces: list[GoodPack | LostRows], name: str) -> bool:
        size = 0
        for piece in pieces:
            if isinstance(piece, LostRows) or segment_name(piece.segment) != name:
                return False
            if piece.offset != size:
                return False
            size += piece.pack.size
        return (self._folder / name).stat().st_size == size

    def _write(self, name: str, pieces: list[GoodPack | LostRows]) -> None:
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

    def _write_head(self, groups: list[list[GoodPack | LostRows]]) -> None:
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
