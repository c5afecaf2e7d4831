"""Files that are on disk when a call returns, and locks that vanish with their process."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from tamis.errors import StoreError
from tamis.files.placement import sync

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def refusing(what: str, *, unchanged: bool = True) -> Iterator[None]:
    """What the file system refuses is a `StoreError` that says what was tried."""
    try:
        yield
    except OSError as why:
        full = unchanged and why.errno in _FULL
        hint = "; nothing was changed, make room and try again" if full else ""
        raise StoreError(f"{what}: {why.strerror or why}{hint}") from why


def names_in(folder: Path) -> set[str]:
    """The names of everything in a folder."""
    with os.scandir(folder) as entries:
        return {entry.name for entry in entries}


def make_folder(path: Path) -> None:
    """Have a folder, and those above it, on disk. The name of a new one lies in the one above."""
    new = []
    at = path
    while not at.exists():
        new.append(at)
        at = at.parent
    path.mkdir(parents=True, exist_ok=True)
    for each in reversed(new):
        sync(each.parent)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[int]:
    """Hold the lock of a file, which is made if there is none; gives its descriptor.

    The kernel drops the lock when the process ends, however it ends. Each call opens the file
    anew, so threads of one process exclude each other as well. Without `wait`, a lock that
    somebody holds is a `BlockingIOError`.
    """
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield opened
    finally:
        os.close(opened)


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A new file to write into, on disk at the end; removed again if that fails."""
    try:
        # Buffered: a raw file may take a part of what it is given, and Arrow does not look.
        with path.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def write_json(path: Path, document: Any) -> None:
    """Put a document in place, whole or not at all, and sync it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with written(temporary) as file:
        file.write(json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n")
    temporary.rename(path)
    sync(path.parent)


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The object in a JSON file; `what` it should be goes into the refusal."""
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        found = "there is no such folder"
        if path.parent.is_dir():
            names = sorted(each.name for each in path.parent.iterdir())
            listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
            found = f"it has no {path.name}, only: {listed}" if names else "the folder is empty"
        raise StoreError(f"{path.parent} is no {what}: {found}") from None
    except NotADirectoryError:
        raise StoreError(f"{path.parent} is no {what}: it is a file, not a folder") from None
    except OSError as why:
        raise StoreError(f"{path}: cannot be read: {why.strerror}") from why
    except (ValueError, RecursionError) as why:
        raise StoreError(f"{path}: is damaged, it is not valid JSON: {why}") from None
    if not isinstance(document, dict):
        raise StoreError(f"{path}: is damaged, it holds no JSON object")
    return document


def check_format(path: Path, document: dict[str, Any], newest: int, what: str) -> None:
    """Refuse a document of a format that this tamis does not read."""
    written = document.get("format")
    if isinstance(written, bool) or not isinstance(written, int) or written < 1:
        raise StoreError(f"{path}: is damaged, the format is {written!r}")
    if written > newest:
        raise StoreError(
            f"{path.parent}: the {what} has format {written}, and this tamis reads formats up to "
            f"{newest}; use the newer tamis that wrote it"
        )
