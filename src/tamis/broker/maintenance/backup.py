"""Backup of a data folder while a service runs on it, and restore.

    BACKUP/tamis-backup.json    what is in it, with sizes and checksums
    BACKUP/data/                the data folder, as it was at one sequence number

The state database is copied first, the log last. So nothing in the copy is ahead of its log, and a
start derives the rest, as it does after a crash. A backup appears by one rename, when all of it is
on disk. Complete segments and parts never change: a backup may share them with an earlier one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from xxhash import xxh3_128

from tamis.broker.data_folder import DataFolder
from tamis.broker.maintenance.own_folder import own_folder
from tamis.errors import BrokerError
from tamis.files.atomic import atomic_folder
from tamis.files.json_document import read_json, write_json
from tamis.files.lock import locked
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as
from tamis.replay.manifests import LOCK, MANIFESTS, list_manifests, named
from tamis.store.log import SEGMENTS, Log
from tamis.store.maintenance.copy_log import frozen

DOCUMENT, DATA = "tamis-backup.json", "data"
_FORMAT = 1
_CHUNK = 1 << 20
_MODE = 0o700  # it holds the keys of tickets


class BackupReport(NamedTuple):
    """What a backup holds."""

    end: int  # of the log
    files: int
    bytes: int
    shared: int  # bytes that it has in common with the earlier backup


def back_up(
    folder: Path, out: Path, *, since: Path | None = None, index: bool = False
) -> BackupReport:
    """Copy a data folder, which may be served meanwhile. `since` is an earlier backup."""
    places = own_folder(folder)
    log = Log.open(places.log)
    earlier = {} if since is None else _earlier(since, str(log.identity))
    with os_errors_as(BrokerError, f"{out}: cannot be written"), _new_folder(out) as draft:
        copy = _Copy(places.folder, draft / DATA, since, earlier)
        _copy_state(places, draft / DATA / places.state.name)
        for name in sorted(names_in(places.folder)):
            path = places.folder / name
            if path.is_file() and name != "serving" and not name.startswith((".", "state.db")):
                copy.add(name)
        _copy_notifications(places, copy)
        if index and places.index.is_dir():
            for path in sorted(places.index.rglob("*")):
                if path.is_file() and not path.name.startswith("."):
                    copy.add(str(path.relative_to(places.folder)))
        with frozen(log) as found:
            for part in found.parts:
                copy.add(f"log/{part.name}", part.size, lasting=part.complete)
            found.write_head(draft / DATA / "log")
        copy.note(places.state.name)
        copy.note("log/head")
        write_json(
            draft / DOCUMENT,
            {
                "format": _FORMAT,
                "log": log.identity,
                "end": found.head.end,
                "taken": datetime.now(UTC).isoformat(timespec="seconds"),
                "files": copy.files,
            },
        )
    size = sum(int(each["size"]) for each in copy.files.values())
    return BackupReport(found.head.end, len(copy.files), size, copy.shared)


def restore(backup: Path, folder: Path | None) -> BackupReport:
    """Copy a backup to a new data folder, and check all of it; None: only check it."""
    document = _document(backup)
    if folder is None:
        for name, facts in document["files"].items():
            _check(name, facts, *_copied(backup / DATA / name, None, None))
    else:
        with os_errors_as(BrokerError, f"{folder}: cannot be written"), _new_folder(folder) as new:
            for name, facts in document["files"].items():
                _check(name, facts, *_copied(backup / DATA / name, new / name, None))
            (new / "log" / SEGMENTS).mkdir(parents=True, exist_ok=True)
    size = sum(int(each["size"]) for each in document["files"].values())
    return BackupReport(int(document["end"]), len(document["files"]), size, 0)


class _Copy:
    """Copies files, or links those that an earlier backup has."""

    def __init__(
        self, source: Path, target: Path, since: Path | None, earlier: dict[str, Any]
    ) -> None:
        self._source, self._target, self._since, self._earlier = source, target, since, earlier
        self.files: dict[str, dict[str, Any]] = {}
        self.shared = 0

    def add(self, name: str, size: int | None = None, *, lasting: bool = False) -> None:
        """Copy the first bytes of a file; all of them by default. A lasting one never changes."""
        found = (self._source / name).stat()
        origin = [found.st_ino, found.st_mtime_ns, found.st_size] if lasting else None
        known = self._earlier.get(name) if lasting else None
        if known is not None and known.get("origin") == origin and self._link(name):
            self.files[name] = known
            self.shared += int(known["size"])
            return
        count, checksum = _copied(self._source / name, self._target / name, size)
        self.files[name] = {"size": count, "checksum": checksum}
        if origin is not None:
            self.files[name]["origin"] = origin

    def _link(self, name: str) -> bool:
        assert self._since is not None
        target = self._target / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(self._since / DATA / name)
        except OSError:  # another disk, or no links there
            return False
        return True

    def note(self, name: str) -> None:
        """Note a file that is in the copy already."""
        count, checksum = _copied(self._target / name, None, None)
        self.files[name] = {"size": count, "checksum": checksum}


def _copy_state(places: DataFolder, target: Path) -> None:
    """Copy the database as of one transaction, while others write to it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source, copy = apsw.Connection(str(places.state)), apsw.Connection(str(target))
        source.set_busy_timeout(10_000)
        with copy.backup("main", source, "main") as work:
            while not work.done:
                work.step(-1)
        copy.pragma("journal_mode", "delete")  # one file
        copy.close()
        source.close()
    except apsw.Error as why:
        raise BrokerError(f"{places.state}: cannot be copied: {why}") from why


