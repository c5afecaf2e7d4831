"""Who matches a log, and from which sequence number on: the switch, and its fence.

    DATA/matching.json    {"format": 1, "log": …, "shifts": [{"name", "start", "matching"}, …]}

A shift begins where the notifications in the files end. Each matcher works for one shift, and
commits its manifests under a lock, if its shift is the last one. A switch takes the same lock. So
the matcher before can add nothing after a switch, however long it goes on: no event is matched
twice, and none is skipped.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tamis.errors import StoreError
from tamis.files.json_document import check_format, read_object, write_json
from tamis.files.lock import locked
from tamis.files.names import plain_name
from tamis.files.os_errors import os_errors_as
from tamis.replay.coverage import coverage, drop_lost
from tamis.store.log import Log

INLINE, SPARK = "inline", "spark"
WAYS = (INLINE, SPARK)
DOCUMENT, LOCK = "matching.json", "matching.lock"
LOG, INDEX, OUT = "log", "index", "notifications"
_FORMAT = 1


class SupersededError(StoreError):
    """A matcher whose shift is over: another one goes on from where the files end."""


class Shift(NamedTuple):
    """From which sequence number on who matches."""

    name: str  # unique
    start: int
    matching: str  # INLINE or SPARK


class MatchingShifts:
    """The shifts of the matchers of one data folder. Threads and processes may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.path = self.folder / DOCUMENT
        self.log, self.index, self.out = (self.folder / each for each in (LOG, INDEX, OUT))

    def current(self) -> Shift | None:
        """The last shift; None if there is no file yet."""
        if not self.path.exists():
            return None
        return self._read()[-1]

    def checkpoint(self, shift: Shift) -> Path:
        """Where Spark keeps its checkpoint of a shift: beside the notifications that it is for."""
        return self.out / f"checkpoint-{shift.name}"

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Commit something during the block; raises `SupersededError` if the shift is over."""
        with self._locked():
            now = self.current()
            if now is None:
                raise StoreError(
                    f"{self.path}: is missing, so nobody knows who matches; put it back, or "
                    "start `tamis serve` again"
                )
            if now.name != name:
                raise SupersededError(
                    f"{self.folder}: matching went over to {now.matching} at {now.start:,}"
                )
            yield

    def is_whole(self, log: Log, shift: Shift) -> bool:
        """Whether the files have all notifications of the shifts before, and none that is lost."""
        found = coverage(self.out, log.begin)
        reached = max(found.end, log.begin)
        return not found.lost and shift.start <= reached <= log.end

    def begin(self, log: Log, matching: str) -> Shift:
        """Begin a new shift, where the notifications in the files end. The one before is over.

        Notifications after a gap in the files are removed: they are found again.
        """
        with self._locked():
            start = max(drop_lost(self.out, log.begin).end, log.begin)
            if start > log.end:
                raise StoreError(
                    f"{self.out}: has notifications up to {start:,}, and the log ends at "
                    f"{log.end:,}: move the folder away if the log was put back from a backup; it "
                    "is built again"
                )
            shift = Shift(secrets.token_hex(4), start, matching)
            before = self._read() if self.path.exists() else []
            document = {
                "format": _FORMAT,
                "log": log.identity,
                "shifts": [each._asdict() for each in (*before, shift)],
            }
            with os_errors_as(StoreError, f"{self.path}: cannot be written"):
                write_json(self.path, document)
        return shift

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (
            os_errors_as(StoreError, f"{self.folder}: cannot be used"),
            locked(self.folder / LOCK),
        ):
            yield

    def check_log(self, log: Log) -> None:
        """Refuse a file that belongs to another log."""
        if self.path.exists() and self._document().get("log") != log.identity:
            raise StoreError(
                f"{self.path}: belongs to another log; move it and {self.out} away, or put the "
                "log back"
            )

    def check_trim(self, log: Log, before: int) -> None:
        """Refuse to trim events of this folder's log that are not matched yet, whoever matches."""
        if not self.path.exists() or log.folder != self.log:
            return
        reached = max(coverage(self.out, log.begin).end, log.begin)
        if before > reached:
            raise StoreError(
                f"{log.folder}: events from {reached:,} on are not matched yet; trim up to there, "
                "or wait until they are"
            )

    def _read(self) -> list[Shift]:
        given: Any = self._document().get("shifts")
        try:
            shifts = [Shift(str(one["name"]), one["start"], one["matching"]) for one in given]
        except (KeyError, TypeError):
            shifts = []
        right = all(each.matching in WAYS and isinstance(each.start, int) for each in shifts)
        if not shifts or not right:
            raise self._damaged("it has no shifts")
        for each in shifts:
            plain_name(each.name, f"{self.path}: is damaged, a shift", StoreError)
        return shifts

    def _document(self) -> dict[str, Any]:
        try:
            found = read_object(self.path, StoreError)
        except StoreError as why:
            raise self._damaged(str(why)) from None
        check_format(self.path, found.get("format"), _FORMAT, StoreError)
        return found

    def _damaged(self, why: str) -> StoreError:
        return StoreError(
            f"{self.path}: is damaged: {why}; remove the file, and say who matches with `tamis "
            "serve --matching inline`, or spark"
        )
