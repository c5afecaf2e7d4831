"""Data that is on disk when a call returns, so that a power cut cannot undo it.

The name of a file or folder is stored in the folder above: a new name is on disk once that folder
is synced.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tamis.files.os_errors import UnsyncedError

_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)  # by this file system


def sync_file(path: Path) -> None:
    """Force the content of a file to disk, even if another process wrote it."""
    _sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Force the names in a folder to disk, where the file system can."""
    try:
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as why:
        if why.errno not in _UNSUPPORTED:
            raise


def sync_tree(path: Path) -> None:
    """Force a folder and everything in it to disk."""
    for folder, _, files in os.walk(path, onerror=_raise):
        for name in files:
            sync_file(Path(folder, name))
        sync_folder(Path(folder))


def synced_rename(source: Path, target: Path) -> None:
    """Rename a file or folder, and force the new name to disk.

    Raises `UnsyncedError` if the name changed but could not be forced to disk.
    """
    source.rename(target)
    sync_name(target)


def sync_name(path: Path) -> None:
    """Force the name of a file or folder to disk after it was put in place."""
    try:
        sync_folder(path.parent)
    except OSError as why:
        raise UnsyncedError(why.errno, why.strerror, str(path)) from why


def make_folder(path: Path) -> None:
    """Create a folder and those above it where they are missing, and sync each new name."""
    new = []
    at = path
    while not at.exists():
        new.append(at)
        at = at.parent
    path.mkdir(parents=True, exist_ok=True)
    for each in reversed(new):
        sync_folder(each.parent)


def _sync(path: Path, flags: int) -> None:
    opened = os.open(path, flags)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _raise(why: OSError) -> None:
    raise why