def _copy_notifications(places: DataFolder, copy: _Copy) -> None:
    root = places.notifications
    if not (root / MANIFESTS).is_dir():
        return
    with locked(root / MANIFESTS / LOCK):  # nobody merges or removes any
        found = list_manifests(root)
        for name in sorted(found):
            copy.add(f"{root.name}/{MANIFESTS}/{name}", lasting=True)
        for kind, name in sorted(named(found.values())):
            copy.add(f"{root.name}/{kind}/{name}", lasting=True)


def _copied(source: Path, target: Path | None, size: int | None) -> tuple[int, str]:
    """Copy the first bytes of a file; how many, and their checksum."""
    sum, count = xxh3_128(), 0
    with source.open("rb") as file:
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
        out = None if target is None else os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            while chunk := file.read(_CHUNK if size is None else min(_CHUNK, size - count)):
                sum.update(chunk)
                count += len(chunk)
                view = memoryview(chunk)
                while out is not None and view:
                    view = view[os.write(out, view) :]
        finally:
            if out is not None:
                os.close(out)
    if target is not None:
        shutil.copymode(source, target)
    if size is not None and count != size:
        raise BrokerError(f"{source}: has {count} bytes instead of {size}; it was cut short")
    return count, sum.hexdigest()


def _check(name: str, facts: dict[str, Any], count: int, checksum: str) -> None:
    if (count, checksum) != (facts["size"], facts["checksum"]):
        raise BrokerError(f"{name}: the backup is damaged: its checksum is wrong; take another one")


def _document(backup: Path) -> dict[str, Any]:
    found = read_json(backup / DOCUMENT, "a backup", BrokerError, newest=_FORMAT)
    names = found.get("files")
    if not isinstance(names, dict) or any(".." in Path(each).parts for each in names):
        raise BrokerError(f"{backup / DOCUMENT}: is damaged")
    return found


def _earlier(since: Path, identity: str) -> dict[str, Any]:
    document = _document(since)
    if document["log"] != identity:
        raise BrokerError(f"{since}: is a backup of another log")
    files: dict[str, Any] = document["files"]
    return files


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears when it is whole. An empty one may be there already."""
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()
    if os.path.lexists(path):
        raise BrokerError(f"{path}: exists already; choose another folder")
    with atomic_folder(path.absolute()) as draft:
        draft.chmod(_MODE)
        yield draft
