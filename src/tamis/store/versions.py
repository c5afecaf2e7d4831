"""The versions of an index: published, found, kept while somebody needs them, and swept.

    INDEX/v00000000000000000042/   a version, see `version`
    INDEX/readers/, jobs/, pins/   who may still ask for which version
    INDEX/lock                     held while folders get and lose their names

A version is written into a folder with another name, which is renamed once it is complete on disk.

    INDEX/pins/<query>.json    {"batches": {"7": 42, "8": 57}}, for the last batches of a query

A pin is the version with which a batch of a stream was matched. Spark runs a batch again after it
was killed halfway, and retries a task that failed. By then there may be a newer version, but all
tasks of a batch must use the same one. So the first that asks writes down which, and all others
follow.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tamis.errors import StoreError
from tamis.files.json_document import read_json, write_json
from tamis.files.lock import locked
from tamis.files.names import chosen_name, names_in, own_files
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder, sync_folder, sync_tree, synced_rename
from tamis.store.log import Log
from tamis.store.version import OF, Version, read_document, sequence_in, version_name

LOCK = "lock"
_DRAFT, _SWEPT = ".publishing-", ".swept-"  # prefixes of names that readers ignore
_DRAFT_LOCK = ".lock"  # suffix beside a draft: locked while its publisher is alive
_READERS, _JOBS = "readers", "jobs"
PINS = "pins"
KEPT = 100  # batches per query, as many as Spark keeps the offsets of by default
PATIENCE = 30 * 24 * 3600.0  # seconds for which the versions of an idle query are kept
_DAY = 24 * 3600.0  # seconds after which a job that has not ended counts as dead


class Versions:
    """The versions in a folder. The first `publish` creates it.

    >>> import tempfile; place = tempfile.TemporaryDirectory()
    >>> from tamis.store import describe
    >>> versions = Versions(place.name)
    >>> with versions.publish(42) as folder:
    ...     describe(folder, sequence=42, schema={}, ids="text", shards=[])
    >>> version = versions.latest()
    >>> version.sequence, versions.at(41)
    (42, None)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()

    def __repr__(self) -> str:
        return f"Versions({str(self.folder)!r})"

    # -- finding ---------------------------------------------------------------------------------

    def all(self) -> list[Version]:
        """Return all versions, the oldest first; an empty list if the folder does not exist."""
        with os_errors_as(StoreError, f"{self.folder}: cannot be read"):
            try:
                names = names_in(self.folder)
            except FileNotFoundError:
                return []
        found = [
            Version(self.folder / name, sequence)
            for name in names
            if (sequence := sequence_in(name)) is not None
        ]
        return sorted(found, key=lambda each: each.sequence)

    def latest(self) -> Version | None:
        """Return the newest version, if there is one."""
        found = self.all()
        return found[-1] if found else None

    def at(self, sequence: int) -> Version | None:
        """Return the newest version that is not after a sequence number, if there is one."""
        older = [each for each in self.all() if each.sequence <= sequence]
        return older[-1] if older else None

    def check_log(self, log: Log) -> None:
        """Refuse a log from which the versions were not compiled: its numbers mean other rows.

        Versions that do not name a log, such as conditions compiled without one, fit any log.
        """
        latest = self.latest()
        of = None if latest is None else latest.made.get(OF)
        if of is not None and log.identity is not None and of != log.identity:
            raise StoreError(
                f"{self.folder}: was compiled from another log than {log.folder}, or that log was "
                "created again since; choose another folder for the index of this log"
            )

    # -- publishing ------------------------------------------------------------------------------

    @contextmanager
    def publish(self, sequence: int, *, new: bool = False) -> Iterator[Path]:
        """Create a folder to write a version into; it gets its name at the end, on disk.

        Write a `version.json` with `describe`. If the block raises, nothing changes. If somebody
        else has published the same sequence number meanwhile, that version stays and this one is
        dropped, because both are the same. With `new` they may differ, and this one is refused.
        """
        target = self.folder / version_name(sequence)
        if new:
            _check_new(target, sequence)
        draft = self.folder / f"{_DRAFT}{sequence}-{secrets.token_hex(8)}"
        draft_lock = draft.with_name(draft.name + _DRAFT_LOCK)
        with ExitStack() as cleanup:
            with os_errors_as(StoreError, f"{self.folder}: a version cannot be published here"):
                make_folder(self.folder)
                with self._locked():
                    self._delete_leftovers()
                    cleanup.enter_context(locked(draft_lock))
                    cleanup.callback(draft_lock.unlink, missing_ok=True)
                    cleanup.callback(shutil.rmtree, draft, ignore_errors=True)
                    draft.mkdir()
            yield draft
            read_document(draft, sequence)
            with os_errors_as(StoreError, f"{draft}: the version cannot be published"):
                sync_tree(draft)
                with self._locked():
                    if new:
                        _check_new(target, sequence)
                    if not target.exists():
                        synced_rename(draft, target)

    # -- keeping and sweeping --------------------------------------------------------------------

    def pin(self, query: str, batch: int, keep: int = KEPT) -> Version:
        """Return the version for a batch of a stream: the latest one when this is first asked.

        The choice is on disk when this returns, and the answer stays the same, so a batch that
        runs again is matched with the same version. The last `keep` batches of a query are known.
        """
        pins = Pins(self.folder, query)
        sequence = pins.version(batch)
        if sequence is None:
            what = f"{self.folder}: the version of a batch cannot be noted"
            with os_errors_as(StoreError, what), self._locked():
                sequence = pins.version(batch)
                if sequence is None:
                    latest = self.latest()
                    if latest is None:
                        raise StoreError(
                            f"{self.folder}: there is no version to match with; compile one first"
                        )
                    sequence = latest.sequence
                    pins.put(batch, sequence, keep)
        version = Version(self.folder / version_name(sequence), sequence)
        if not version.folder.is_dir():
            raise StoreError(
                f"{version.folder}: batch {batch} of the query {query} was matched with this "
                f"version, which has been swept since; remove the batch from {pins.path} to match "
                "it with the latest version, which may give other rows"
            )
        return version

    def retain(self, reader: str, sequence: int | None) -> None:
        """Keep the version that serves a sequence number until the named reader says otherwise.

        The reader may still ask for events from there on; None: it is done. Call this before
        choosing a version.
        """
        path = self.folder / _READERS / f"{chosen_name(reader, 'a reader', StoreError)}.json"
        with os_errors_as(StoreError, f"{path}: cannot be written"):
            if sequence is None:
                self._remove(path)
                return
            self._note(path, {"sequence": sequence})

    def hold(self, sequences: Iterable[int]) -> Path | None:
        """Keep the versions that a job reads, for at most a day; return the hold, for `release`.

        Returns None if the folder is not writable: then nothing is kept. A version may have been
        swept just before.
        """
        path = self.folder / _JOBS / f"{secrets.token_hex(8)}.json"
        try:
            self._note(path, {"sequences": sorted({*sequences})})
        except OSError:
            return None
        return path

    def release(self, hold: Path | None) -> None:
        """Let go of what `hold` kept."""
        if hold is not None:
            with suppress(OSError):
                self._remove(hold)

    @contextmanager
    def held(self, sequence: int | None = None) -> Iterator[Version | None]:
        """Hold the latest version, or that of a sequence number, during the block."""
        with ExitStack() as cleanup:
            while True:
                version = self.latest() if sequence is None else self.at(sequence)
                if version is None:
                    break
                hold = self.hold([version.sequence])
                cleanup.callback(self.release, hold)
                if hold is None or version.folder.is_dir():
                    break  # otherwise it was swept before it was held
            yield version

    def sweep(self, keep_from: int) -> list[int]:
        """Delete the versions before the one that serves a sequence number; return which.

        Versions stay that serve a retained reader, are held, or are pinned. A version loses its
        name first, so nobody finds half of one. Processes that have its files mapped keep them.
        """
        if not self.folder.is_dir():
            return []
        with os_errors_as(StoreError, f"{self.folder}: cannot be swept"), self._locked():
            serving = self.at(keep_from)
            if serving is None:
                return []
            readers = [self.at(sequence) for sequence in self._needed()]
            kept = pinned(self.folder) | {each.sequence for each in readers if each is not None}
            old = [each for each in self.all() if each.sequence < serving.sequence]
            old = [each for each in old if each.sequence not in kept]
            for version in old:
                name = f"{_SWEPT}{version.folder.name}-{secrets.token_hex(8)}"
                version.folder.rename(self.folder / name)
            if old:
                sync_folder(self.folder)
                self._delete_leftovers()
        return [version.sequence for version in old]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(self.folder / LOCK):
            yield

    def _note(self, path: Path, document: dict[str, Any]) -> None:
        make_folder(path.parent)
        with self._locked():
            write_json(path, document)

    def _remove(self, path: Path) -> None:
        if path.exists():
            with self._locked():  # so that nobody reads it meanwhile
                path.unlink(missing_ok=True)

    def _needed(self) -> list[int]:
        """Return the sequence numbers that are retained or held. The caller holds the lock."""
        found = [
            number
            for path in (self.folder / _READERS).glob("*.json")
            if not path.name.startswith(".")
            for number in _numbers(path, "a reader of versions", "sequence")
        ]
        for path in own_files(self.folder / _JOBS, "*.json"):
            if time.time() - path.lstat().st_mtime > _DAY:
                path.unlink()
            elif not path.name.startswith("."):
                found += _numbers(path, "a job that reads versions", "sequences")
        return found

    def _delete_leftovers(self) -> None:
        """Delete what killed processes left and what was swept. The caller holds the lock."""
        for left in self.folder.glob(f"{_SWEPT}*"):
            shutil.rmtree(left, ignore_errors=True)
        drafts = {left.name.removesuffix(_DRAFT_LOCK) for left in self.folder.glob(f"{_DRAFT}*")}
        for name in sorted(drafts):
            draft_lock = self.folder / (name + _DRAFT_LOCK)
            try:
                with locked(draft_lock, wait=False):
                    shutil.rmtree(self.folder / name, ignore_errors=True)
                    draft_lock.unlink(missing_ok=True)
            except BlockingIOError:
                continue  # its publisher is alive


