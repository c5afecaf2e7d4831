"""Versions: the live subscriptions as of a sequence number, compiled, in folders that never change.

    INDEX/v00000000000000000042/version.json    sequence, schema, ids, shards, operators, made
    INDEX/v00000000000000000042/shard-0000/...  a saved engine, and what else belongs to it
    INDEX/readers/…, jobs/…, pins/…             who may still ask for which of them
    INDEX/lock                                  held while folders get and lose their names

A version is written into a folder of another name and renamed when all of it is on disk. The
version of sequence number s has the subscriptions that are live after all changes before s.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tamis.errors import StoreError
from tamis.files.json_document import read_json, write_json
from tamis.files.lock import locked
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder, sync_folder, sync_tree, synced_rename
from tamis.store.changes import ID_TYPES
from tamis.store.pins import KEPT, Pins, pinned

FORMAT = 1
DOCUMENT, LOCK = "version.json", "lock"
_NAME = re.compile(r"v(\d{20})")
_DRAFT, _SWEPT = ".publishing-", ".swept-"  # beginnings of names that no reader looks at
_READERS, _JOBS = "readers", "jobs"
_FORGOTTEN = 24 * 3600.0  # seconds after which a job that has not ended is taken to be dead
_READER = re.compile(r"[A-Za-z0-9._-]{1,100}")
_HELD = ".lock"  # beside a draft: locked while its publisher lives


class Shard(NamedTuple):
    """A part of a version's subscriptions."""

    folder: str  # within the version's
    subscriptions: int
    bytes: int


class Version(os.PathLike[str]):
    """A published version. It can be used wherever the path of its folder can."""

    def __init__(self, folder: Path, sequence: int) -> None:
        self.folder, self.sequence = folder, sequence

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Version:
        """The version in a folder, checked."""
        path = Path(folder).absolute()
        named = _NAME.fullmatch(path.name)
        if named is None:
            raise StoreError(f"{path}: is no version; one is named like {_named(0)}")
        version = cls(path, int(named[1]))
        _ = version.document
        return version

    @cached_property
    def document(self) -> dict[str, Any]:
        """What its `version.json` says."""
        return _checked(self.folder, self.sequence)

    @property
    def schema(self) -> dict[str, Any]:
        """The document of the schema that it was compiled with."""
        schema: dict[str, Any] = self.document["schema"]
        return schema

    @property
    def ids(self) -> str:
        """What its ids are: "text" or "int64"."""
        return str(self.document["ids"])

    @property
    def made(self) -> dict[str, Any]:
        """What whoever compiled it has noted of how; empty where that is not known."""
        return dict(self.document.get("made", {}))

    @property
    def shards(self) -> list[Shard]:
        """Its parts."""
        return [Shard(**shard) for shard in self.document["shards"]]

    @property
    def shard_folders(self) -> list[Path]:
        """The folders of its parts."""
        return [self.folder / shard.folder for shard in self.shards]

    def __fspath__(self) -> str:
        return str(self.folder)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.folder == other.folder

    def __hash__(self) -> int:
        return hash(self.folder)

    def __repr__(self) -> str:
        return f"Version({str(self.folder)!r})"


def describe(
    folder: str | os.PathLike[str],
    *,
    sequence: int,
    schema: Mapping[str, Any],
    ids: str,
    shards: Iterable[Shard],
    operators: Iterable[Any] = (),
    made: Mapping[str, Any] | None = None,
) -> None:
    """Write the `version.json` of a folder that `Versions.publish` gave."""
    document = {
        "format": FORMAT,
        "sequence": sequence,
        "schema": schema,
        "ids": ids,
        "shards": [shard._asdict() for shard in shards],
        "operators": list(operators),
        "made": dict(made or {}),
    }
    with os_errors_as(StoreError, f"{folder}: the version cannot be described"):
        write_json(Path(folder) / DOCUMENT, document)


