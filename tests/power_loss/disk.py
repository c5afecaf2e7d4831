"""A disk that forgets: from the record of what programs did, the states that a power cut may leave.

What was synced is on disk. Of what was not, any part may be: each write may be there, missing or
torn, and each new or removed name may be there or not. Real file systems forget less.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_ROOT = Path(__file__).parents[2]  # where programs find the package `tests`
_SECTOR = 512  # bytes that a disk writes together


class Operation(NamedTuple):
    """What a program did to a file or folder."""

    kind: str
    path: str
    other: str
    offset: int
    data: bytes


def build_recorder(folder: Path) -> Path:
    """Compile the library that records; raises `FileNotFoundError` without a C compiler."""
    made = folder / "recorder.so"
    source = Path(__file__).with_name("recorder.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl"], check=True)
    return made


def recorded_run(program: Sequence[str], recorder: Path, folder: Path, record: Path) -> None:
    """Run a program, and record what it does below a folder."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(recorder),
        "TAMIS_RECORDED": str(folder),
        "TAMIS_RECORD": str(record),
    }
    subprocess.run(program, env=environment, cwd=_ROOT, check=True)


def operations(record: Path) -> Iterator[Operation]:
    """The operations of a record, in order."""
    with record.open("rb") as file:
        while line := file.readline():
            kind, path, other, offset, size = line.decode().rstrip("\n").split("\t")
            yield Operation(kind, path, other, int(offset), file.read(int(size)))


class _File:
    """The content of a file: what is on disk, and what was written since."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []  # None: the size becomes the offset

    def sync(self) -> None:
        for offset, data in self.pending:
            _apply(self.synced, offset, data)
        self.pending = []

    def after_cut(self, draw: random.Random) -> bytes:
        content = bytearray(self.synced)
        every = draw.random() < 0.3
        for offset, data in self.pending:
            fate = draw.random()
            if every or fate < 0.5:
                _apply(content, offset, data)
            elif fate < 0.75 and data:
                cut = draw.randrange(len(data) + 1)
                if draw.random() < 0.5:
                    cut = max(0, (offset + cut) // _SECTOR * _SECTOR - offset)
                _apply(content, offset, data[:cut])
            elif fate < 0.85 and data:  # the size is on disk, the content is not
                _apply(content, offset, bytes(len(data)))
        return bytes(content)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


_Folder = dict[str, "_File | _Names"]


class _Names:
    """The names in a folder: on disk, as programs see them, and the changes between."""

    def __init__(self) -> None:
        self.synced: _Folder = {}
        self.seen: _Folder = {}
        self.pending: list[tuple[str, _File | _Names | None]] = []  # None: the name is removed

    def put(self, name: str, what: _File | _Names | None) -> None:
        self.pending.append((name, what))
        if what is None:
            self.seen.pop(name, None)
        else:
            self.seen[name] = what

    def sync(self) -> None:
        self.synced, self.pending = dict(self.seen), []

    def sync_all(self) -> None:
        self.sync()
        for what in self.seen.values():
            what.sync_all() if isinstance(what, _Names) else what.sync()

    def after_cut(self, draw: random.Random) -> _Folder:
        names = dict(self.synced)
        # Journals keep the order of names; others need not.
        kept = draw.randrange(len(self.pending) + 1)
        ordered = draw.random() < 0.6
        for at, (name, what) in enumerate(self.pending):
            if at < kept if ordered else draw.random() < 0.5:
                if what is None:
                    names.pop(name, None)
                else:
                    names[name] = what
        return names


class Disk:
    """A folder on a disk, as operations change it."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._top = _Names()

    def apply(self, operation: Operation) -> None:
        """Do what a program did."""
        kind, path, other, offset, data = operation
        if kind in ("rename", "link", "exchange"):
            self._move(kind, path, other)
            return
        if kind == "sync" and path == self._root:
            self._top.sync()
            return
        parent, name = self._parent(path)
        found = parent.seen.get(name)
        if kind == "create":
            parent.put(name, _File())
        elif kind == "mkdir":
            parent.put(name, _Names())
        elif kind == "remove":
            parent.put(name, None)
        elif kind == "sync" and found is not None:
            found.sync()
        elif isinstance(found, _File):  # a file that was deleted may still be written to
            found.pending.append((offset, data if kind == "write" else None))

    def _move(self, kind: str, path: str, other: str) -> None:
        parent, name = self._parent(path)
        target, new = self._parent(other)
        moved, replaced = parent.seen[name], target.seen.get(new)
        target.put(new, moved)
        if kind == "rename":
            parent.put(name, None)
        elif kind == "exchange":
            parent.put(name, replaced)

    def _parent(self, path: str) -> tuple[_Names, str]:
        *folders, name = os.path.relpath(path, self._root).split("/")
        at = self._top
        for each in folders:
            below = at.seen[each]
            assert isinstance(below, _Names), path
            at = below
        return at, name

    def sync_all(self) -> None:
        """Forget nothing of what was done so far."""
        self._top.sync_all()

    def cut_power(self, folder: Path, draw: random.Random) -> None:
        """Write a state that a power cut may leave to a folder."""
        _write(folder, self._top, draw)


ACKNOWLEDGED = "acknowledged"  # the file of a program, with a line of JSON for each


def power_cuts(
    record: Path, place: Path, state: Path, draw: random.Random, count: int
) -> Iterator[list[dict[str, Any]]]:
    """States that a power cut may leave of a place, and what had been acknowledged by then.

    Each state is in the folder `state` until the next one.
    """
    every, done = list(operations(record)), os.path.realpath(place / ACKNOWLEDGED)
    for _ in range(count):
        disk, acknowledged = Disk(str(place)), []
        for operation in every[: draw.randrange(len(every) + 1)]:
            if operation.path != done:
                disk.apply(operation)
            elif operation.kind == "write":
                acknowledged.append(json.loads(operation.data))
        shutil.rmtree(state, ignore_errors=True)
        disk.cut_power(state, draw)
        yield acknowledged


def content(place: Path) -> dict[str, bytes | None]:
    """All files below a folder, and all folders."""
    below = {str(each.relative_to(place)): each for each in place.rglob("*")}
    return {name: each.read_bytes() if each.is_file() else None for name, each in below.items()}


def _write(folder: Path, names: _Names, draw: random.Random) -> None:
    folder.mkdir()
    for name, what in names.after_cut(draw).items():
        if isinstance(what, _Names):
            _write(folder / name, what, draw)
        else:
            (folder / name).write_bytes(what.after_cut(draw))
