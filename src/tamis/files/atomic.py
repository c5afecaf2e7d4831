"""Files and folders that appear complete or not at all.

They are written under a temporary name beside their place, synced, and renamed. A process that
dies, a full disk or a power cut leaves what was there before. A process locks what it writes, so
that others can tell what a dead one has left.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from tamis.files.sync import sync_name, sync_tree

_CWD = -100  # AT_FDCWD: paths are not relative to an open folder
_EXCHANGE = 2  # RENAME_EXCHANGE
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)  # by this file system


@contextmanager
def atomic_file(
    path: Path, *, temporary: Path | None = None, durable: bool = True
) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` when the block ends.

    If the block raises, the file vanishes. It is on disk at the end; `durable=False` skips that,
    for files that can be made again. `temporary` is its name meanwhile, for those who remove what
    a killed process left behind; the default is a hidden name beside `path`.
    """
    temporary = temporary or _temporary(path)
    # Buffered: a raw file may accept only a part of a write, and Arrow does not check.
    file = temporary.open("xb")
    try:
        with file:
            _lock(file.fileno())
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        sync_name(path)


@contextmanager
def atomic_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Create a folder to write into that becomes `path` when the block ends, on disk.

    If the block raises, the folder vanishes. Raises `FileExistsError` if `path` exists. With
    `replace` it is exchanged for the new folder in one step and then deleted: a reader sees the
    old one or the new one. Folders that killed processes have left for `path` are deleted.
    """
    if os.path.lexists(path) and not replace:
        raise _exists(path)
    remove_leftovers(path)
    temporary, opened = _locked_folder(path)
    try:
        yield temporary
        sync_tree(temporary)
        if replace and path.exists():
            _exchange(temporary, path)
        else:
            _rename_new(temporary, path)
        sync_name(path)
    finally:  # by now this is an unfinished folder, or the old one
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(opened)


def remove_leftovers(path: Path) -> None:
    """Delete unfinished files and folders for `path` that killed processes have left."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError):  # its process is alive, or somebody else deletes it
            opened = os.open(left, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(opened)


def _locked_folder(path: Path) -> tuple[Path, int]:
    """A temporary folder and its open descriptor."""
    while True:
        temporary = _temporary(path)
        temporary.mkdir()
        with suppress(FileNotFoundError):  # it was deleted as a leftover before it was locked
            opened = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            _lock(opened)
            if temporary.exists():
                return temporary, opened
            os.close(opened)


def _lock(opened: int) -> None:
    with suppress(OSError):  # not every file system has locks; then leftovers stay
        fcntl.flock(opened, fcntl.LOCK_EX)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def _exists(path: Path) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def _rename_new(temporary: Path, path: Path) -> None:
    try:
        temporary.rename(path)
    except OSError as why:
        if why.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise _exists(path) from None  # somebody else was faster
        raise


def _exchange(temporary: Path, path: Path) -> None:
    """Swap two folders; afterwards `temporary` is the old one."""
    # Python does not offer renameat2. Without it there is an instant at which the name is free.
    exchange: Any = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange is not None:
        done = exchange(_CWD, os.fsencode(temporary), _CWD, os.fsencode(path), _EXCHANGE)
        if done == 0:
            return
        if (why := ctypes.get_errno()) not in _UNSUPPORTED:
            raise OSError(why, os.strerror(why))
    aside = temporary.with_suffix(".old")
    path.rename(aside)
    try:
        temporary.rename(path)
    except BaseException:
        aside.rename(path)
        raise
    aside.rename(temporary)
