"""A version: the subscriptions live at a sequence number, compiled, in a folder that never changes.

    INDEX/v00000000000000000042/version.json    sequence, schema, ids, shards, operators, made
    INDEX/v00000000000000000042/shard-0000/...  a saved engine, and the files that belong to it

The version of sequence number s has the subscriptions that are live after all changes before s.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tamis.errors import StoreError
from tamis.files.json_document import read_json, write_json
from tamis.files.names import plain_name
from tamis.files.os_errors import os_errors_as
from tamis.store.changes import ID_TYPES

FORMAT = 1
DOCUMENT = "version.json"
OF = "of"  # key in `made`: the identity of the log from which the version was compiled
_NAME = re.compile(r"v(\d{20})")


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
        """Open the version in a folder, and validate its document."""
        path = Path(folder).absolute()
        sequence = sequence_in(path.name)
        if sequence is None:
            raise StoreError(
                f"{path}: is not a version; versions have names like {version_name(0)}"
            )
        version = cls(path, sequence)
        _ = version.document
        return version

    @cached_property
    def document(self) -> dict[str, Any]:
        """Its `version.json`."""
        return read_document(self.folder, self.sequence)

    @property
    def ids(self) -> str:
        """The type of its ids: "text" or "int64"."""
        return str(self.document["ids"])

    @property
    def made(self) -> dict[str, Any]:
        """Notes on how it was compiled; empty if unknown."""
        return dict(self.document.get("made", {}))

    @property
    def shards(self) -> list[Shard]:
        """Its parts."""
        return [Shard(**shard) for shard in self.document["shards"]]

    @property
    def shard_folders(self) -> list[Path]:
        """The folder of each part: a saved engine."""
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
    """Write the `version.json` of a folder that `Versions.publish` yielded."""
    document = {
        "format": FORMAT,
        "sequence": sequence,
        "schema": schema,
        "ids": ids,
        "shards": [shard._asdict() for shard in shards],
        "operators": list(operators),
        "made": dict(made or {}),
    }
    with os_errors_as(StoreError, f"{folder}: {DOCUMENT} cannot be written"):
        write_json(Path(folder) / DOCUMENT, document)


def version_name(sequence: int) -> str:
    """Return the name of the folder of a version."""
    return f"v{sequence:020d}"


def sequence_in(name: str) -> int | None:
    """Return the sequence number in the name of a version's folder; None for other names."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[1])


def read_document(folder: Path, sequence: int) -> dict[str, Any]:
    """Read and validate the `version.json` in a folder."""
    path = folder / DOCUMENT
    document = read_json(path, "a version", StoreError, newest=FORMAT)
    if document.get("sequence") != sequence:
        raise StoreError(
            f"{path}: has the sequence number {document.get('sequence')!r} instead of {sequence}"
        )
    forms = {"schema": dict, "ids": str, "shards": list, "operators": list, "made": dict}
    document.setdefault("made", {})  # early versions lack it
    for name, form in forms.items():
        if not isinstance(document.get(name), form):
            raise StoreError(f"{path}: is damaged, it lacks {name!r}")
    if document["ids"] not in ID_TYPES:
        raise StoreError(f"{path}: is damaged, ids are 'text' or 'int64', not {document['ids']!r}")
    for shard in document["shards"]:
        if not isinstance(shard, dict) or shard.keys() != {*Shard._fields}:
            raise StoreError(f"{path}: is damaged, a shard has {', '.join(Shard._fields)}")
        name = plain_name(shard["folder"], f"{path}: is damaged, the folder of a shard", StoreError)
        if not (folder / name).is_dir():
            raise StoreError(f"{folder}: the folder of the shard {name!r} is missing")
    return document