class Versions:
    """The versions in a folder, which is made by the first publish.

    >>> import tempfile; place = tempfile.TemporaryDirectory()
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

    def all(self) -> list[Version]:
        """All versions, the oldest first; none while the folder is not there yet."""
        with os_errors_as(StoreError, f"{self.folder}: cannot be read"):
            try:
                names = names_in(self.folder)
            except FileNotFoundError:
                return []
        named = sorted(filter(_NAME.fullmatch, names))
        return [Version(self.folder / name, int(name[1:])) for name in named]

    def latest(self) -> Version | None:
        """The newest version, if there is one."""
        return max(self.all(), key=lambda each: each.sequence, default=None)

    def at(self, sequence: int) -> Version | None:
        """The newest version that is not after a sequence number, if there is one."""
        older = [each for each in self.all() if each.sequence <= sequence]
        return older[-1] if older else None

    @contextmanager
    def publish(self, sequence: int, *, new: bool = False) -> Iterator[Path]:
        """A folder to write a version into, which takes its name at the end, on disk.

        Write a `version.json` with `describe`. If the block raises, everything is as it was. If
        somebody else has published the same sequence number meanwhile, his stays and this one is
        dropped: they are the same. With `new` they may not be, and it is refused.
        """
        target = self.folder / _named(sequence)
        if new:
            _check_new(target, sequence)
        draft = self.folder / f"{_DRAFT}{sequence}-{secrets.token_hex(8)}"
        held = draft.with_name(draft.name + _HELD)
        with ExitStack() as ending:
            with os_errors_as(StoreError, f"{self.folder}: no version can be published here"):
                make_folder(self.folder)
                with locked(self.folder / LOCK):
                    self._sweep_left()
                    ending.enter_context(locked(held))
                    ending.callback(held.unlink, missing_ok=True)
                    ending.callback(shutil.rmtree, draft, ignore_errors=True)
                    draft.mkdir()
            yield draft
            _checked(draft, sequence)
            with os_errors_as(StoreError, f"{draft}: the version cannot be published"):
                sync_tree(draft)
                with locked(self.folder / LOCK):
                    if new:
                        _check_new(target, sequence)
                    if not target.exists():
                        synced_rename(draft, target)

    def pin(self, query: str, batch: int, keep: int = KEPT) -> Version:
        """The version that a batch of a stream is matched with: the latest, for the first who asks.

        It is on disk when this returns, and is the answer from then on, so that a batch which is
        run again is matched with what it was matched with before. `keep` is of how many batches of
        the query that is known.
        """
        pins = Pins(self.folder, query)
        sequence = pins.version(batch)
        if sequence is None:
            what = f"{self.folder}: cannot note which version a batch is matched with"
            with os_errors_as(StoreError, what), locked(self.folder / LOCK):
                sequence = pins.version(batch)
                if sequence is None:
                    latest = self.latest()
                    if latest is None:
                        raise StoreError(f"{self.folder}: there is no version to match with")
                    sequence = latest.sequence
                    pins.put(batch, sequence, keep)
        version = Version(self.folder / _named(sequence), sequence)
        if not version.folder.is_dir():
            raise StoreError(
                f"{version.folder}: batch {batch} of the query {query} was matched with this "
                "version, which has been swept since; without the entry of that batch in "
                f"{pins.path} it is matched with the latest one, and may have other rows"
            )
        return version

    def sweep(self, keep_from: int) -> list[int]:
        """Delete the versions before the one that serves a sequence number; gives which.

        Kept are also those that serve a reader which has said what it needs, and those that a
        batch of a stream is matched with. A version that goes loses its name first: nobody finds
        half of one. Whoever has its files mapped keeps them.
        """
        if not self.folder.is_dir():
            return []
        with (
            os_errors_as(StoreError, f"{self.folder}: cannot be swept"),
            locked(self.folder / LOCK),
        ):
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
                self._sweep_left()
        return [version.sequence for version in old]

    def needed(self, reader: str, sequence: int | None) -> None:
        """A reader, known by a name, may still ask for events from here on; None: for nothing.

        From when this returns until the reader says otherwise, the version that serves this
        sequence number stays. Choose a version after it, not before.
        """
        check_reader(reader)
        path = self.folder / _READERS / f"{reader}.json"
        with os_errors_as(StoreError, f"{path}: cannot be written"):
            if sequence is None:
                self._forget(path)
                return
            make_folder(path.parent)
            with locked(self.folder / LOCK):
                write_json(path, {"sequence": sequence})

    def keep(self, sequences: Iterable[int]) -> Path | None:
        """A job reads the versions of these sequence numbers: they stay, for a day at most.

        Gives what `let_go` takes; None where the folder is not to be written to, so that nothing
        is kept. A version may have gone just before this.
        """
        path = self.folder / _JOBS / f"{secrets.token_hex(8)}.json"
        try:
            make_folder(path.parent)
            with locked(self.folder / LOCK):
                write_json(path, {"sequences": sorted({*sequences})})
        except OSError:
            return None
        return path

    def let_go(self, job: Path | None) -> None:
        """A job is over."""
        if job is not None:
            with suppress(OSError):
                self._forget(job)

    @contextmanager
    def used(self, sequence: int | None = None) -> Iterator[Version | None]:
        """The latest version, or that of a sequence number; it stays until the block is over."""
        with ExitStack() as ending:
            while True:
                version = self.latest() if sequence is None else self.at(sequence)
                if version is None:
                    break
                job = self.keep([version.sequence])
                ending.callback(self.let_go, job)
                if job is None or version.folder.is_dir():
                    break  # else it was swept before it was said
            yield version

    def _forget(self, path: Path) -> None:
        if path.exists():
            with locked(self.folder / LOCK):  # nobody reads it meanwhile
                path.unlink(missing_ok=True)

    def _needed(self) -> list[int]:
        """The lock is held."""
        found = [
            int(read_json(path, "a reader of versions", StoreError)["sequence"])
            for path in (self.folder / _READERS).glob("*.json")
            if not path.name.startswith(".")
        ]
        for path in (self.folder / _JOBS).glob("*.json"):
            if time.time() - path.stat().st_mtime > _FORGOTTEN:
                path.unlink()
            elif not path.name.startswith("."):
                found += map(
                    int, read_json(path, "a job that reads versions", StoreError)["sequences"]
                )
        return found

    def _sweep_left(self) -> None:
        """Remove what nobody writes or reads any more. The lock is held."""
        for left in self.folder.glob(f"{_SWEPT}*"):
            shutil.rmtree(left, ignore_errors=True)
        drafts = {left.name.removesuffix(_HELD) for left in self.folder.glob(f"{_DRAFT}*")}
        for name in sorted(drafts):
            try:
                with locked(self.folder / (name + _HELD), wait=False):
                    shutil.rmtree(self.folder / name, ignore_errors=True)
                    (self.folder / (name + _HELD)).unlink(missing_ok=True)
            except BlockingIOError:
                continue  # its publisher is alive


def check_reader(name: str) -> None:
    """Refuse what cannot be the name of a reader."""
    if not _READER.fullmatch(name):
        raise StoreError(f"a reader is named with letters, digits, '.', '-' or '_': {name!r}")


def _check_new(target: Path, sequence: int) -> None:
    if target.exists():
        raise StoreError(
            f"{target}: there is a version of sequence number {sequence} already, and a version "
            "never changes; name another folder, or another sequence number"
        )


def _named(sequence: int) -> str:
    return f"v{sequence:020d}"


def _checked(folder: Path, sequence: int) -> dict[str, Any]:
    path = folder / DOCUMENT
    document = read_json(path, "a version", StoreError, newest=FORMAT)
    if document.get("sequence") != sequence:
        raise StoreError(
            f"{path}: is of sequence number {document.get('sequence')!r} instead of {sequence}"
        )
    forms = {"schema": dict, "ids": str, "shards": list, "operators": list, "made": dict}
    document.setdefault("made", {})  # of versions before it was noted
    for name, form in forms.items():
        if not isinstance(document.get(name), form):
            raise StoreError(f"{path}: is damaged, it lacks {name!r}")
    if document["ids"] not in ID_TYPES:
        raise StoreError(f"{path}: is damaged, ids are 'text' or 'int64', not {document['ids']!r}")
    for shard in document["shards"]:
        if not isinstance(shard, dict) or shard.keys() != {*Shard._fields}:
            raise StoreError(f"{path}: is damaged, a shard has {', '.join(Shard._fields)}")
        if not (folder / shard["folder"]).is_dir():
            raise StoreError(f"{folder}: the folder of the shard {shard['folder']!r} is missing")
    return document