def _numbers(path: Path, what: str, name: str) -> list[int]:
    """Return the sequence number or numbers in a document."""
    given = read_json(path, what, StoreError).get(name)
    found: list[Any] = given if isinstance(given, list) else [given]
    if not all(isinstance(each, int) for each in found):
        raise StoreError(f"{path}: is damaged, {name!r} is not a sequence number")
    return found


def _check_new(target: Path, sequence: int) -> None:
    if target.exists():
        raise StoreError(
            f"{target}: there is a version of sequence number {sequence} already, and a version "
            "never changes; choose another folder, or another sequence number"
        )


class Pins:
    """The pins of one query."""

    def __init__(self, index: Path, query: str) -> None:
        self.path = index / PINS / f"{chosen_name(query, 'a query', StoreError)}.json"

    def version(self, batch: int) -> int | None:
        """Return the version of a batch; None if it has no pin yet."""
        return _batches(self.path).get(batch) if self.path.exists() else None

    def put(self, batch: int, version: int, keep: int = KEPT) -> None:
        """Pin a batch to a version, on disk, and drop all but the last `keep` pins.

        The caller holds the lock of the index.
        """
        make_folder(self.path.parent)
        # By a process that was killed.
        for left in own_files(self.path.parent, f".{self.path.name}.*"):
            left.unlink(missing_ok=True)
        known = _batches(self.path) if self.path.exists() else {}
        known[batch] = version
        last = dict(sorted(known.items())[-max(1, keep) :])
        write_json(self.path, {"batches": {str(number): which for number, which in last.items()}})


def pinned(index: Path) -> set[int]:
    """Return all versions that a batch may need when it runs again.

    A query that has not begun a batch for long counts as gone. Its pins stay: should it come back
    in the middle of a batch, it is refused instead of matched with another version.
    """
    found: set[int] = set()
    for path in (index / PINS).glob("*.json"):
        if not path.name.startswith(".") and time.time() - path.stat().st_mtime < PATIENCE:
            found.update(_batches(path).values())
    return found


def _batches(path: Path) -> dict[int, int]:
    batches: Any = read_json(path, "the pins of a query", StoreError).get("batches")
    try:
        return {int(number): int(version) for number, version in batches.items()}
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise StoreError(
            f"{path}: is damaged, it does not say which batch had which version"
        ) from None
